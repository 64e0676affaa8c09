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

/** A server as somebody may have written it. */
interface Started {
  readonly command?: unknown
  readonly args?: unknown
}

/** `.`, `../x`, `server.py`: words that mean something else in another folder. */
const relative = /^\.{1,2}([/\\]|$)|^(?![/\\~$-]|[A-Za-z]:[/\\]|[a-z]+:\/\/|@).*\.(?:[cm]?[jt]s|py|sh|rb|jar|exe)$/

/** Whether what a program does may depend on the folder it is started in, as far as its words show. */
export const dependsOnFolder = ({ command, args }: Started): boolean =>
  [command, ...(Array.isArray(args) ? args : [])].some((word) => typeof word === 'string' && relative.test(word))
