import type { GuardConfig } from './selector.ts'

export type SqlGuardConfig = Pick<Extract<GuardConfig, { kind: 'sql' }>, 'dialect' | 'readOnly'>
export type Dialect = SqlGuardConfig['dialect']

export const dialectNames: Readonly<Record<Dialect, string>> = {
  any: 'SQL',
  postgres: 'PostgreSQL',
  mysql: 'MySQL',
  sqlite: 'SQLite',
}

const postgres: Lexis = {
  name: 'PostgreSQL',
  escapeStrings: true,
  dollar: 'tagged',
  nestedComments: true,
  returnEnds: true,
}
const mysql: Lexis = {
  name: 'MySQL',
  backslash: 'both',
  backquote: true,
  spacedDashes: true,
  hash: true,
  executableComments: true,
}
const mysqlAnsi: Lexis = { ...mysql, name: 'MySQL with ANSI_QUOTES', backslash: 'single' }
const mysqlPlain: Lexis = { ...mysql, name: 'MySQL with NO_BACKSLASH_ESCAPES', backslash: undefined }
const sqlite: Lexis = { name: 'SQLite', backquote: true, bracket: 'first' }

/** The common ways to tokenize SQL, other than PostgreSQL's. */
const others: readonly Lexis[] = [
  { ...postgres, name: 'PostgreSQL without standard_conforming_strings', backslash: 'single' },
  mysql,
  mysqlAnsi,
  mysqlPlain,
  sqlite,
  { name: 'SQL Server', bracket: 'doubled', nestedComments: true },
  { name: 'Oracle', alternative: true },
  { name: 'Snowflake', backslash: 'single', dollar: 'bare', slashes: true },
  { name: 'BigQuery', backslash: 'both', triple: true, backquote: true, hash: true },
]

/**
 * The name of a dialect that splits the SQL text into code, quotes and comments differently from PostgreSQL. Undefined
 * if all dialects split it alike; the result of PostgreSQL's parser then holds for all of them.
 */
export function disagreeing(text: string): string | undefined {
  const base = marksOf(text, spansOf(text, postgres))
  const odd = others.find((lexis) => !alike(base, marksOf(text, spansOf(text, lexis))))
  return odd?.name
}

const marks = { string: 1, name: 1, bracket: 2, comment: 3 } as const

/** The context of each character: 0 code, 1 quotes, 2 brackets, 3 comment. */
function marksOf(text: string, spans: readonly Span[]): Uint8Array {
  const found = new Uint8Array(text.length)
  for (const { kind, start, end } of spans) found.fill(marks[kind], start, end)
  return found
}

/**
 * Whether another dialect splits the text as PostgreSQL does. The content of brackets may differ: a subscript in
 * PostgreSQL is a name in other dialects. PostgreSQL's parser checks the content as code, so the other dialect never
 * runs code that was not checked. The text after the brackets must match again.
 */
const alike = (base: Uint8Array, other: Uint8Array): boolean =>
  other.every((mark, at) => mark === marks.bracket || mark === base[at])

/** The lower-case words in the code, without quotes and comments, split in a way that is valid for every dialect. */
export function codeWords(text: string, lexis: Lexis = postgres): ReadonlySet<string> {
  let code = ''
  let at = 0
  for (const { start, end } of spansOf(text, lexis)) {
    code += `${text.slice(at, start)} `
    at = end
  }
  return new Set((code + text.slice(at)).toLowerCase().match(/[\p{L}\p{M}\p{N}_$@]+/gu) ?? [])
}

/** Whether the text contains spaces that separate words in some dialects and are letters in others. */
export function hasOddSpace(text: string): boolean {
  if (/^[\x00-\x7f]*$/.test(text)) return false
  let at = 0
  for (const { start, end } of [...spansOf(text, postgres), { start: text.length, end: text.length }]) {
    if (/(?! )[\x80-\x9f\p{Z}\p{Cf}]/u.test(text.slice(at, start))) return true
    at = end
  }
  return false
}

/** Characters that become quotes and semicolons when converted to a smaller character set. */
const convertible: Readonly<Record<string, string>> = {
  ...signs("'", '\u02b9\u02bc\u02c8\u2018\u2019\u201b\u2032\u2035\uff07'),
  ...signs('"', '\u02ba\u201c\u201d\u201f\u2033\u2036\uff02'),
  ...signs(';', '\u037e\uff1b'),
  ...signs('\\', '\u2216\uff3c'),
}
const anyConvertible = new RegExp(`[${Object.keys(convertible).join('')}]`, 'g')

/** Whether the text becomes several statements or a write once look-alike quotes and semicolons become real ones. */
export function unsafeConverted(text: string, readOnly: boolean): boolean {
  const converted = text.replace(anyConvertible, (sign) => convertible[sign] as string)
  return converted !== text && [postgres, ...others].some((lexis) => gainsStatement(converted, lexis, text, readOnly))
}

/** Keywords of statements that may write. They may occur anywhere in a statement. */
const writes = new Set(
  `alter attach call copy create delete detach drop dumpfile exec execute grant insert into load lock merge outfile pragma
  rename replace revoke set truncate update vacuum`.split(/\s+/),
)

/**
 * Whether `text`, as `lexis` tokenizes it, has several statements or, with `readOnly`, a keyword from `writes` that
 * `before` does not have.
 */
function gainsStatement(text: string, lexis: Lexis, before: string, readOnly: boolean, lexisBefore = lexis): boolean {
  if (countStatements(text, lexis) > 1) return true
  if (!readOnly) return false
  const known = codeWords(before, lexisBefore)
  return [...codeWords(text, lexis)].some((word) => writes.has(word) && !known.has(word))
}

function countStatements(text: string, lexis: Lexis): number {
  let count = 0
  let begun = false
  let at = 0
  const code = (until: number) => {
    for (; at < until; at++) {
      if (text[at] === ';') begun = false
      else if (!begun && !/\s/.test(text[at] as string)) {
        begun = true
        count++
      }
    }
  }
  for (const { kind, start, end } of spansOf(text, lexis)) {
    code(start)
    if (kind !== 'comment' && !begun) {
      begun = true
      count++
    }
    at = end
  }
  code(text.length)
  return count
}

function signs(plain: string, likes: string): Record<string, string> {
  return Object.fromEntries([...likes].map((like) => [like, plain]))
}

/** Names that contain quotes. They are unusual, and many parsers get them wrong. */
const unusualName = /^(?:`[^`]*["';\\]|\[[^\]]*["';`\\])/

/** Syntax of another dialect that PostgreSQL's parser would misread. */
const foreign = /--|\/\*|\*\/|[#$\\[\]`]/

/**
 * Rewrites the statement for PostgreSQL's parser, with the same character positions. Undefined if that is impossible.
 * Comments become spaces, and the content of strings is replaced, because it is irrelevant.
 */
export function asPostgres(text: string, dialect: 'mysql' | 'sqlite', readOnly: boolean): string | undefined {
  const own = dialect === 'mysql' ? mysql : sqlite
  const settings = dialect === 'mysql' ? [mysqlAnsi, mysqlPlain] : []
  if (settings.some((lexis) => gainsStatement(text, lexis, text, readOnly, own))) return undefined
  const spans = spansOf(text, own)
  const ends = { kind: 'end' as const, start: text.length, end: text.length, closed: true }
  let written = ''
  for (const { kind, start, end, closed } of [...spans, ends]) {
    const code = text.slice(written.length, start)
    // Refuse an unclosed quote or comment. Only a line comment needs no end.
    if (foreign.test(code) || (!closed && !(kind === 'comment' && !text.startsWith('/*', start)))) return undefined
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
  readonly name: string
  /** The kind of quotes in which a backslash escapes the next character. */
  readonly backslash?: 'single' | 'both' | undefined
  /** Whether `E'…'` is a string with backslash escapes. */
  readonly escapeStrings?: boolean
  /** Whether `$$…$$` is a string: `tagged` allows a tag between the dollar signs, `bare` does not. */
  readonly dollar?: 'tagged' | 'bare'
  /** Whether `q'[…]'` is a string. */
  readonly alternative?: boolean
  /** Whether `'''…'''` and `"""…"""` are strings. */
  readonly triple?: boolean
  readonly backquote?: boolean
  /** Whether `[…]` is a name: `first` if it ends at the first `]`, `doubled` if `]]` is an escaped `]`. */
  readonly bracket?: 'first' | 'doubled'
  /** Whether `--` starts a comment only before a space or a control character. */
  readonly spacedDashes?: boolean
  readonly hash?: boolean
  /** Whether `//` starts a comment. */
  readonly slashes?: boolean
  readonly nestedComments?: boolean
  /** Whether the content of `/*! … *\/` is run. */
  readonly executableComments?: boolean
  /** Whether a line comment also ends at a carriage return. */
  readonly returnEnds?: boolean
}

type SpanKind = 'string' | 'name' | 'bracket' | 'comment'

/** A part of the text that is not code: `text.slice(start, end)`, including quotes. */
interface Span {
  readonly kind: SpanKind
  readonly start: number
  readonly end: number
  readonly closed: boolean
}

const unclosed = -1

const closing: Readonly<Record<string, string>> = { '[': ']', '(': ')', '{': '}', '<': '>' }
const tagged = /\$(?:[A-Za-z_\x80-\uffff][\w\x80-\uffff]*)?\$/y
const word = /[\w$\x80-\uffff]/

/** The quotes and comments in the text, as one dialect reads it. Unclosed ones extend to the end. */
function spansOf(text: string, lexis: Lexis): readonly Span[] {
  const spans: Span[] = []
  let at = 0
  const add = (kind: SpanKind, found: number) => {
    const closed = found !== unclosed
    const end = closed ? found : text.length
    spans.push({ kind, start: at, end, closed })
    at = end
  }
  while (at < text.length) {
    const sign = text[at] as string
    const next = text[at + 1]
    if (sign === "'" || sign === '"') add(sign === "'" ? 'string' : 'name', endOfQuoted(text, at, lexis))
    else if (sign === '`' && lexis.backquote) add('name', endOfRun(text, at + 1, '`', lexis.triple === true))
    else if (sign === '[' && lexis.bracket) add('bracket', endOfBracket(text, at, lexis.bracket))
    else if (sign === '$' && lexis.dollar) {
      const end = endOfDollar(text, at, lexis.dollar)
      if (end === undefined) at++
      else add('string', end)
    } else if (startsLineComment(text, at, lexis)) add('comment', endOfLine(text, at, lexis))
    else if (sign === '/' && next === '*') {
      if (lexis.executableComments && /^(?:M?!)/.test(text.slice(at + 2, at + 4))) at += 3
      else add('comment', endOfComment(text, at, lexis))
    } else at++
  }
  return spans
}

function endOfQuoted(text: string, at: number, lexis: Lexis): number {
  const quote = text[at] as string
  if (lexis.triple && text.startsWith(quote.repeat(3), at)) return endOfTriple(text, at + 3, quote.repeat(3))
  if (quote === "'") {
    const delimiter = lexis.alternative && prefixed(text, at, /[nN]?[qQ]$/) ? text[at + 1] : undefined
    if (delimiter !== undefined && !/\s/.test(delimiter)) {
      const end = text.indexOf(`${closing[delimiter] ?? delimiter}'`, at + 2)
      return end === -1 ? unclosed : end + 2
    }
    const escapes = lexis.backslash !== undefined || (lexis.escapeStrings === true && prefixed(text, at, /[eE]$/))
    return endOfRun(text, at + 1, quote, escapes)
  }
  return endOfRun(text, at + 1, quote, lexis.backslash === 'both')
}

/** Whether a quote has this prefix, as a separate word, before it. */
function prefixed(text: string, at: number, prefix: RegExp): boolean {
  const before = text.slice(Math.max(0, at - 3), at)
  const found = prefix.exec(before)
  if (!found) return false
  const outside = at - found[0].length - 1
  return outside < 0 || !word.test(text[outside] as string)
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
  return unclosed
}

function endOfTriple(text: string, from: number, quotes: string): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text.startsWith(quotes, at)) return at + quotes.length
  }
  return unclosed
}

function endOfBracket(text: string, start: number, form: 'first' | 'doubled'): number {
  if (form === 'doubled') return endOfRun(text, start + 1, ']', false)
  const end = text.indexOf(']', start)
  return end === -1 ? unclosed : end + 1
}

/** The position after a dollar quote. Undefined if the dollar sign does not start a quote. */
function endOfDollar(text: string, at: number, form: 'tagged' | 'bare'): number | undefined {
  if (at > 0 && word.test(text[at - 1] as string)) return undefined
  tagged.lastIndex = at
  const tag = form === 'bare' ? (text[at + 1] === '$' ? '$$' : undefined) : tagged.exec(text)?.[0]
  if (tag === undefined) return undefined
  const end = text.indexOf(tag, at + tag.length)
  return end === -1 ? unclosed : end + tag.length
}

function startsLineComment(text: string, at: number, { spacedDashes, hash, slashes }: Lexis): boolean {
  if (text.startsWith('--', at))
    return !spacedDashes || at + 2 >= text.length || /[\0-\x20]/.test(text[at + 2] as string)
  return (hash === true && text[at] === '#') || (slashes === true && text.startsWith('//', at))
}

function endOfLine(text: string, at: number, { returnEnds }: Lexis): number {
  const end = text.slice(at).search(returnEnds ? /[\n\r]/ : /\n/)
  return end === -1 ? text.length : at + end
}

function endOfComment(text: string, start: number, { nestedComments }: Lexis): number {
  let depth = 1
  for (let at = start + 2; at < text.length; at++) {
    if (text.startsWith('*/', at)) {
      depth--
      at++
      if (depth === 0) return at + 1
    } else if (nestedComments && text.startsWith('/*', at)) {
      depth++
      at++
    }
  }
  return unclosed
}
