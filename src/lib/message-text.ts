import { speltOut } from './characters.ts'

/** Shortens text to `maxLength` UTF-16 code units, with an ellipsis. Leaves no half of a surrogate pair. */
export function shorten(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text.toWellFormed()
  const start = text.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, '')
  return `${start.trimEnd().toWellFormed()}…`
}

/** Quotes untrusted text for a message: short, on one line, and with escapes for invisible characters. */
export const quote = (text: string, maxLength = 100): string => speltOut(JSON.stringify(shorten(text, maxLength)))

/** The same with escapes for all characters beyond ASCII, for names that must not be mistaken for similar ones. */
export const quoteAscii = (text: string, maxLength = 100): string =>
  JSON.stringify(text.length > maxLength ? `${text.slice(0, maxLength - 3)}...` : text).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** The message of anything that was thrown, also of values that are not errors or cannot be converted to text. */
export function thrownText(thrown: unknown): string {
  try {
    const message: unknown = (thrown as { message?: unknown } | null | undefined)?.message
    return typeof message === 'string' ? message : String(thrown)
  } catch {
    return 'an unknown error'
  }
}

/** Formats a number with a noun: `1 server`, `3 servers`. */
export const pluralize = (number: number, thing: string): string => `${number} ${thing}${number === 1 ? '' : 's'}`

/** A word, quoted for a POSIX shell if necessary. */
export const shellQuote = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

export const commandLine = (words: readonly string[]): string => words.map(shellQuote).join(' ')

/**
 * A short reason for a failed connection, such as ECONNREFUSED; the first one if several addresses were tried. Never the
 * error's message, which may repeat what was sent.
 */
export function failureReason(thrown: unknown): string {
  const error = thrown instanceof AggregateError ? thrown.errors[0] : thrown
  if (!(error instanceof Error)) return 'unknown reason'
  return (error as NodeJS.ErrnoException).code ?? error.name
}
