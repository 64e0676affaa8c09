/** Between server and tool, in any spelling; the configured one joins them. */
export const separators: readonly string[] = ['::', '.', '__', '/']

/** What may stand before a spelling: our own name, as clients prefix it. */
const ownPrefixes = separators.map((separator) => `toolway${separator}`)

/** One way to read a spelling: `text` is a served name, or a server and a tool with one of `separators` between. */
export interface Reading {
  readonly text: string
  readonly separators: readonly string[]
}

/** Every way to read a spelling, first as it stands. */
export function readings(spelling: string, configured: string): readonly Reading[] {
  const known = separators.includes(configured) ? separators : [...separators, configured]
  const stripped = ownPrefixes.filter((prefix) => spelling.startsWith(prefix))
  return [
    { text: spelling, separators: known },
    ...stripped.map((prefix) => ({ text: spelling.slice(prefix.length), separators: known })),
    ...(spelling.startsWith('toolway_') ? [{ text: spelling.slice('toolway_'.length), separators: ['_'] }] : []),
  ]
}
