import type { Config } from '../config/schema.ts'
import type { Entry } from '../core/entry.ts'
import { matches } from '../lib/wildcard.ts'

/** Creates a function that returns the rule that requires approval for an entry; undefined if no rule does. */
export function createApprovals(servers: Config['mcpServers']): (entry: Entry) => string | undefined {
  const lists = new Map(Object.entries(servers).map(([name, { approve }]) => [name, approve]))
  return ({ kind, server, name }) => {
    const patterns = kind === 'tool' ? lists.get(server) : undefined
    const index = patterns?.findIndex((pattern) => matches(pattern, name)) ?? -1
    return index < 0 ? undefined : `mcpServers.${server}.approve[${index}]`
  }
}
