/** Keys in which two entries may differ and still mean one server. */
const besides = ['disabled', 'timeout', 'startTimeout', 'description', 'session']

/** A text that two definitions share when they mean the same server; the order of keys means nothing. */
export function fingerprint(definition: Readonly<Record<string, unknown>>): string {
  const told = Object.entries(definition).filter(([key, value]) => !besides.includes(key) && !isEmpty(value))
  return JSON.stringify(sorted(Object.fromEntries(told)))
}

/** An empty list or section says as much as none. A transport that the rest implies does, too. */
const isEmpty = (value: unknown): boolean =>
  value === 'stdio' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, part]) => [key, sorted(part)]),
  )
}
