import type { GuardConfig } from './selector.ts'

export type SqlGuardConfig = Pick<Extract<GuardConfig, { kind: 'sql' }>, 'dialect' | 'readOnly'>
export type Dialect = SqlGuardConfig['dialect']

export const dialectNames: Readonly<Record<Dialect, string>> = {
  any: 'SQL',
  postgres: 'PostgreSQL',
  mysql: 'MySQL',
  sqlite: 'SQLite',
}

/** SQL that all databases split in the same way into code, and quotes and comments. */
export interface PlainSql {
  readonly code: string
  readonly other: string
}

const otherTokens = [
  // Not `q'…'` of Oracle. A doubled quote ends one string and begins another, without code between them.
  /(?<![qQ])'[^'\\]*'|"[^"\\]*"/,
  // MySQL needs a space after the dashes. PostgreSQL also ends the comment at a carriage return.
  /--(?=[ \t\n]|$)[^\r\n]*(?:\n|$)/,
  // Neither nested nor executed.
  /\/\*(?!M?!)(?:[^*/]|\*(?!\/)|\/(?!\*))*\*\//,
]
const codeTokens = [
  // `$1` and `v$x`, but not `$$` or `$x$`.
  /(?<![\p{L}\p{M}\p{N}_$])\$\d+(?![\p{L}\p{M}\p{N}_$])|(?<=[\p{L}\p{M}\p{N}_])\$(?=[\p{L}\p{N}_])/u,
  // `//` begins a comment in Snowflake. Other spaces separate words in some databases only.
  /\/(?![*/])|-(?!-)|[\p{L}\p{M}\p{N}_ \t\n\r\f\v.,;:()*+<>=!?%^&|~@]/u,
]
const sources = (tokens: readonly RegExp[]) => tokens.map(({ source }) => source).join('|')
const plainToken = new RegExp(`(?<other>${sources(otherTokens)})|${sources(codeTokens)}`, 'uy')

/** Splits SQL for a database of any dialect. Returns the position of what some databases read differently. */
export function splitPlain(text: string): PlainSql | number {
  // BigQuery has strings in three quotes.
  const triple = text.search(/'''|"""/)
  if (triple !== -1) return triple
  const plain = { code: '', other: '' }
  for (let at = 0; at < text.length; at = plainToken.lastIndex) {
    plainToken.lastIndex = at
    const found = plainToken.exec(text)
    if (!found) return at
    const other = found.groups?.other
    plain.code += other === undefined ? found[0] : ' '
    if (other !== undefined) plain.other += `${other} `
  }
  return plain
}

/** Characters that become quotes, semicolons or backslashes when converted to a smaller character set. */
const convertible =
  /[\u02b9\u02ba\u02bc\u02c8\u037e\u2018\u2019\u201b-\u201d\u201f\u2032\u2033\u2035\u2036\u2216\uff02\uff07\uff1b\uff3c]/

/** Whether the text may become several statements or a write once look-alike quotes and semicolons become real ones. */
export function unsafeConverted(text: string, { other }: PlainSql, readOnly: boolean): boolean {
  if (!convertible.test(text)) return false
  const mayWrite = [...sqlWords(other.replace(/[$@]/g, ' '))].some((word) => writes.has(word))
  return (readOnly && mayWrite) || /[;\u037e\uff1b]\s*\S/.test(text)
}

/** The lower-case words in code, split in a way that is valid for every dialect. */
export const sqlWords = (code: string): ReadonlySet<string> =>
  new Set(code.toLowerCase().match(/[\p{L}\p{M}\p{N}_$@]+/gu) ?? [])

/** Keywords of statements that may write. They may occur anywhere in a statement. */
const writes = new Set(
  `alter attach call copy create delete detach drop dumpfile exec execute grant insert into load lock merge outfile pragma
  rename replace revoke set truncate update vacuum`.split(/\s+/),
)

/**
 * Whether the text, as `lexis` tokenizes it, has several statements or, with `readOnly`, a keyword from `writes` that it
 * does not have for `own`.
 */
function gainsStatement(text: string, lexis: Lexis, own: Lexis, readOnly: boolean): boolean {
  if (countStatements(text, lexis) > 1) return true
  if (!readOnly) return false
  const known = sqlWords(sqlCode(text, own))
  return [...sqlWords(sqlCode(text, lexis))].some((word) => writes.has(word) && !known.has(word))
}

/** The code, with `quote` for each quote. */
function sqlCode(text: string, lexis: Lexis, quote = ' '): string {
  let code = ''
  let at = 0
  for (const { kind, start, end } of spansOf(text, lexis)) {
    code += text.slice(at, start) + (kind === 'comment' ? ' ' : quote)
    at = end
  }
  return code + text.slice(at)
}

const countStatements = (text: string, lexis: Lexis): number =>
  sqlCode(text, lexis, 'x')
    .split(';')
    .filter((statement) => statement.trim() !== '').length

/** Names that contain quotes. They are unusual, and many parsers get them wrong. */
const unusualName = /^(?:`[^`]*["';\\]|\[[^\]]*["';`\\])/

/** Syntax of another dialect that PostgreSQL's parser would misread. */
const foreignSyntax = /--|\/\*|\*\/|[#$\\[\]`]/

/**
 * Rewrites the statement for PostgreSQL's parser, with the same character positions. Undefined if that is impossible.
 * Comments become spaces, and the content of strings is replaced, because it is irrelevant.
 */
export function asPostgres(text: string, dialect: 'mysql' | 'sqlite', readOnly: boolean): string | undefined {
  const own = dialect === 'mysql' ? mysql : sqlite
  const settings = dialect === 'mysql' ? [mysqlAnsi, mysqlPlain] : []
  if (settings.some((lexis) => gainsStatement(text, lexis, own, readOnly))) return undefined
  const spans = spansOf(text, own)
  const ends = { kind: 'end' as const, start: text.length, end: text.length, closed: true }
  let written = ''
  for (const { kind, start, end, closed } of [...spans, ends]) {
    const code = text.slice(written.length, start)
    // Refuse an unclosed quote or comment. Only a line comment needs no end.
    if (foreignSyntax.test(code) || (!closed && !(kind === 'comment' && !text.startsWith('/*', start))))
      return undefined
    const inner = text.slice(start + 1, end - 1)
    if (unusualName.test(text.slice(start, end))) return undefined
    written += code
    if (kind === 'comment') written += ' '.repeat(end - start)
    else if (kind === 'string' || (kind !== 'end' && inner === '')) written += `'${'x'.repeat(inner.length)}'`
    else if (kind !== 'end') written += `"${inner.replace(/[^\w ]/g, '\u00b7')}"`
  }
  return written
}

/** The syntax for quotes and comments in one dialect with one set of settings. */
interface Lexis {
  /** The kind of quotes in which a backslash escapes the next character. */
  readonly backslash?: 'single' | 'both'
  /** Whether `[…]` is a name. */
  readonly bracket?: boolean
  /** Whether `#` starts a comment, and `--` only before a space or a control character; `/*! … *\/` is run. */
  readonly mysql?: boolean
}

const mysqlPlain: Lexis = { mysql: true }
const mysql: Lexis = { ...mysqlPlain, backslash: 'both' }
const mysqlAnsi: Lexis = { ...mysqlPlain, backslash: 'single' }
const sqlite: Lexis = { bracket: true }

/** A part of the text that is not code: `text.slice(start, end)`, including quotes. */
interface SqlSpan {
  readonly kind: 'string' | 'name' | 'comment'
  readonly start: number
  readonly end: number
  readonly closed: boolean
}

const unclosedEnd = -1

/** The quotes and comments in the text, as MySQL or SQLite reads it. Unclosed ones extend to the end. */
function spansOf(text: string, lexis: Lexis): readonly SqlSpan[] {
  const spans: SqlSpan[] = []
  let at = 0
  const add = (kind: SqlSpan['kind'], found: number) => {
    const closed = found !== unclosedEnd
    const end = closed ? found : text.length
    spans.push({ kind, start: at, end, closed })
    at = end
  }
  while (at < text.length) {
    const sign = text[at] as string
    if (sign === "'") add('string', endOfRun(text, at + 1, sign, lexis.backslash !== undefined))
    else if (sign === '"') add('name', endOfRun(text, at + 1, sign, lexis.backslash === 'both'))
    else if (sign === '`') add('name', endOfRun(text, at + 1, sign, false))
    else if (sign === '[' && lexis.bracket) add('name', endAfter(text, at, ']'))
    else if (startsLineComment(text, at, lexis)) add('comment', endAfter(text, at, '\n'))
    else if (!text.startsWith('/*', at)) at++
    else if (lexis.mysql && /^(?:M?!)/.test(text.slice(at + 2, at + 4))) at += 3
    else add('comment', endAfter(text, at + 2, '*/'))
  }
  return spans
}

/** The position after the closing quote. A doubled quote is an escaped quote. */
function endOfRun(text: string, from: number, quote: string, escapes: boolean): number {
  for (let at = from; at < text.length; at++) {
    if (escapes && text[at] === '\\') at++
    else if (text[at] === quote) {
      if (text[at + 1] !== quote) return at + 1
      at++
    }
  }
  return unclosedEnd
}

function endAfter(text: string, from: number, sign: string): number {
  const found = text.indexOf(sign, from)
  return found === -1 ? unclosedEnd : found + sign.length
}

function startsLineComment(text: string, at: number, { mysql: isMysql = false }: Lexis): boolean {
  if (!text.startsWith('--', at)) return isMysql && text[at] === '#'
  return !isMysql || at + 2 >= text.length || /[\0-\x20]/.test(text[at + 2] as string)
}
