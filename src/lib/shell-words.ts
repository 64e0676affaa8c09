/** A word, quoted for a POSIX shell if necessary. */
export const shellQuote = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

export const commandLine = (words: readonly string[]): string => words.map(shellQuote).join(' ')
