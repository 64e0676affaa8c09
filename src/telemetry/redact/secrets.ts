import type { Config, ServerConfig } from '../../config/schema.ts'
import { isSecretName } from '../../core/secret-name.ts'
import { shortestSecret } from './known.ts'
import { isCommonplace, isPath, isRandom, isSecret } from './looks-secret.ts'

/**
 * The values in a configuration that must never be written down, and `more` beside them (the generated token). What
 * is too short or too common to be told from honest text is left out.
 */
export function secretsOf(config: Config, more: readonly string[] = []): string[] {
  const { auth, mcpServers, models, sinks, stores, telemetry } = config
  const found = [
    ...more,
    ...(auth.token === 'generated' || auth.token === 'none' ? [] : [auth.token]),
    stores.key ?? '',
    ...Object.values(mcpServers).flatMap(ofServer),
    ...Object.values(models).flatMap((model) =>
      model.kind === 'openai' ? [model.apiKey ?? '', ...ofUrl(model.baseUrl)] : [],
    ),
    ...Object.values(sinks).flatMap((sink) =>
      sink.kind === 'webhook' ? [...ofUrl(sink.url), ...ofHeaders(sink.headers)] : [],
    ),
    ...[stores.redis?.url, stores.postgres?.url, telemetry.traces?.otlp].flatMap((url) => (url ? ofUrl(url) : [])),
  ]
  const worth = found
    .map((value) => value.trim())
    .filter((value) => value.length >= shortestSecret && !value.includes('${') && !isCommonplace(value))
  return [...new Set(worth)]
}

function ofServer(server: ServerConfig): string[] {
  if (server.transport === 'stdio') {
    return [...Object.entries(server.env).flatMap(([name, value]) => ofNamed(name, value)), ...ofArguments(server.args)]
  }
  return [...ofAuth(server.auth), ...ofUrl(server.url), ...ofHeaders(server.headers)]
}

function ofAuth(auth: Extract<ServerConfig, { url: string }>['auth']): string[] {
  if (auth?.type === 'bearer') return [auth.token]
  return auth ? [auth.clientSecret ?? '', auth.privateKey ?? ''] : []
}

/** A variable is a secret by its name, or because nobody would make such a value up. */
function ofNamed(name: string, value: string): string[] {
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(value)) return ofUrl(value)
  if (isPath(value)) return []
  return isSecret(name, value) ? [value, ...ofConnection(value)] : ofConnection(value)
}

/** Headers carry credentials behind a scheme, and cookies by the list. */
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

/** The password, the values of secret parameters, and whatever in the path nobody would make up. */
function ofUrl(url: string): string[] {
  if (!URL.canParse(url)) return []
  const { username, password, pathname, searchParams } = new URL(url)
  const parameters = [...searchParams].filter(([name, value]) => isSecret(name, value))
  const segments = pathname.split('/').filter(isRandom)
  const user = isRandom(username) ? [username, decoded(username)] : []
  return [...user, password, decoded(password), ...parameters.map(([, value]) => value), ...segments]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** `Server=db;Password=…`. */
const ofConnection = (value: string): string[] =>
  value.includes(';') || value.includes(' ')
    ? [...value.matchAll(/([\w .-]{1,64})=([^;\s]+)/g)].flatMap(([, name = '', part = '']) =>
        isSecretName(name.trim()) ? [part] : [],
      )
    : []

/** `--api-key=…`, `--token …`, and addresses with a password in them. */
const ofArguments = (words: readonly string[]): string[] =>
  words.flatMap((word, index) => {
    const [, name, value] = /^(?:--?)?([\w-]+)=(.+)$/s.exec(word) ?? []
    if (name !== undefined && value !== undefined)
      return isSecretName(name) || value.includes('://') ? ofNamed(name, value) : []
    const flag = /^--?([A-Za-z][\w-]*)$/.exec(words[index - 1] ?? '')?.[1]
    if (flag !== undefined && isSecretName(flag) && !word.startsWith('-')) return ofNamed(flag, word)
    return word.includes('://') ? ofUrl(word) : []
  })
