import { memoize } from '../../lib/memoize.ts'
import { matches } from '../../lib/wildcard.ts'
import { redacted } from './conceal.ts'
import { characterTable } from './finder.ts'
import { isPath } from './secrets.ts'

/** Names of passwords, also those in connection strings and signed URLs. Their values are always redacted. */
const always =
  /^(?:pwd|passwd|password|passphrase|accountkey|sharedaccesskey|clientsecret|x-amz-(?:signature|security-token))$/i

/** Whether an argument is a password by its name. The path in an argument `pwd` is the working directory. */
export const isPassword = (name: string, value: unknown): boolean =>
  always.test(name) && !(/^pwd$/i.test(name) && typeof value === 'string' && isPath(value))

const maxName = 64

/** Redacts the values assigned to secret names in text: `password=…`, `--token …`, `X-Api-Key: …`, `"secret": …`. */
export function concealAssignments(text: string, isSecretKey: IsSecretKey): string {
  // Most strings contain no assignment, and this test is much cheaper than the search.
  if (!text.includes('=') && !text.includes(':') && !text.includes('--')) return text
  let result = ''
  let done = 0
  for (const place of text.matchAll(/[=:]|--(?=[A-Za-z])/g)) {
    const at = place.index
    if (at < done) continue
    const value =
      place[0] === '=' ? afterEquals(text, at) : place[0] === ':' ? afterColon(text, at) : afterFlag(text, at)
    if (!value || !(always.test(value.name) || isSecretKey(value.name))) continue
    const [start, end] = extentOf(text, value)
    if (end === start || (/^\d{1,12}$/.test(text.slice(start, end)) && isCount(value.name))) continue
    result += text.slice(done, start) + redacted
    done = end
  }
  return result + text.slice(done)
}

interface Value {
  readonly name: string
  readonly start: number
  /** Matches the end of the value if the value is not quoted. */
  readonly until: RegExp
}

const word = /[\s&;,"'`<>()[\]{}\\]/g
const member = new RegExp(word)
const line = /[\r\n"'`\\]/g

function afterEquals(text: string, at: number): Value | undefined {
  const next = text[at + 1]
  const name = nameBefore(text, at)
  return name === '' || next === '=' || next === '>' ? undefined : { name, start: at + 1, until: word }
}

function afterColon(text: string, at: number): Value | undefined {
  const end = skip(text, at - 1, -1, isWhitespace)
  const quoted = skip(text, end, -1, isQuote)
  if (quoted < end)
    return { name: nameBefore(text, quoted + 1), start: skip(text, at + 1, 1, isWhitespace), until: member }
  const start = skip(text, at + 1, 1, isSpace)
  const name = nameBefore(text, at)
  // Treat only names with a hyphen as headers. Others also occur in prose, such as `token: a unit of text`.
  return name.includes('-') && start > at + 1 ? { name, start, until: line } : undefined
}

function afterFlag(text: string, at: number): Value | undefined {
  const end = skip(text, at + 2, 1, isName)
  const start = skip(text, end, 1, isSpace)
  return start === end || text[start] === '-' ? undefined : { name: text.slice(at + 2, end), start, until: word }
}

/** The start and end of the value without its quotes. The range is empty if there is nothing to redact. */
function extentOf(text: string, { start, until }: Value): readonly [start: number, end: number] {
  // Skip the scheme before a credential, so that the scheme is kept.
  const scheme = /(?:basic|bearer|token|digest) +/iy
  scheme.lastIndex = start
  const from = scheme.test(text) ? scheme.lastIndex : start
  const opened = skip(text, from, 1, isQuote)
  if (text.startsWith(redacted, opened)) return [opened, opened]
  if (opened === from) {
    // Redact an object or list up to the end of the text, because its end cannot be found in truncated text.
    if (until === member && /[[{]/.test(text.charAt(from))) return [from, text.length]
    until.lastIndex = from
    return [from, until.exec(text)?.index ?? text.length]
  }
  // The quotes of nested JSON are preceded by backslashes. The closing quote has as many as the opening quote.
  const quote = text.slice(from, opened)
  for (let at = text.indexOf(quote, opened); at !== -1; at = text.indexOf(quote, at + 1)) {
    if (text[at - 1] !== '\\') return [opened, at]
  }
  return [opened, text.length]
}

const nameBefore = (text: string, end: number): string => text.slice(skip(text, end - 1, -1, isName) + 1, end)

function skip(text: string, from: number, step: 1 | -1, fits: (code: number) => boolean): number {
  let at = from
  for (let count = 0; count < maxName && fits(text.charCodeAt(at)); count++) at += step
  return at
}

const among = (characters: RegExp) => {
  const table = characterTable(characters)
  return (code: number): boolean => table[code] === 1
}
const isName = among(/[\w.-]/)
const isQuote = among(/["'`\\]/)
const isSpace = among(/[ \t]/)
const isWhitespace = among(/[ \t\r\n]/)

type IsSecretKey = (name: string) => boolean

/** Creates the test for secret names. Ignores case and separators: `*api_key*` matches `apiKey` and `X-Api-Key`. */
export function createKeyMatcher(patterns: readonly string[]): IsSecretKey {
  const wanted = [...new Set(patterns.map(plain))].filter((pattern) => pattern !== '')
  const isWanted = (name: string) => {
    const text = plain(name)
    return wanted.some((pattern) => matches(pattern, text))
  }
  return memoize(isWanted, 4096, 256)
}

/** Names for numbers of tokens, not for secret tokens: `max_tokens`, `tokens_used`, `token_count`. */
const count =
  /tokens$|tokens?(?:count|limit|used|usage|budget|total|left|remaining|perminute)$|^(?:max|min|num|total|n)tokens?/

/** Whether a name stands for a number of tokens. A number under such a name is not a secret. */
export const isCount = (name: string): boolean => count.test(plain(name))

/** A name's lower-case letters, digits and `*`. NFKC maps full-width and similar characters to plain ones. */
const plain = (name: string): string =>
  name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}*]/gu, '')
