import type { Config } from '../../config/schema.ts'
import type { SecretSetting } from '../../config/schema-lookup.ts'
import { isAboutSecret, isPath, isRandom, isSecretName } from '../../core/secret-name.ts'
import { builtInSources } from '../../core/source.ts'
import { replaceSpans } from '../../lib/replace-spans.ts'
import { decodePercent } from '../../lib/url.ts'
import { minSecretLength } from './conceal.ts'
import { concealPatterns } from './patterns.ts'

/**
 * Finds the secrets in settings. Logs, audit records, the effective configuration, the editor and imports all use these
 * functions; they differ only in what they do with a secret that is found.
 */

/** The position of a secret within a string, and the variable, header, option or part of a URL that contains it. */
export interface TextSpan {
  readonly key: string
  readonly start: number
  readonly end: number
}

/**
 * The secrets in a configuration, whose secret `settings` are given, plus `more`. Skips values too short or too common to tell from ordinary text, and the
 * names in the configuration: without them, a log would not say which server or agent a record is about.
 */
export function secretsOf(config: Config, settings: Iterable<SecretSetting>, more: readonly string[] = []): string[] {
  const names = namesIn(config)
  const worth = [...more, ...[...settings].flatMap(ofSetting)]
    .map((value) => value.trim())
    .filter((value) => value.length >= minSecretLength && !value.includes('${'))
    .filter((value) => !isCommonplace(value) && !names.has(value.toLowerCase()))
  return [...new Set(worth)]
}

/** The names that all readers of the logs know, in lower case. */
function namesIn({ mcpServers, agents, models, sinks, auth }: Config): ReadonlySet<string> {
  const named = [mcpServers, agents, models, sinks].flatMap((section) => Object.keys(section))
  const all = [
    ...builtInSources,
    ...named,
    ...named.flatMap((name) => name.split('.')),
    ...auth.keys.map(({ id }) => id),
  ]
  return new Set(all.map((name) => name.toLowerCase()))
}

function ofSetting({ kind, value }: SecretSetting): string[] {
  const named = (find: (name: string, text: string) => readonly TextSpan[]): string[] =>
    Object.entries(value as Readonly<Record<string, string>>).flatMap(([name, text]) =>
      spellings(text, find(name, text)),
    )
  if (kind === 'headers') return named(secretsInHeader)
  if (kind === 'variables') return named(secretsInVariable)
  if (kind === 'words' && Array.isArray(value)) {
    return value.flatMap((word, index) => spellings(word, secretsInArgument(value, index)))
  }
  if (typeof value !== 'string') return []
  if (kind === 'address') return spellings(value, secretsInUrl(value))
  if (kind === 'publicAddress') return spellings(value, secretsInPublicUrl(value))
  return kind === true ? [value] : []
}

/** The secrets at these positions as they may occur elsewhere: whole, in parts, and decoded. */
const spellings = (text: string, spans: readonly TextSpan[]): string[] =>
  spans.flatMap(({ key, start, end }) => {
    const before = text.slice(0, start)
    const secret = text.slice(start, end)
    const parts = partsOf(secret).filter((part) => part.start > 0 || part.end < secret.length)
    return [
      secret,
      decodePercent(secret),
      ...(/[?&][^?&=]*=$/.test(before) ? [decodePercent(secret.replaceAll('+', ' '))] : []),
      ...(/(?:^|\s)basic\s+$/i.test(before) ? passwordIn(secret) : []),
      ...(isCookie(key) ? secret.split(';').map((cookie) => cookie.slice(cookie.indexOf('=') + 1)) : []),
      ...spellings(secret, parts),
    ]
  })

/** The password in the base64 text of basic authentication. */
function passwordIn(encoded: string): string[] {
  const decoded = Buffer.from(encoded, 'base64').toString()
  return decoded.includes(':') ? [decoded.slice(decoded.indexOf(':') + 1)] : []
}

const whole = (key: string, text: string): TextSpan[] => [{ key, start: 0, end: text.length }]

const shifted = (head: string, spans: readonly TextSpan[]): TextSpan[] =>
  spans.map(({ key, start, end }) => ({ key, start: start + head.length, end: end + head.length }))

const without = (text: string, spans: readonly TextSpan[]): string => replaceSpans(text, spans, () => '')

/** Whether a string has the format of a known kind of credential. */
const hasForm = (text: string): boolean => concealPatterns(text) !== text

/** The secrets in an environment variable: its whole value, or parts of a URL or connection string. */
export function secretsInVariable(name: string, value: string): TextSpan[] {
  if (isPath(value)) return []
  if (isCommonplace(value)) return isWeakPassword(name, value) ? whole(name, value) : []
  const parts = partsOf(value)
  const rest = without(value, parts)
  return isSecret(name, rest) || hasForm(rest) ? whole(name, value) : parts
}

/** Whether a common word such as `postgres` is a password: it is in a variable for passwords, and not a switch or count. */
const isWeakPassword = (name: string, value: string): boolean =>
  /passw|passphrase|pwd$/i.test(name) &&
  isSecretName(name) &&
  !/^(?:true|false|yes|no|on|off|none|null|nil|undefined|default|auto|automatic|(?:en|dis)abled?|required|optional|\d{0,3})$/i.test(
    value,
  )

/** The scheme before the credential in a header, such as `Bearer `; empty if there is none. */
export const schemeIn = (value: string): string => /^\s*(?:bearer|basic|token|apikey|digest)\s+/i.exec(value)?.[0] ?? ''

/** The secret in a header, without the scheme in front of it. */
export function secretsInHeader(name: string, value: string): TextSpan[] {
  const { length } = schemeIn(value)
  if (length > 0) return [{ key: name, start: length, end: value.length }]
  return isCookie(name) ? whole(name, value) : secretsInVariable(name, value)
}

const isCookie = (name: string): boolean => /^cookie$/i.test(name)

/** The secrets in a URL, as written: password, random user name, random path segments and secret parameters. */
export function secretsInUrl(text: string): TextSpan[] {
  const [, head = '', path = '', query = ''] = /^([a-z][a-z\d+.-]*:\/\/[^/?#]*)([^?#]*)(.*)$/is.exec(text) ?? []
  const found: TextSpan[] = []
  const [, scheme = '', user = ''] = /^([^:]+:\/\/)(.*)@/s.exec(head) ?? []
  const [name = ''] = user.split(':', 1)
  const afterName = scheme.length + name.length
  if (isRandom(name)) found.push({ key: 'user', start: scheme.length, end: afterName })
  if (user.length > name.length + 1) {
    found.push({ key: 'password', start: afterName + 1, end: scheme.length + user.length })
  }
  for (const { 0: segment, index } of path.matchAll(/[^/]+/g)) {
    const start = head.length + index
    if (isRandom(segment)) found.push({ key: 'url', start, end: start + segment.length })
  }
  for (const { 1: name = '', 2: value = '', index } of query.matchAll(/[?&#]([^=&#?]+)=([^&#]*)/g)) {
    const start = head.length + path.length + index + 1 + name.length + 1
    if (isSecret(decodePercent(name), decodePercent(value))) found.push({ key: name, start, end: start + value.length })
  }
  return found
}

/** The secrets in a URL whose path is public: a tenant's random identifier is not a secret. */
export const secretsInPublicUrl = (text: string): TextSpan[] => secretsInUrl(text).filter(({ key }) => key !== 'url')

/** The secrets in a connection string such as `Server=db;Password=…`. */
const secretsInConnection = (text: string): TextSpan[] =>
  /[; ]/.test(text)
    ? [...text.matchAll(/([\w .-]{1,64})=([^;\s]+)/g)].flatMap(
        ({ 0: { length }, 1: name = '', 2: value = '', index }) =>
          isSecretName(name.trim())
            ? [{ key: name.trim(), start: index + length - value.length, end: index + length }]
            : [],
      )
    : []

const partsOf = (text: string): TextSpan[] => joined(secretsInUrl(text), secretsInConnection(text))

/** All spans, without those of `more` that overlap with others. */
const joined = (spans: readonly TextSpan[], more: readonly TextSpan[]): TextSpan[] => [
  ...spans,
  ...more.filter(({ start, end }) => !spans.some((span) => span.start < end && start < span.end)),
]

interface ArgumentOptions {
  /**
   * Whether everything under a secret name is secret, also a path or a common word: `--token ./x`, `-e TOKEN=none`. Where
   * only settings are shown it is hidden, because it may be a secret that looks like one. Imports keep it, and logs do
   * not hide a folder or a word wherever it occurs.
   */
  readonly strict?: boolean
}

/** The secrets in an argument: `--api-key=…`, `--token …`, `KEY=…`, `Authorization: Bearer …`, and those in URLs. */
export function secretsInArgument(
  words: readonly unknown[],
  index: number,
  { strict = false }: ArgumentOptions = {},
): TextSpan[] {
  const [before = '', word = ''] = [words[index - 1], words[index]].map((one) => (typeof one === 'string' ? one : ''))
  // Before assignments: base64 such as `q8Zk…==` looks like one.
  const flag = /^--?([A-Za-z][\w-]*)$/.exec(before)?.[1]
  const isValue = flag !== undefined && isSecretName(flag) && !word.startsWith('-')
  if (isValue && (strict || !isPath(word))) return whole(flag, word)
  // `Authorization: …`, also in `--header=Authorization: …`.
  const [, header, holder = '', field = '', content] = /^((?:--?([\w-]+)=)?([\w-]+):\s*)([^/\s].*)$/s.exec(word) ?? []
  if (header !== undefined && content !== undefined && isSecretName(field) && !isSecretName(holder)) {
    return shifted(header, secretsInHeader(field, content))
  }
  const [, option, variable, name = '', value] = /^((--env=|-e=?(?=[A-Z_]))?(?:--?)?([\w-]+)=)(.+)$/s.exec(word) ?? []
  const isAssigned = option !== undefined && value !== undefined
  if (isAssigned && (variable !== undefined || before === '-e' || before === '--env')) {
    const isSecretAnyway = strict && isSecretName(name)
    return shifted(option, isSecretAnyway ? whole(name, value) : secretsInVariable(name, value))
  }
  const isCommand = /^(?:[-/][a-z]*c|-command)$/i.test(before)
  const inCommand = isCommand ? secretsInCommand(word) : []
  if (inCommand.length > 0) return inCommand
  if (isAssigned && (isSecretName(name) || (!value.includes('://') && hasForm(value)))) {
    return shifted(option, whole(name, value))
  }
  const address = /[a-z][a-z\d+.-]{0,30}:\/\/\S+/i.exec(word)
  const inAddress = address ? shifted(word.slice(0, address.index), secretsInUrl(address[0])) : []
  const found = isCommand ? inAddress : joined(inAddress, secretsInConnection(word))
  return hasForm(without(word, found)) ? whole('argument', word) : found
}

/**
 * The secrets that a shell command such as `cd x && TOKEN=… node server.js` assigns to variables and options, and those
 * in its URLs. If it contains others, the whole command is one.
 */
function secretsInCommand(text: string): TextSpan[] {
  if (!/\s/.test(text)) return []
  // What precedes a word is bounded: otherwise a long run of spaces would take quadratic time.
  const name = /(?:-{0,2}([A-Za-z_][\w-]*)=|(?<=\s--?([A-Za-z][\w-]{0,63})[ \t]{1,64})(?!-)|)/
  const words = new RegExp(`(?<=^|[\\s;(])${name.source}["']?((?<=")[^"]+|(?<=')[^']+|(?!\\$)[^\\s;&|"']+)`, 'g')
  const found = [...text.matchAll(words)].flatMap(({ 0: { length }, 1: assigned, 2: option, 3: value = '', index }) => {
    const start = index + length - value.length
    const key = assigned ?? option ?? ''
    if (isSecretName(key) && !(key === option && isPath(value))) return [{ key, start, end: start + value.length }]
    return shifted(text.slice(0, start), secretsInUrl(value))
  })
  return found.length > 0 && hasForm(without(text, found)) ? whole('argument', text) : found
}

/** Names whose value may be a secret or something ordinary, such as PRIMARY_KEY. */
const doubtfulName = /(?:^|[-_])(?:key|auth|pin|psk|salt|sig)(?:$|[-_])|session|signature|webhook/i

/** Whether a setting is a secret. Under a doubtful name, a value made of words is not a secret. */
const isSecret = (name: string, value: string): boolean =>
  isSecretName(name) ||
  isRandom(value) ||
  (doubtfulName.test(name) && !isAboutSecret(name) && !/^[a-z]+(?:[-_ ./][a-z]+)*$/i.test(value))

/** Common values that are never secrets: redacting them would hide ordinary text and protect nothing. */
const commonplace = new Set(
  `true false yes no on off none null nil undefined default auto automatic enabled disabled enable disable required optional
  production development staging testing test local localhost prod dev debug trace info warn warning error fatal silent
  verbose quiet unknown admin administrator root user users guest public private anonymous password passwd secret token apikey
  api_key changeme change_me example sample dummy placeholder generated postgres postgresql mysql mongodb redis sqlite
  github gitlab google openai anthropic azure amazon aws cloud docker kubernetes linux darwin windows server client
  bearer basic oauth oauth2 apikeyauth header headers cookie cookies session sessions json text stdio http https
  utf-8 utf8 en_us en_gb c.utf-8 posix xterm xterm-256color application/json text/plain text/event-stream */*
  keep-alive no-cache identity gzip`.split(/\s+/),
)

export const isCommonplace = (value: string): boolean =>
  commonplace.has(value.toLowerCase()) ||
  (/^\d{0,9}$|^[\d.,:_-]*[.,:_-]$|^\d[\d.,:_-]*\d$/.test(value) && !/^\d{10,}$/.test(value)) ||
  /^(.)\1*$/.test(value)
