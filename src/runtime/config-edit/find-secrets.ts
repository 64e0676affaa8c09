import { concealPatterns } from '../../audit/redact/patterns.ts'
import { isCommonplace, isPath, isSecret } from '../../audit/redact/secrets.ts'
import { type FindSecrets, type SecretSpan, textAt } from '../../clients/secrets.ts'
import type { ServerDefinition } from '../../config/import/read-servers.ts'
import { secretKindAt } from '../../config/schema-lookup.ts'
import type { Path } from '../../config/tree.ts'
import { isRandom, isSecretName } from '../../core/secret-name.ts'
import { decodePercent } from '../../lib/basic-auth.ts'

/** The position of a secret within a string, and the secret's name. */
type TextSpan = Omit<SecretSpan, 'path'>

/** Finds the secrets in a server's definition, even those too short to be redacted in logs and audit records. */
export const findSecrets: FindSecrets = ({ env, headers, auth, url, args }) => [
  ...named(env, ['env'], ofVariable),
  ...named(headers, ['headers'], ofHeader),
  ...named(auth, ['auth'], (name, value) => (isCredential(name) ? whole(name, value) : [])),
  ...at(['url'], typeof url === 'string' ? ofUrl(url) : []),
  ...(Array.isArray(args) ? args.flatMap((_, index) => at(['args', index], ofArgument(args, index))) : []),
]

/** A server's secrets as strings. */
export const secretTexts = (definition: ServerDefinition): string[] =>
  findSecrets(definition).map((secret) => textAt(definition, secret))

function named(section: unknown, path: Path, of: (name: string, value: string) => readonly TextSpan[]): SecretSpan[] {
  if (typeof section !== 'object' || section === null) return []
  return Object.entries(section).flatMap(([name, value]) =>
    typeof value === 'string' && !isReference(value) ? at([...path, name], of(name, value)) : [],
  )
}

const at = (path: Path, spans: readonly TextSpan[]): SecretSpan[] =>
  spans.filter(({ start, end }) => end > start).map((span) => ({ path, ...span }))

/** Whether a string contains a reference such as `${NAME}`, which is not a secret. */
const isReference = (text: string): boolean => /(?<!\$)\$\{/.test(text)

const whole = (key: string, text: string): TextSpan[] => [{ key, start: 0, end: text.length }]

/** Whether a string has the format of a known kind of credential. */
const hasForm = (text: string): boolean => concealPatterns(text) !== text

function ofVariable(name: string, value: string): TextSpan[] {
  if (isPath(value)) return []
  if (isCommonplace(value)) return isWeakPassword(name, value) ? whole(name, value) : []
  if (ofUrl(value).length > 0) return whole(name, value)
  return isSecret(name, value) || hasForm(value) ? whole(name, value) : []
}

/** Whether a common word such as `postgres` is a password: it is in a variable for passwords, and not a switch or count. */
const isWeakPassword = (name: string, value: string): boolean =>
  /passw|passphrase|pwd$/i.test(name) &&
  isSecretName(name) &&
  !/^(?:true|false|yes|no|on|off|none|null|nil|undefined|default|auto|automatic|(?:en|dis)abled?|required|optional|\d{0,3})$/i.test(
    value,
  )

/** The secret in a header, without the scheme in front of it. */
function ofHeader(name: string, value: string): TextSpan[] {
  const scheme = /^\s*(?:bearer|basic|token|apikey|digest)\s+/i.exec(value)?.[0]
  if (scheme !== undefined) return [{ key: name, start: scheme.length, end: value.length }]
  return ofVariable(name, value)
}

/** The secrets in a URL, as written: password, secret parameters and random path segments. */
export function ofUrl(text: string): TextSpan[] {
  const [, head = '', path = '', query = ''] = /^([a-z][a-z\d+.-]*:\/\/[^/?#]*)([^?#]*)(.*)$/is.exec(text) ?? []
  if (head === '' || isReference(text)) return []
  const found: TextSpan[] = []
  const user = /^([^:]+:\/\/[^:@]*:)([^@]+)@/.exec(head)
  if (user?.[1] && user[2]) found.push({ key: 'password', start: user[1].length, end: user[1].length + user[2].length })
  for (const { 0: segment, index } of path.matchAll(/[^/]+/g)) {
    const start = head.length + index
    if (isRandom(segment)) found.push({ key: 'url', start, end: start + segment.length })
  }
  for (const { 1: name = '', 2: value = '', index } of query.matchAll(/[?&#]([^=&#]+)=([^&#]*)/g)) {
    const start = head.length + path.length + index + 1 + name.length + 1
    if (isSecret(decodePercent(name), decodePercent(value))) found.push({ key: name, start, end: start + value.length })
  }
  return found
}

/** The secrets in an argument: `--api-key=…`, `--token …`, `KEY=…`, `Authorization: Bearer …`, and those in URLs. */
function ofArgument(words: readonly unknown[], index: number): TextSpan[] {
  const [before, word] = [words[index - 1], words[index]].map((one) => (typeof one === 'string' ? one : ''))
  if (word === undefined || word === '' || isReference(word)) return []
  const shifted = (head: string, spans: readonly TextSpan[]) =>
    spans.map(({ key, start, end }) => ({ key, start: start + head.length, end: end + head.length }))
  const [, header, field = '', content] = /^(([\w-]+):\s*)([^/\s].*)$/s.exec(word) ?? []
  if (header !== undefined && content !== undefined && isSecretName(field)) {
    return shifted(header, ofHeader(field, content))
  }
  // Before assignments: base64 such as `q8Zk…==` looks like one.
  const flag = /^--?([A-Za-z][\w-]*)$/.exec(before ?? '')?.[1]
  if (flag !== undefined && isSecretName(flag) && !word.startsWith('-') && !isPath(word)) return whole(flag, word)
  const assigned = /^(?:[-/][a-z]*c|-command)$/i.test(before ?? '') ? ofShellText(word) : []
  const [, option, variable, name = '', value] = /^((--env=|-e=?(?=[A-Z_]))?(?:--?)?([\w-]+)=)(.+)$/s.exec(word) ?? []
  if (option !== undefined && value !== undefined && !word.includes('://')) {
    if (variable !== undefined || before === '-e' || before === '--env') return shifted(option, ofVariable(name, value))
    if (assigned.length > 0) return assigned
    return isSecretName(name) || hasForm(value) ? shifted(option, whole(name, value)) : []
  }
  if (assigned.length > 0) return assigned
  const address = /[a-z][a-z\d+.-]{0,30}:\/\/\S+/i.exec(word)
  if (address) return shifted(word.slice(0, address.index), ofUrl(address[0]))
  return hasForm(word) ? whole('argument', word) : []
}

/**
 * The secrets that a shell command such as `cd x && TOKEN=… node server.js` assigns to variables and options, and those
 * in its URLs. If it contains others, the whole command is one.
 */
function ofShellText(text: string): TextSpan[] {
  if (!/\s/.test(text)) return []
  // What precedes a word is bounded: otherwise a long run of spaces would take quadratic time.
  const name = /(?:-{0,2}([A-Za-z_][\w-]*)=|(?<=\s--?([A-Za-z][\w-]{0,63})[ \t]{1,64})(?!-)|)/
  const words = new RegExp(`(?<=^|[\\s;(])${name.source}["']?((?<=")[^"]+|(?<=')[^']+|(?!\\$)[^\\s;&|"']+)`, 'g')
  const found = [...text.matchAll(words)].flatMap(({ 0: { length }, 1: assigned, 2: option, 3: value = '', index }) => {
    const start = index + length - value.length
    const key = assigned ?? option ?? ''
    if (isSecretName(key) && !(key === option && isPath(value))) return [{ key, start, end: start + value.length }]
    return ofUrl(value).map((span) => ({ ...span, start: start + span.start, end: start + span.end }))
  })
  const rest = found.reduceRight((before, { start, end }) => before.slice(0, start) + before.slice(end), text)
  return found.length > 0 && hasForm(rest) ? whole('argument', text) : found
}

const isCredential = (name: string): boolean => secretKindAt(['mcpServers', 'any', 'auth', name]) === true
