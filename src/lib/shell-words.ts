/** A word, quoted for a POSIX shell if necessary. */
export const shellQuote = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** A command line that can be pasted into a shell. */
export const commandLine = (words: readonly string[]): string => words.map(shellQuote).join(' ')
