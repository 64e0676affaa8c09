import { matches } from '../../lib/wildcard.ts'
import { redacted } from './conceal.ts'

/** Names of passwords in connection strings and signed addresses, whatever else is configured. */
const always =
  /^(?:pwd|passwd|password|passphrase|accountkey|sharedaccesskey|clientsecret|x-amz-(?:signature|security-token))$/i

const maxName = 64

/**
 * Takes out values that a text gives to secret names: `password=…` in addresses, forms, connection strings and
 * commands, `--token …`, `X-Api-Key: …`, and `"secret": …` in JSON that is cut or inside something else.
 */
export function concealAssignments(text: string, isSecretKey: IsSecretKey): string {
  // Most texts give nothing to anything, and to see that is much cheaper than to look for all the places.
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
  /** What ends it; the quotes that it stands in otherwise. */
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
  const start = skip(text, at + 1, 1, isSpace)
  const quoted = skip(text, at - 1, -1, isQuote)
  if (quoted < at - 1) return { name: nameBefore(text, quoted + 1), start, until: member }
  const name = nameBefore(text, at)
  // Prose says `token: a unit of text`; with a hyphen it is the name of a header.
  return name.includes('-') && start > at + 1 ? { name, start, until: line } : undefined
}

function afterFlag(text: string, at: number): Value | undefined {
  const end = skip(text, at + 2, 1, isName)
  const start = skip(text, end, 1, isSpace)
  return start === end || text[start] === '-' ? undefined : { name: text.slice(at + 2, end), start, until: word }
}

/** Where the value itself begins and ends, without its quotes; both the same where there is nothing to hide. */
function extentOf(text: string, { start, until }: Value): readonly [start: number, end: number] {
  // A scheme before a credential tells nothing.
  const scheme = /(?:basic|bearer|token|digest) +/iy
  scheme.lastIndex = start
  const from = scheme.test(text) ? scheme.lastIndex : start
  const opened = skip(text, from, 1, isQuote)
  if (text.startsWith(redacted, opened)) return [opened, opened]
  if (opened === from) {
    // Where an object ends is not to be known in half a text.
    if (until === member && /[[{]/.test(text.charAt(from))) return [from, text.length]
    until.lastIndex = from
    return [from, until.exec(text)?.index ?? text.length]
  }
  // Quotes of JSON in JSON come with their backslashes, and end with as many.
  const quote = text.slice(from, opened)
  for (let at = text.indexOf(quote, opened); at !== -1; at = text.indexOf(quote, at + 1)) {
    if (text[at - 1] !== '\\') return [opened, at]
  }
  return [opened, text.length]
}

const nameBefore = (text: string, end: number): string => text.slice(skip(text, end - 1, -1, isName) + 1, end)

/** The first place that no longer fits, at most a name's length away. */
function skip(text: string, from: number, step: 1 | -1, fits: (code: number) => boolean): number {
  let at = from
  for (let count = 0; count < maxName && fits(text.charCodeAt(at)); count++) at += step
  return at
}

const among = (characters: RegExp) => {
  const table = Uint8Array.from({ length: 128 }, (_, code) => (characters.test(String.fromCharCode(code)) ? 1 : 0))
  return (code: number): boolean => table[code] === 1
}
const isName = among(/[\w.-]/)
const isQuote = among(/["'`\\]/)
const isSpace = among(/[ \t]/)

/** Whether the value under a name is never written down. */
type IsSecretKey = (name: string) => boolean

/** Names repeat from call to call; more different ones than this come from callers who make them up. */
const maxRemembered = 4096
const maxRememberedName = 256

/**
 * Matches names as people mean them: `*api_key*` also stands for `apiKey`, `API-Key` and `x-api-key`, because case
 * and what separates words are left aside on both sides.
 */
export function createKeyMatcher(patterns: readonly string[]): IsSecretKey {
  const wanted = [...new Set(patterns.map(plain))].filter((pattern) => pattern !== '')
  const known = new Map<string, boolean>()
  return (name) => {
    const before = known.get(name)
    if (before !== undefined) return before
    const text = plain(name)
    const answer = wanted.some((pattern) => matches(pattern, text))
    if (name.length <= maxRememberedName) {
      if (known.size >= maxRemembered) known.clear()
      known.set(name, answer)
    }
    return answer
  }
}

/** `max_tokens`, `tokens_used`, `token_count`, `max_schema_tokens`: how many there are, not what they are. */
const count =
  /tokens$|tokens?(?:count|limit|used|usage|budget|total|left|remaining|perminute)$|^(?:max|min|num|total|n)tokens?/

/** Whether a number under this name is a count: then it is no secret, whatever the name matches. */
export const isCount = (name: string): boolean => count.test(plain(name))

/** Letters, digits and `*`, in lower case; full-width and other look-alikes as their plain forms. */
const plain = (name: string): string =>
  name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}*]/gu, '')
