import { redacted } from './conceal.ts'
import { searchTokens, type TokenSpan, tokenNeedles } from './find-tokens.ts'
import { createFinder } from './finder.ts'

interface Pattern {
  /** The text must contain one of these; finding them is much cheaper than the expression. */
  readonly hints: readonly string[]
  /**
   * Must run in linear time: every repetition is of one class and is bounded or contains no second start. The group, if
   * any, is kept.
   */
  readonly find: RegExp
  readonly sure?: (credential: string) => boolean
}

/** A token starts at a word boundary or after an escape such as `%20`, `\n` or `\u003d`. */
const starting = (rest: string, flags = 'g', before = '\\w-') =>
  new RegExp(`(?:(?<![${before}])|(?<=%[0-9A-Fa-f]{2})|(?<=\\\\[nrt])|(?<=\\\\u[0-9A-Fa-f]{4}))${rest}`, flags)

/** Credentials recognisable by their form; those with a prefix are in formats.ts. */
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
  { hints: ['eyJ'], find: starting('eyJ[\\w-]{8,}\\.[\\w-]{2,}(?:\\.[\\w-]*){1,3}') },
  { hints: ['://'], find: /(:\/\/[^\s/?#@:"'<>]{0,256}:)[^\s/?#"'<>]+(?=@)/g },
  // A token alone before the host, as in a Sentry DSN.
  { hints: ['://'], find: /(:\/\/)[0-9a-f]{32}(?=(?::\[redacted\])?@)/g },
  { hints: ['hooks.slack.com/'], find: /(hooks\.slack\.com\/[a-z]{1,16}\/)[\w/-]{8,}/g },
  { hints: ['/api/webhooks/'], find: /(\/api\/webhooks\/\d{1,24}\/)[\w-]{20,}/g },
  { hints: [':A'], find: /(?<!\d)\d{6,16}:A[\w-]{32,40}(?![\w-])/g },
  { hints: ['-us'], find: starting('[0-9a-f]{32}-us\\d{1,2}(?!\\w)') },
  { hints: ['sig='], find: /([?&;]sig=)[\w%+/=-]{20,}/g },
  { hints: ['Q~'], find: starting('[\\w~.-]{3}\\dQ~[\\w~.-]{31,34}(?![\\w~-])') },
  { hints: ['+ASt', '+AMC', '+ABa'], find: starting('[A-Za-z0-9+/]{76}\\+A(?:St|MC|Ba)[A-Za-z0-9+/]{5,6}={1,2}') },
  { hints: ['.atlasv1.'], find: starting('[A-Za-z0-9]{14}\\.atlasv1\\.[\\w=-]{40,}') },
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

/** One pass for all kinds, because most texts contain none. */
export function concealPatterns(text: string): string {
  if (text.length < shortest) return text
  const tokens = searchTokens(text)
  const hinted = new Set<number>()
  find(text, (start, end, needle) => {
    if (needle < tokenNeedles.length) tokens.examine(needle, start, end)
    else hinted.add(needle - tokenNeedles.length)
  })
  const clean = hinted.size === 0 ? text : concealShapes(text, hinted)
  return clean === text ? without(text, tokens.spans()) : concealTokens(clean)
}

function concealTokens(text: string): string {
  const tokens = searchTokens(text)
  find(text, (start, end, needle) => tokens.examine(needle, start, end))
  return without(text, tokens.spans())
}

function without(text: string, spans: readonly TokenSpan[]): string {
  let result = ''
  let done = 0
  for (const [start, end] of spans) {
    result += text.slice(done, start) + redacted
    done = end
  }
  return done === 0 ? text : result + text.slice(done)
}

/** `hinted` holds indexes into `hints`; the index after the last stands for private keys. */
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

/** `://:x@h` */
const shortest = 7

/** Not one regular expression: it would search for the end again from each beginning. */
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
