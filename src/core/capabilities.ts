/** What a client says it can be asked for, as it declared it: servers are told the same. */
export type Capabilities = Readonly<Record<string, unknown>>

/** Log levels from the chattiest to the gravest. */
export const logLevels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = (typeof logLevels)[number]

const profiles = new WeakMap<Capabilities, string>()

/** Equal for clients that declared the same, whatever the order in which they did. */
export function profileOf(capabilities: Capabilities): string {
  // Asked several times for each call, and a session's are always the same object.
  const known = profiles.get(capabilities)
  if (known !== undefined) return known
  const profile = JSON.stringify(sorted(capabilities))
  profiles.set(capabilities, profile)
  return profile
}

/** Whether a server may turn to this client in the middle of a call. */
export const canBeAsked = (capabilities: Capabilities): boolean =>
  ['sampling', 'elicitation', 'roots'].some((name) => capabilities[name] !== undefined)

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).map(([key, inner]) => [key, sorted(inner)] as const)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}
