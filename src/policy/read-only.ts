import type { Config } from '../config/schema.ts'
import type { Denial } from '../core/decision.ts'
import type { Entry } from '../core/entry.ts'

/** Refuses what is not known to be a read on servers that are for reading alone (J2). */
export function createReadOnly(servers: Config['mcpServers']): (entry: Entry) => Denial | undefined {
  const readOnly = new Set(Object.keys(servers).filter((name) => servers[name]?.readOnly))
  return ({ server, name, traits }) => {
    if (traits.readOnly || !readOnly.has(server)) return undefined
    const rule = `mcpServers.${server}.readOnly`
    const reason = `Write not allowed: ${server} is read-only here, and ${name} is not known to be a read. Use a tool that reads, or ask the operator to list it in mcpServers.${server}.readTools.`
    return { allowed: false, code: 'WRITE_NOT_ALLOWED', rule, reason }
  }
}
