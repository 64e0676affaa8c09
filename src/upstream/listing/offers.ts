import type { Offers } from '../../core/access.ts'
import type { Capabilities } from '../../core/capabilities.ts'
import { asRecord } from '../../lib/is-record.ts'

/** What one server says beside its lists. */
export interface ServerOffers {
  readonly name: string
  readonly instructions: string
  readonly capabilities: Capabilities
}

/** Longer than any server's advice should be, and short enough for a model's context. */
const maxAdvice = 2_000
const maxAdviceOfAll = 8_000

/** What all servers together offer beside entries. */
export function joinOffers(servers: readonly ServerOffers[]): Offers {
  const extensions = Object.assign({}, ...servers.map(({ capabilities }) => asRecord(capabilities.extensions)))
  return {
    capabilities: {
      ...(servers.some(runTasks) && { tasks: servedTasks }),
      ...(Object.keys(extensions).length > 0 && { extensions }),
    },
    instructions: joined(servers),
  }
}

/** Tasks of the era with sessions. Lists of them are not offered: a server's list tells the tasks of all its callers. */
const servedTasks = { cancel: {}, requests: { tools: { call: {} } } }

const runTasks = ({ capabilities }: ServerOffers): boolean =>
  asRecord(asRecord(asRecord(capabilities.tasks).requests).tools).call !== undefined

/** Each server's advice to a model under the server's name. */
function joined(servers: readonly ServerOffers[]): string {
  const parts = servers.filter(({ instructions }) => instructions !== '')
  return parts
    .map(({ name, instructions }) => `## ${name}\n${instructions.slice(0, maxAdvice)}`)
    .join('\n\n')
    .slice(0, maxAdviceOfAll)
}
