import type { GuardConfig } from './guard.ts'

export type Dialect = Extract<GuardConfig, { kind: 'sql' }>['dialect']

/** How each is called. */
export const dialectNames: Readonly<Record<Dialect, string>> = {
  postgres: 'PostgreSQL',
  mysql: 'MySQL',
  sqlite: 'SQLite',
}

/**
 * What PostgreSQL and the dialect split into words in different ways: comments (nested in one, executable in another),
 * escapes, dollar quotes, brackets. Two parsers that disagree are how statements get smuggled, so of another dialect
 * only what both read alike is let through.
 */
const ambiguous: Readonly<Record<Dialect, RegExp | undefined>> = {
  postgres: undefined,
  mysql: /--|\/\*|[#$\\[\]]/,
  sqlite: /--|\/\*|[#$\\[\]]/,
}

/** The statement as PostgreSQL would write it, or `undefined` if the dialect reads it in some other way. */
export function asPostgres(text: string, dialect: Dialect): string | undefined {
  if (dialect === 'postgres') return text
  if (ambiguous[dialect]?.test(text)) return undefined
  // Plain names in back-quotes are the one habit worth keeping; among other quotes the exchange could change what is
  // quoted and what is not.
  if (text.includes('`') && text.includes('"')) return undefined
  const quoted = text.replace(/`(\w+)`/g, '"$1"')
  return quoted.includes('`') ? undefined : quoted
}
