/** `1 tool`, `3 tools`. */
export const count = (number: number, thing: string): string => `${number} ${thing}${number === 1 ? '' : 's'}`

/** `12 ms`, `1.5 s`. */
export const took = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`)

const spans: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
  [1_000, 'second'],
]

/** `3 hours`: how long, in the one unit that says enough. */
export function span(ms: number): string {
  const [unit, name] = spans.find(([size]) => ms >= size) ?? [1_000, 'second']
  return count(Math.floor(ms / unit), name)
}

/** A word for a POSIX shell. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** A command line to paste. */
export const commandLine = (words: readonly string[]): string => words.map(quoted).join(' ')
