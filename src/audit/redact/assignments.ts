import { isAboutSecret, isPath, isSecretName } from '../../core/secret-name.ts'
import { memoize } from '../../lib/memoize.ts'
import { matches } from '../../lib/wildcard.ts'
import { characterTable, redacted } from './conceal.ts'

/** Names of passwords, also those in connection strings and signed URLs. Their values are always redacted. */
const always =
  /^(?:pwd|passwd|password|passphrase|accountkey|sharedaccesskey|clientsecret|x-amz-(?:signature|security-token))$/i

/** Whether a name stands for a secret, whatever names are configured. */
const isSecretByName = memoize((name) => always.test(name) || isSecretName(name), 4096, 256)

/**
 * Whether an argument is a secret by its name. The path in an argument `pwd` is the working directory, and neither a
 * switch nor a number of tokens is a secret.
 */
export const isSecretArgument = (name: string, value: unknown): boolean =>
  isSecretByName(name) &&
  typeof value !== 'boolean' &&
  !(typeof value === 'number' && isCount(name)) &&
  !(typeof value === 'string' && /pwd$/i.test(name) && isPath(value))

const maxName = 64

/** Redacts the values assigned to secret names in text: `password=…`, `--token …`, `X-Api-Key: …`, `"secret": …`. */
export function concealAssignments(given: string, isSecret: IsSecretKey): string {
  const text = given.includes('</') ? concealElements(given, isSecret) : given
  // Most strings contain no assignment, and this test is much cheaper than the search.
  if (!text.includes('=') && !text.includes(':') && !text.includes('--')) return text
  let result = ''
  let done = 0
  for (const place of text.matchAll(/[=:]|--(?=[A-Za-z])/g)) {
    const at = place.index
    if (at < done) continue
    const found =
      place[0] === '=' ? afterEquals(text, at) : place[0] === ':' ? afterColon(text, at) : afterFlag(text, at)
    const value = found && isValueName(found.name) ? { ...found, name: nameBeside(text, at) ?? found.name } : found
    if (!value || !isSecret(value.name)) continue
    const [start, end] = (value.extent ?? extentOf)(text, value)
    if (end === start || isPlain(value.name, text.slice(start, end))) continue
    result += text.slice(done, start) + redacted
    done = end
  }
  return result + text.slice(done)
}

export const isValueName = (name: string): boolean => name.length === 5 && name.toLowerCase() === 'value'

/** The name before a member `value`, as in `name: DB_PASSWORD` on the line before `value: x`, and in truncated JSON. */
function nameBeside(text: string, at: number): string | undefined {
  const [, name] = besideValue.exec(text.slice(Math.max(0, at - 192), at)) ?? []
  return name === undefined ? undefined : nameOfLabel(name)
}

const besideValue =
  /\b(?:name|key)["'\\]{0,8}[ \t]{0,4}[:=][ \t]{0,4}["'\\]{0,8}([^"'\\\r\n,{}:=]{1,64}):?["'\\]{0,8}(?:,|\r?\n|\\n)\s{0,32}["'\\]{0,8}value["'\\]{0,8}[ \t]{0,4}$/i

/** `Password` for the label `Confirm Password:`, and `API_key` for `Your API key`. `The secret garden` is not a secret. */
export function nameOfLabel(label: string): string {
  const words = label
    .slice(0, maxLabel)
    .split(/[:*\s]+/)
    .filter((part) => part !== '')
  return words.slice(/^key$/i.test(words.at(-1) ?? '') ? -2 : -1).join('_')
}

const maxLabel = 256

/** Whether a value is a switch, or a number under a name that stands for one. */
const isPlain = (name: string, value: string): boolean =>
  /^(?:true|false|[01])$/i.test(value) || (/^\d{1,12}$/.test(value) && isCount(name))

/** Redacts the content of XML elements with secret names: `<password>…</password>`. */
function concealElements(text: string, isSecret: IsSecretKey): string {
  for (let at = text.indexOf('</'); at !== -1; at = text.indexOf('</', at + 2)) {
    // Most elements have other names, and reading their names is much cheaper than the search.
    if (!isSecret(text.slice(at + 2, skip(text, at + 2, 1, isTagName)))) continue
    return text.replace(element, (found, tag: string, name: string, content: string) =>
      isSecret(name) && content.trim() !== '' ? tag + redacted : found,
    )
  }
  return text
}

const element = /(<([\w.:-]{1,64})(?:\s[^<>]{0,256})?>(?:<!\[CDATA\[)?)([^<>]+)(?=(?:\]\]>)?<\/)/g

interface Value {
  readonly name: string
  readonly start: number
  /** Matches the end of the value if the value is not quoted. */
  readonly until: RegExp
  /** Where the name starts, and what finds the value, if the assignment may also be prose or code. */
  readonly named?: number
  readonly extent?: (text: string, value: Value) => Extent
}

/** The start and end of a value without its quotes. The range is empty if there is nothing to redact. */
type Extent = readonly [start: number, end: number]

const word = /[\s&;,"'`<>()[\]{}\\]/g
const member = new RegExp(word)
const line = /[\r\n"'`\\]/g

function afterEquals(text: string, at: number): Value | undefined {
  const next = text[at + 1]
  if (next === '=') return undefined
  if (next === '>') return afterArrow(text, at)
  const end = skip(text, at - 1, -1, isSpace) + 1
  const start = skip(text, at + 1, 1, isSpace)
  const name = nameBefore(text, end)
  if (end !== at || start !== at + 1) return spacedValue(name, end, start)
  return name === '' ? undefined : { name, start, until: word }
}

/** The string after `'name' =>` or `:name =>`, as in PHP and Ruby. Without the quotes or the colon, it may be a function. */
function afterArrow(text: string, at: number): Value | undefined {
  const end = skip(text, at - 1, -1, isSpace)
  const quoted = skip(text, end, -1, isQuote)
  const name = nameBefore(text, quoted + 1)
  const start = skip(text, at + 2, 1, isSpace)
  const isKey = quoted < end || text[quoted - name.length] === ':'
  return isKey && isQuote(text.charCodeAt(start)) ? { name, start, until: member } : undefined
}

function afterColon(text: string, at: number): Value | undefined {
  const end = skip(text, at - 1, -1, isWhitespace)
  const quoted = skip(text, end, -1, isQuote)
  if (quoted < end)
    return { name: nameBefore(text, quoted + 1), start: skip(text, at + 1, 1, isWhitespace), until: member }
  const start = skip(text, at + 1, 1, isSpace)
  if (start === at + 1) return undefined
  const close = skip(text, at - 1, -1, isSpace) + 1
  const name = nameBefore(text, close)
  return name.includes('-') ? { name, start, until: line } : spacedValue(name, close, start)
}

function spacedValue(name: string, end: number, start: number): Value | undefined {
  // `token.kind = 'x'` sets a member of a token.
  const last = name.slice(name.lastIndexOf('.') + 1)
  if (last === '') return undefined
  return { name: last, start, until: line, named: end - name.length, extent: spaced }
}

const isHeader = (name: string): boolean => /^(?:authorization|cookie)$/i.test(name)

/** The value of a header without a hyphen in its name, which may also be a word in prose. */
function ofHeader(text: string, value: Value): Extent {
  const { name, start } = value
  // First, because every name in a line would search the rest of the line.
  if (!startsLine(text, value)) return none
  const extent = extentOf(text, value)
  const content = text.slice(start, extent[1]).trimEnd()
  const isCredential = /^cookie$/i.test(name) ? /=/ : /^\S{6,}$|^\S+[ \t]+\S+$|=/
  return isCredential.test(content) && !isReference(content) ? extent : none
}

/**
 * The value after a name and blanks, as in `password: x` and `password = 'x'`. Names such as `token` also occur in prose
 * (`token: a unit of text`) and code, so the value must be quoted or all that is left of a line. A password, or a name
 * that cannot be prose (`api_key`, `apiKey`), may stand anywhere if its value has a digit.
 */
function spaced(text: string, value: Value): Extent {
  const { name, start } = value
  if (isAboutSecret(name)) return none
  if (isHeader(name) && !isQuote(text.charCodeAt(start))) return ofHeader(text, value)
  const sure = always.test(name) || isHeader(name)
  const marked = sure || /_|[a-z][A-Z]/.test(name)
  quotedValue.lastIndex = start
  const [, quote, content = ''] = quotedValue.exec(text) ?? []
  if (quote !== undefined) {
    const isProse = !sure && (/\s|^[A-Z]+(?:_[A-Z]+)+$/.test(content) || description.test(content))
    const isWord = !marked && /^[A-Za-z]{1,12}$/.test(content) && !startsLine(text, value)
    if (isProse || isWord || isReference(content) || same(name, content)) return none
    return [start + quote.length, start + quote.length + content.length]
  }
  plainValue.lastIndex = start
  const [found = ''] = plainValue.exec(text) ?? []
  if (found === '' || isReference(found) || isPath(found) || description.test(found)) return none
  if (call.test(found) || block.test(found) || (!sure && expression.test(found))) return none
  restOfLine.lastIndex = start + found.length
  // In this order, because every name in a line would search the rest of the line.
  const isAlone = startsLine(text, value) && restOfLine.test(text)
  const hasDigit = /^(?=\D*\d)[^\s()[\]{}<>=]{6,}={0,2}$/.test(found)
  return isAlone || (marked && hasDigit) ? [start, start + found.length] : none
}

const none: Extent = [0, 0]

const same = (name: string, value: string): boolean => plain(name) === plain(value)

/** A value in quotes. What starts with a blank or a sign follows a closing quote, as in `'token: ' + x`. */
const quotedValue = /(\\{0,8}["'])([^\s"',;:+)\]}\\][^\r\n]*?)(?:(?<!\\)\1|$)/y

const plainValue = /[^\s"'`\\,;]+/y

/** The rest of a line with nothing but a comment. */
const restOfLine = /[ \t]*(?:#[^\r\n"'`\\]*)?(?=[\r\n"'`\\]|$)/y

/** `${NAME}`, `$NAME`, `{{ name }}`, `<name>` or an ellipsis in place of a value. */
const isReference = (value: string): boolean =>
  /\$\{|\{\{|\{env:|(?:^|[ \t])(?:\$[A-Za-z_]\w*|<[^<>]*>|\*+|…|\.\.\.|\[redacted\])$/.test(value)

/** Types and similar words that describe a value. */
const description =
  /^(?:string|str|text|bytes|number|integer|int|float|boolean|bool|object|array|list|any|unknown|never|void|undefined|null|none|nil|true|false|yes|no|required|optional)[?!.)\]]*$/i

/** The mark of a YAML block, whose text follows on other lines. */
const block = /^[|>][-+\d]{0,2}$/

const call = /^[A-Za-z_$][\w.$]*\((?:.*\))?$/

/** Short numbers, types (`SecretStr`), members (`config.token`), calls, lists and blocks. */
const expression =
  /^\d{0,5}(?:\.\d+)?\w{0,2}$|^(?:[A-Z][a-z]+)+$|^[A-Za-z_$]+(?:\??\.[A-Za-z_$]+)+$|^[\w.$]+[(<[]|^[[{|>&*!(<]/

/** Whether a name is the first word of a line or after a quote, possibly behind the mark of a list, diff or quotation. */
function startsLine(text: string, { named = 0 }: Value): boolean {
  let at = skip(text, named - 1, -1, isSpace)
  if (/[-+*<>]/.test(text.charAt(at))) at = skip(text, at - 1, -1, isSpace)
  return at < 0 || /[\r\n\\"']/.test(text.charAt(at))
}

function afterFlag(text: string, at: number): Value | undefined {
  const end = skip(text, at + 2, 1, isName)
  const start = skip(text, end, 1, isSpace)
  return start === end || text[start] === '-' ? undefined : { name: text.slice(at + 2, end), start, until: word }
}

function extentOf(text: string, { start, until }: Value): Extent {
  // Skip the scheme before a credential, so that the scheme is kept.
  const scheme = /(?:basic|bearer|token|digest|negotiate|apikey|aws4-hmac-sha256) +/iy
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
const isTagName = among(/[\w.:-]/)
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

/** Creates the test for names in text. */
export const createNameMatcher = (isSecretKey: IsSecretKey): IsSecretKey =>
  memoize((name) => isSecretByName(name) || isSecretKey(name), 4096, 256)

/** Names for numbers, not for secrets: `max_tokens`, `tokens_used`, `token_count`, `pass`. */
const count =
  /^pass$|tokens$|tokens?(?:count|limit|used|usage|budget|total|left|remaining|perminute)$|^(?:max|min|num|total|n)tokens?/

/** Whether a name stands for a number of tokens or tests. A number under such a name is not a secret. */
export const isCount = (name: string): boolean => count.test(plain(name))

/** A name's lower-case letters, digits and `*`. NFKC maps full-width and similar characters to plain ones. */
const plain = (name: string): string =>
  name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}*]/gu, '')
