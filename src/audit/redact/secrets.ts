import type { SecretSetting } from '../../config/schema-lookup.ts'
import { isAboutSecret, isRandom, isSecretName } from '../../core/secret-name.ts'
import { decodePercent } from '../../lib/basic-auth.ts'
import { minSecretLength } from './conceal.ts'

/** The secrets in a configuration, plus `more`. Skips values too short or too common to tell from ordinary text. */
export function secretsOf(settings: Iterable<SecretSetting>, more: readonly string[] = []): string[] {
  const worth = [...more, ...[...settings].flatMap(ofSetting)]
    .map((value) => value.trim())
    .filter((value) => value.length >= minSecretLength && !value.includes('${') && !isCommonplace(value))
  return [...new Set(worth)]
}

function ofSetting({ kind, value }: SecretSetting): string[] {
  if (kind === 'words') return Array.isArray(value) ? ofArguments(value) : []
  if (kind === 'headers') return ofHeaders(value as Readonly<Record<string, string>>)
  if (kind === 'variables') return Object.entries(value as object).flatMap(([name, one]) => ofNamed(name, one))
  if (typeof value !== 'string') return []
  if (kind === 'address') return ofUrl(value)
  return kind === true ? [value] : []
}

function ofNamed(name: string, value: string): string[] {
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(value)) return ofUrl(value)
  if (isPath(value)) return []
  return isSecret(name, value) ? [value, ...ofConnection(value)] : ofConnection(value)
}

/** The secrets in headers. A credential may follow a scheme, and a cookie header may hold several. */
const ofHeaders = (headers: Readonly<Record<string, string>>): string[] =>
  Object.entries(headers).flatMap(([name, value]) => {
    const [, scheme = '', credential] = /^(bearer|basic|token|apikey|digest)\s+(\S.*)$/i.exec(value.trim()) ?? []
    if (credential !== undefined) {
      return [credential, ...(scheme.toLowerCase() === 'basic' ? ofUserInfo(credential) : [])]
    }
    if (/^cookie$/i.test(name)) return value.split(';').map((cookie) => cookie.slice(cookie.indexOf('=') + 1))
    return ofNamed(name, value)
  })

function ofUserInfo(encoded: string): string[] {
  const decoded = Buffer.from(encoded, 'base64').toString()
  return decoded.includes(':') ? [decoded.slice(decoded.indexOf(':') + 1)] : []
}

/** The secrets in a URL: password, secret parameters, and random-looking path segments and user names. */
function ofUrl(url: string): string[] {
  if (!URL.canParse(url)) return []
  const { username, password, pathname, searchParams } = new URL(url)
  const parameters = [...searchParams].filter(([name, value]) => isSecret(name, value))
  const segments = pathname.split('/').filter(isRandom)
  const user = isRandom(username) ? [username, decodePercent(username)] : []
  return [...user, password, decodePercent(password), ...parameters.map(([, value]) => value), ...segments]
}

/** The secrets in a connection string such as `Server=db;Password=…`. */
const ofConnection = (value: string): string[] =>
  value.includes(';') || value.includes(' ')
    ? [...value.matchAll(/([\w .-]{1,64})=([^;\s]+)/g)].flatMap(([, name = '', part = '']) =>
        isSecretName(name.trim()) ? [part] : [],
      )
    : []

/** The secrets in command-line arguments: `--api-key=…`, `--token …`, and URLs with a password. */
const ofArguments = (words: readonly string[]): string[] =>
  words.flatMap((word, index) => {
    // Before assignments: base64 such as `q8Zk…==` looks like one.
    const flag = /^--?([A-Za-z][\w-]*)$/.exec(words[index - 1] ?? '')?.[1]
    if (flag !== undefined && isSecretName(flag) && !word.startsWith('-')) return ofNamed(flag, word)
    const [, name, value] = /^(?:--?)?([\w-]+)=(.+)$/s.exec(word) ?? []
    if (name !== undefined && value !== undefined)
      return isSecretName(name) || value.includes('://') ? ofNamed(name, value) : []
    return word.includes('://') ? ofUrl(word) : []
  })

/** Names whose value may be a secret or something ordinary, such as PRIMARY_KEY. */
const doubtfulName = /(?:^|[-_])(?:key|auth|pin|psk|salt|sig)(?:$|[-_])|session|signature|webhook/i

/** Whether a setting is a secret. Under a doubtful name, a value made of words is not a secret. */
export const isSecret = (name: string, value: string): boolean =>
  isSecretName(name) ||
  isRandom(value) ||
  (doubtfulName.test(name) && !isAboutSecret(name) && !/^[a-z]+(?:[-_ ./][a-z]+)*$/i.test(value))

/** Common values that are never secrets: redacting them would hide ordinary text and protect nothing. */
const commonplace = new Set(
  `true false yes no on off none null nil undefined default auto automatic enabled disabled enable disable required optional
  production development staging testing test local localhost prod dev debug trace info warn warning error fatal silent
  verbose quiet admin administrator root user users guest public private anonymous password passwd secret token apikey
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

/** Whether a value is a file path: its parts are words, or it starts with a common folder. */
export const isPath = (value: string): boolean =>
  /^(?:~|\.{1,2})?[/\\]|^[A-Za-z]:[/\\]/.test(value) &&
  (/^[/\\](?:usr|etc|home|var|run|opt|tmp|root|mnt|srv|lib|bin|proc|dev|Users|Applications|Library|private|data|app|workspace|nix)(?:[/\\]|$)/.test(
    value,
  ) ||
    /^[~.A-Z]/i.test(value) ||
    value.split(/[/\\]/).every((part) => part === '' || !isRandom(part)))
