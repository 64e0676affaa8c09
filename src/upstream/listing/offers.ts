import type { Offers } from '../../core/access.ts'
import type { Capabilities } from '../../core/call.ts'
import { asRecord } from '../../lib/is-record.ts'

export interface ServerOffers {
  readonly name: string
  readonly instructions: string
  readonly capabilities: Capabilities
}

/** Maximum length of instructions, for one server and for all together, because they use the model's context. */
export const maxAdvice = 2_000
const maxAdviceOfAll = 8_000

export function joinOffers(servers: readonly ServerOffers[]): Offers {
  const extensions = Object.assign({}, ...servers.map(({ capabilities }) => asRecord(capabilities.extensions)))
  const capabilities = {
    ...(servers.some(runTasks) && { tasks: servedTasks }),
    ...(Object.keys(extensions).length > 0 && { extensions }),
  }
  return { capabilities, instructions: joined(servers) }
}

/** Task capabilities for session-based clients. Listing is omitted: a server would list all its callers' tasks. */
const servedTasks = { cancel: {}, requests: { tools: { call: {} } } }

const runTasks = ({ capabilities }: ServerOffers): boolean =>
  asRecord(asRecord(asRecord(capabilities.tasks).requests).tools).call !== undefined

function joined(servers: readonly ServerOffers[]): string {
  const parts = servers.filter(({ instructions }) => instructions !== '')
  return parts
    .map(({ name, instructions }) => `## ${name}\n${belowOurs(instructions.slice(0, maxAdvice))}`)
    .join('\n\n')
    .slice(0, maxAdviceOfAll)
    .toWellFormed()
}

/** Lowers the headings in a server's instructions, so that a server cannot begin the section of another one. */
const belowOurs = (instructions: string): string => instructions.replaceAll(/^([^\S\n]*)(#{1,2})(?!#)/gm, '$1##$2')
