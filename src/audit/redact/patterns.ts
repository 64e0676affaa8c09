import { characterTable, concealSpans, createFinder, redacted, type Span } from './conceal.ts'
import { type Alphabet, alphabets, contextFormats, type TokenFormat, tokenFormats } from './formats.ts'

/** Whether the range has a digit near its start or changes case often. Neither is true of hyphenated words. */
function hasDigit(text: string, from: number, to: number): boolean {
  const end = Math.min(to, from + 48)
  let changes = 0
  let before = -1
  for (let at = from; at < end; at++) {
    const kind = kindOf(text.charCodeAt(at))
    if (kind === digit) return true
    if (kind === other) continue
    if (before !== -1 && kind !== before) changes++
    before = kind
  }
  return changes >= 6
}

/** Whether letter case and digits alternate constantly, unlike in `createHmacSha256Digest`, paths, hashes and UUIDs. */
function looksRandom(text: string, from: number, to: number): boolean {
  let changes = 0
  let digits = 0
  let letters = 0
  let seen = 0
  let before = -1
  for (let at = from; at < to; at++) {
    const kind = kindOf(text.charCodeAt(at))
    if (kind === other) continue
    letters++
    seen |= 1 << kind
    if (kind !== before) {
      if (before !== -1) changes++
      if (kind === digit) digits++
    }
    before = kind
  }
  return seen === all && digits >= 2 && changes * 3 >= letters && letters * 5 >= (to - from) * 4
}

const isHex = (text: string, from: number, to: number): boolean =>
  /^(?:[0-9a-f]{32,128}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i.test(text.slice(from, to))

const digit = 0
const upper = 1
const lower = 2
const other = 3
const all = 7

function kindOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return digit
  if (code >= 0x41 && code <= 0x5a) return upper
  return code >= 0x61 && code <= 0x7a ? lower : other
}

/** Returns the span of the token at a needle found from `start` to `end`; undefined if there is none. */
type Examine = (text: string, start: number, end: number, runEnd: RunEnd) => Span | undefined

/** Words that precede a credential: `API key: …`, `the token is …`. */
const nouns = ['key', 'token', 'secret', 'password', 'credential']

const examiners = new Map<string, Examine[]>()
const add = (needle: string, examine: Examine) => examiners.set(needle, [...(examiners.get(needle) ?? []), examine])
const inAnyCase = (word: string) => [word, word[0]?.toUpperCase() + word.slice(1), word.toUpperCase()]

for (const format of tokenFormats) for (const prefix of format.prefixes) add(prefix, prefixed(format, prefix))
for (const { word, alphabet, lengths } of contextFormats) {
  const examine = afterWord(alphabet, lengths)
  for (const needle of inAnyCase(word)) add(needle, examine)
}
for (const noun of nouns) for (const needle of inAnyCase(noun)) add(needle, afterNoun)

/** The strings to search for. Text with a token in it contains at least one of them. */
const tokenNeedles: readonly string[] = [...examiners.keys()]
const byNeedle = [...examiners.values()]

function prefixed({ alphabet = 'url', min = 0, max, needs, shape }: TokenFormat, prefix: string): Examine {
  const strict = needs !== undefined || max !== undefined || shape !== undefined || prefix.length < 4
  const sticky = shape && new RegExp(`(?:${shape.source})(?![A-Za-z0-9])`, 'y')
  return (text, start, end, runEnd) => {
    if (!startsToken(text, start, strict)) return undefined
    if (sticky) {
      sticky.lastIndex = end
      return sticky.test(text) ? [start, sticky.lastIndex] : undefined
    }
    let last = runEnd(alphabet, end)
    // Exclude a full stop at the end of a sentence.
    while (last > end && text.charCodeAt(last - 1) === 0x2e) last--
    const length = last - end
    if (length < min || (max !== undefined && (length > max || isAlphanumeric(text.charCodeAt(last))))) return undefined
    if (needs === 'digit' && !hasDigit(text, end, last)) return undefined
    if (needs === 'random' && !looksRandom(text, end, last)) return undefined
    return [start, last]
  }
}

/** Whether a token can start here: at a word boundary, or after an escape such as `%20`, `\n` or `\u003d`. */
function startsToken(text: string, start: number, strict: boolean): boolean {
  const before = text.charCodeAt(start - 1)
  if (!isAlphanumeric(before) && (!strict || (before !== 0x5f && before !== 0x2d))) return true
  return /(?:%[0-9A-Fa-f]{2}|\\[nrt]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2})$/.test(
    text.slice(Math.max(0, start - 6), start),
  )
}

function afterWord(alphabet: Alphabet, lengths: readonly number[]): Examine {
  const letters = alphabets[alphabet]
  const sizes = lengths.map((length) => `[${letters}]{${length}}`).join('|')
  const value = new RegExp(`[^\\r\\n]{1,40}?(?<![${letters}])(${sizes})(?![${letters}])`, 'dy')
  return (text, _, end) => {
    value.lastIndex = end
    const span = value.exec(text)?.indices?.[1]
    return span && looksRandom(text, span[0], span[1]) ? span : undefined
  }
}

const announced =
  /s?["'`)\]]{0,2}[ \t]{0,3}(?:(?:is|was|=>?|:=?|->)[ \t]{0,3})?["'`(]?((?:[A-Za-z0-9_~.+/-]){20,256}={0,2})/dy
const compound = /(?:api|access|auth|secret|private|client|app)[ _-]?$/i

function afterNoun(text: string, start: number, end: number): Span | undefined {
  announced.lastIndex = end
  const span = announced.exec(text)?.indices?.[1]
  if (!span) return undefined
  const [from, to] = span
  if (from === end) return undefined
  if (looksRandom(text, from, to)) return span
  // Treat a hash or a UUID as a key only if the text calls it a key.
  return isHex(text, from, to) && compound.test(text.slice(Math.max(0, start - 8), start)) ? span : undefined
}

const isAccessKeyId = (text: string, start: number): boolean => /^A(?:KIA|SIA)/.test(text.slice(start, start + 4))

/** The secrets near an AWS access key ID. A secret key usually appears next to its ID. */
function secretsBeside(text: string, [start, end]: Span): Span[] {
  const from = Math.max(0, start - 160)
  return [...text.slice(from, end + 160).matchAll(/(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])/g)]
    .map(({ index }): Span => [from + index, from + index + 40])
    .filter(([first, last]) => looksRandom(text, first, last))
}

type RunEnd = (alphabet: Alphabet, from: number) => number

const tables = Object.fromEntries(
  Object.entries(alphabets).map(([name, letters]) => [name, characterTable(new RegExp(`[${letters}]`))]),
) as Readonly<Record<Alphabet, Uint8Array>>

const isAlphanumeric = (code: number): boolean => tables.alnum[code] === 1

/** Creates a function that finds the end of a run. Without its cache of runs, the search would be quadratic. */
function createRunEnd(text: string): RunEnd {
  const known: Partial<Record<Alphabet, Span>> = {}
  return (alphabet, from) => {
    const last = known[alphabet]
    if (last && from >= last[0] && from <= last[1]) return last[1]
    const table = tables[alphabet]
    let end = from
    while (table[text.charCodeAt(end)] === 1) end++
    known[alphabet] = [from, end]
    return end
  }
}

interface Pattern {
  /** The text must contain one of these. Finding them is much cheaper than running the expression. */
  readonly hints: readonly string[]
  /**
   * Must run in linear time: each repetition covers one character class, and is bounded or cannot contain the start of
   * another match. If there is a capture group, the captured text is kept.
   */
  readonly find: RegExp
  readonly sure?: (credential: string) => boolean
}

/** Matches `rest` only where a token can start: at a word boundary, or after an escape such as `%20` or `\n`. */
const starting = (rest: string, flags = 'g', before = '\\w-') =>
  new RegExp(`(?:(?<![${before}])|(?<=%[0-9A-Fa-f]{2})|(?<=\\\\[nrt])|(?<=\\\\u[0-9A-Fa-f]{4}))${rest}`, flags)

/** Credentials that are recognisable by their form. Those with a prefix are in formats.ts. */
const patterns: readonly Pattern[] = [
  {
    hints: ['earer', 'EARER'],
    find: starting('(bearer(?: |%20|\\+|\\t){1,4})(?=[A-Za-z._~+/-]{0,64}[0-9])[\\w.~+/-]{8,}={0,2}', 'gi', '\\w'),
  },
  {
    hints: ['asic', 'ASIC'],
    find: starting('(basic(?: |%20|\\+|\\t){1,4})[A-Za-z0-9+/_-]{6,}={0,2}', 'gi', '\\w'),
    sure: (credential) => Buffer.from(credential, 'base64').includes(':'),
  },
  {
    // Without the last letter: at the end of the word, only the longer needle `password` is found.
    hints: ['ASSWOR', 'asswor'],
    // SQL: `ALTER ROLE bob WITH PASSWORD 'x'`, `CREATE LOGIN bob WITH PASSWORD = N'x'`.
    find: /(\b(?:with|set|encrypted|(?:no)?(?:login|superuser|createdb|createrole|inherit|replication|bypassrls)|(?:user|role)\s{1,8}\S{1,64})\s{1,8}password(?:\s{0,8}=)?\s{1,8}[en]?["'])(?:(?<=')(?:[^'\r\n]|'')+(?=')|(?<=")[^"\r\n]+(?="))/gi,
  },
  {
    hints: ['DENTIFIED', 'dentified'],
    // SQL: `CREATE USER bob IDENTIFIED BY 'x'`. In prose, `the user is identified by 'name'`.
    find: /((?:\b(?:user|role|exists|to)|,)\s{1,8}(?!(?:is|are|was|were|be|been|being|not|and|or|who|which|that)\s)\S{1,64}\s{1,8}identified\s{1,8}(?:with\s{1,8}\S{1,64}\s{1,8}(?:by|as)|by)(?:\s{1,8}password)?\s{1,8}["'])(?:(?<=')(?:[^'\r\n]|'')+(?=')|(?<=")[^"\r\n]+(?="))/gi,
  },
  { hints: ['eyJ'], find: starting('eyJ[\\w-]{8,}\\.[\\w-]{2,}(?:\\.[\\w-]*){1,3}') },
  { hints: ['://'], find: /(:\/\/[^\s/?#@:"'<>]{0,256}:)[^\s/?#"'<>]+(?=@)/g },
  // A token that stands alone before the host, as in a Sentry DSN.
  { hints: ['://'], find: /(:\/\/)[0-9a-f]{32}(?=(?::\[redacted\])?@)/g },
  { hints: ['hooks.slack.com/'], find: /(hooks\.slack\.com\/[a-z]{1,16}\/)[\w/-]{8,}/g },
  { hints: ['/api/webhooks/'], find: /(\/api\/webhooks\/\d{1,24}\/)[\w-]{20,}/g },
  { hints: [':A'], find: /(?<!\d)\d{6,16}:A[\w-]{32,40}(?![\w-])/g },
  { hints: ['-us'], find: starting('[0-9a-f]{32}-us\\d{1,2}(?!\\w)') },
  { hints: ['sig='], find: /([?&;]sig=)[\w%+/=-]{20,}/g },
  { hints: ['Q~'], find: starting('[\\w~.-]{3}\\dQ~[\\w~.-]{31,34}(?![\\w~-])') },
  { hints: ['+ASt', '+AMC', '+ABa'], find: starting('[A-Za-z0-9+/]{76}\\+A(?:St|MC|Ba)[A-Za-z0-9+/]{5,6}={1,2}') },
  { hints: ['.atlasv1.'], find: starting('[A-Za-z0-9]{14}\\.atlasv1\\.[\\w=-]{40,}') },
  { hints: ['.webhook.office.com/'], find: /(\.webhook\.office\.com\/webhookb2\/)[\w@/-]{20,}/g },
  { hints: ['_mmk'], find: starting('[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?!\\w)') },
  { hints: ['NRAL'], find: starting('[0-9A-Za-z]{32,40}NRAL(?!\\w)') },
  { hints: ['0/', '1/', '2/'], find: starting('[0-2]/\\d{10,20}(?:/\\d{10,20})?:[0-9a-f]{32}(?!\\w)') },
]

const hints = [...new Set(patterns.flatMap((pattern) => pattern.hints))]
const byHint = hints.map((hint) => patterns.filter((pattern) => pattern.hints.includes(hint)))
const needles = [...tokenNeedles, ...hints, 'PRIVATE KEY']
const find = createFinder(
  needles.map((text) => ({ text })),
  { dense: true },
)

/** Redacts everything that looks like a credential. Searches once for all kinds, because most strings contain none. */
export function concealPatterns(text: string): string {
  if (text.length < minLength) return text
  const { spans, hinted } = searchNeedles(text)
  const clean = hinted.size === 0 ? text : concealShapes(text, hinted)
  return concealSpans(clean, clean === text ? spans : searchNeedles(clean).spans)
}

/** Finds tokens, and the hints for other credentials. */
function searchNeedles(text: string): { readonly spans: Span[]; readonly hinted: ReadonlySet<number> } {
  const runEnd = createRunEnd(text)
  const spans: Span[] = []
  const hinted = new Set<number>()
  find(text, (start, end, needle) => {
    if (needle >= tokenNeedles.length) hinted.add(needle - tokenNeedles.length)
    for (const examine of byNeedle[needle] ?? []) {
      const span = examine(text, start, end, runEnd)
      if (span) spans.push(span, ...(isAccessKeyId(text, start) ? secretsBeside(text, span) : []))
    }
  })
  return { spans, hinted }
}

/** Redacts credentials by their hints (indexes into `hints`; the one after the last stands for private keys). */
function concealShapes(text: string, hinted: ReadonlySet<number>): string {
  let result = hinted.has(hints.length) ? concealPrivateKeys(text) : text
  const possible = new Set([...hinted].flatMap((hint) => byHint[hint] ?? []))
  for (const pattern of patterns) {
    if (!possible.has(pattern)) continue
    const { find, sure } = pattern
    result = result.replace(find, (found: string, kept: unknown) => {
      const before = typeof kept === 'string' ? kept : ''
      return sure && !sure(found.slice(before.length)) ? found : before + redacted
    })
  }
  return result
}

/** The length of the shortest string that can contain a credential: `://:x@h`. */
const minLength = 7

/** Redacts private keys. One expression for both markers would take quadratic time if only begin markers occur. */
function concealPrivateKeys(text: string): string {
  const begin = /-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----/g
  const end = /-----END [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----/g
  let result = ''
  let done = 0
  for (let found = begin.exec(text); found; found = begin.exec(text)) {
    result += text.slice(done, found.index) + redacted
    end.lastIndex = begin.lastIndex
    // A truncated key is redacted to the end of the text.
    done = end.exec(text) ? end.lastIndex : text.length
    begin.lastIndex = done
  }
  return result + text.slice(done)
}
