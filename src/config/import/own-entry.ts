const ownName = 'toolway'

/** The name of Toolway's entry in a client's file: one for all tools, and one for each endpoint. */
export const ownEntryName = (endpoint?: string): string => (endpoint === undefined ? ownName : `${ownName}-${endpoint}`)

/** Whether a server in a client's file is Toolway itself. `definition` is its entry as plain values. */
export function isOwnEntry(name: string, definition: unknown): boolean {
  if (name === ownName) return true
  if (!name.startsWith(ownEntryName(''))) return false
  // Others may use such names too, so the entry must lead to the endpoint.
  const endpoint = name.slice(ownEntryName('').length)
  const text = JSON.stringify(definition) ?? ''
  return text.includes(`"--endpoint","${endpoint}"`) || text.includes(`/${endpoint}"`)
}
