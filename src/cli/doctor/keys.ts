import type { Config } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import { didYouMean } from '../../core/near.ts'
import { KeyFileProblem, keyFile, readKeyFile, type StoredKey } from '../../stores/key-file.ts'
import { type Check, type Finding, ok, problem, warning } from './finding.ts'
import { commandLine, count, quoted, span } from './words.ts'

/** Whoever hears of it a week before can still hand out another one. */
const soonMs = 7 * 24 * 60 * 60 * 1000

export interface KeyCheckOptions {
  readonly command: string
  readonly clock: Clock
}

/** Whether the API keys can be used: read, not expired, and for agents that there are. */
export const keyCheck = (config: Config, options: KeyCheckOptions): Check => ({
  name: 'credentials.keys',
  async run() {
    const path = config.stores.path
    try {
      const kept = readKeyFile(path)
      const findings = kept.flatMap((key) => keyFindings(key, config, options))
      if (findings.length > 0) return findings
      const number = kept.length + config.auth.keys.length
      return ok(number === 0 ? 'there are no API keys' : `${count(number, 'API key')}, none expired`)
    } catch (error) {
      if (!(error instanceof KeyFileProblem)) throw error
      const closed = error.message.includes('chmod 600')
      const remedy = closed ? `chmod 600 ${quoted(keyFile(path))}` : `ls -l ${quoted(keyFile(path))}`
      return problem(`no key of the key file is accepted: ${error.message}`, remedy)
    }
  },
})

function keyFindings(key: StoredKey, { agents }: Config, { command, clock }: KeyCheckOptions): Finding[] {
  const { id, expires } = key
  const left = expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires) - clock.now()
  const known = Object.keys(agents)
  const strangers = key.agents.filter((agent) => agent !== '*' && known.length > 0 && !known.includes(agent))
  const renewed = `${command} keys revoke ${id} && ${renewal(key, command)}`
  return [
    ...(left <= 0 ? [warning(`the key ${id} has expired on ${expires?.slice(0, 10)}`, renewed)] : []),
    ...(left > 0 && left <= soonMs ? [warning(`the key ${id} expires in ${span(left)}`, renewed)] : []),
    ...strangers.map((agent) =>
      warning(
        `the key ${id} is for ${agent}, an agent that does not exist${didYouMean(agent, known, '')}`,
        `${command} keys revoke ${id}`,
      ),
    ),
  ]
}

/** The same key anew. */
const renewal = ({ id, agents, admin }: StoredKey, command: string): string =>
  `${command} ${commandLine(['keys', 'create', id, ...agents.flatMap((agent) => ['--agent', agent]), ...(admin ? ['--admin'] : []), '--expires', '90d'])}`
