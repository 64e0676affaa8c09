import type { Config } from '../config/schema.ts'
import type { Denial } from '../core/decision.ts'
import type { Entry } from '../core/entry.ts'
import { lineage } from './lineage.ts'

/** Refuses what is not known to be a read on servers that are for reading alone (J2). */
export function createReadOnly(servers: Config['mcpServers']): (entry: Entry) => Denial | undefined {
  const readOnly = new Set(Object.keys(servers).filter((name) => servers[name]?.readOnly))
  return ({ server, name, traits }) => {
    if (traits.readOnly || !readOnly.has(server)) return undefined
    const rule = `mcpServers.${server}.readOnly`
    const reason = `Write not allowed: ${server} is read-only here, and ${name} is not known to be a read. Use a tool that reads, or ask the operator to list it in mcpServers.${server}.readTools, or to set trustAnnotations there if the server marks its reads.`
    return { allowed: false, code: 'WRITE_NOT_ALLOWED', rule, reason }
  }
}

/**
 * Refuses agents that may only read whatever is not known to be a read, on every server and our own tools and sinks as well.
 * Tools that only run other calls are left to the decisions about those. An agent is never more than its parents.
 */
export function createReadOnlyAgents(agents: Config['agents']): (agent: string, entry: Entry) => Denial | undefined {
  const known = new Map(Object.entries(agents))
  const rules = new Map<string, string>()
  for (const agent of known.keys()) {
    const by = lineage(agent, known).find((one) => known.get(one)?.readOnly === true)
    if (by !== undefined) rules.set(agent, `agents.${by}.readOnly`)
  }
  return (agent, { server, name, traits }) => {
    if (traits.readOnly || traits.carries) return undefined
    const rule = rules.get(agent)
    if (rule === undefined) return undefined
    const reason = `Write not allowed: the agent ${agent} may only read (${rule}), and ${server}.${name} is not known to be a read. Use a tool that reads; the operator says which do in mcpServers.NAME.readTools or trustAnnotations.`
    return { allowed: false, code: 'WRITE_NOT_ALLOWED', rule, reason }
  }
}
