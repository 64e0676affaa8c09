import { type ErrorDetails, invalidArguments, ToolwayError } from '../core/errors.ts'
import { parseJson } from '../json/parse-json.ts'
import { withoutHidden } from '../lib/characters.ts'
import { retryAfterMs } from '../lib/duration.ts'
import { isRecord } from '../lib/is-record.ts'
import { failureReason, shorten } from '../lib/message-text.ts'
import { basicAuthOf, decodePercent, urlSecrets } from '../lib/url.ts'
import { ProxyError } from './proxy.ts'

/** An OpenAI-compatible server. The chat loop and the inference tools have different clients for it. */
export interface ModelServer {
  /** The model's name in the configuration. */
  readonly name: string
  readonly origin: string
}

/** Matches the names of query parameters that contain secrets. */
const secretParameter = /key|token|secret|sig|auth|pass/i

/** The Authorization header, and the secrets in a request. The key `none` means no key; credentials in the URL win. */
export function modelCredentials(name: string, url: URL, apiKey: string | undefined) {
  const inQuery = querySecrets(url)
  const authorization = basicAuthOf(url)
  if (authorization !== undefined) return { headers: { authorization }, secrets: [...urlSecrets(url), ...inQuery] }
  if (apiKey === undefined || apiKey === 'none') return { headers: {}, secrets: inQuery }
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw invalidArguments(
      `The API key for the model ${name} is invalid. Remove spaces and line breaks from models.${name}.apiKey.`,
    )
  }
  return { headers: { authorization: `Bearer ${apiKey}` }, secrets: [apiKey, ...inQuery] }
}

/** Every spelling of the secrets in a URL's query, because servers quote the URL as it was sent, decoded, or encoded. */
const querySecrets = ({ search }: URL): string[] =>
  search
    .slice(1)
    .split('&')
    .map((pair) => [pair.replace(/=.*/s, ''), pair.replace(/^[^=]*=?/, '')] as const)
    .filter(([parameter]) => secretParameter.test(decodePercent(parameter)))
    .flatMap(([, value]) => {
      const decoded = [decodePercent(value), decodePercent(value.replaceAll('+', ' '))]
      return [value, ...decoded, ...decoded.map(encodeURIComponent)]
    })

export const modelServerFailure = (name: string, what: string, details: ErrorDetails = {}): ToolwayError =>
  new ToolwayError('SERVER_UNAVAILABLE', `The server for the model ${name} ${what}`, details)

/** How many bytes of an error response are read. Real messages are shorter. */
export const maxErrorBytes = 64 * 1024

export interface ModelRefusal {
  readonly status: number
  readonly serverMessage: ServerMessage
  readonly retryAfterMs: number | undefined
  /** Set if the error was in the body of a response with status 200. */
  readonly inside?: true
}

/** The error for a refused request. `notFound` says what HTTP 404 and 405 mean, and what to do. */
export function modelRefusalError(
  server: ModelServer,
  { status, serverMessage, retryAfterMs, inside }: ModelRefusal,
  notFound: (http: string) => string,
): ToolwayError {
  const { name } = server
  const http = inside ? `error ${status}` : `HTTP ${status}`
  const quote = serverMessage.message === '' ? '' : ` It says: ${serverMessage.message}`
  if (isUnpaid({ status, serverMessage })) {
    return modelServerFailure(
      name,
      `has no credit or quota left (${http}). Check the account for models.${name}.${quote}`,
    )
  }
  if (status === 408) {
    const message = `The server for the model ${name} did not finish in time (${http}).`
    return new ToolwayError('TIMEOUT', `${message} Try again, or shorten the request.${quote}`)
  }
  if (isBusy(status)) {
    const when = retryAfterMs === undefined ? 'Try again later.' : `Try again in ${Math.ceil(retryAfterMs / 1000)} s.`
    const message = `The server for the model ${name} is too busy (${http}). ${when}${quote}`
    return new ToolwayError('OVERLOADED', message, { retryAfterMs })
  }
  // Do not quote the server's message: it may contain part of the key.
  if (status === 401 || status === 403 || /api_key|authentication/i.test(serverMessage.code)) {
    return modelServerFailure(name, `rejected the API key (${http}). Check models.${name}.apiKey.`)
  }
  if (status === 404 || status === 405) return modelServerFailure(name, `${notFound(http)}${quote}`)
  if (status >= 300 && status < 400) {
    const advice = `Set the final address in models.${name}.baseUrl.`
    return modelServerFailure(name, `sent a redirect, which is not followed. ${advice}`)
  }
  if (status >= 400 && status < 500) {
    const message = `The server for the model ${name} refused the request (${http}).`
    return invalidArguments(`${message} Change the request, for example by shortening it.${quote}`)
  }
  return modelServerFailure(name, `failed (${http}). ${checkLog(server)}${quote}`)
}

export const checkLog = ({ name, origin }: ModelServer): string =>
  `Check models.${name} and the log of the server at ${origin}.`

/** Whether the account has no credit or quota left, so that waiting does not help. */
export const isUnpaid = ({ status, serverMessage }: Pick<ModelRefusal, 'status' | 'serverMessage'>): boolean =>
  status === 402 || serverMessage.code === 'insufficient_quota'

export const isBusy = (status: number): boolean => status === 429 || status === 503 || status === 529

/** The error for a connection that failed before or during the response. */
export function modelConnectionError(name: string, cause: unknown, begun: boolean): ToolwayError {
  if (cause instanceof ToolwayError) return cause
  if (cause instanceof ProxyError) return modelServerFailure(name, `cannot be reached: ${cause.message}`, { cause })
  const why = failureReason(cause)
  const advice = `Check that it is running and that models.${name}.baseUrl is correct.`
  const what = begun
    ? `closed the connection in the middle of its response (${why}). Try again.`
    : `cannot be reached (${why}). ${advice}`
  return modelServerFailure(name, what, { cause })
}

export interface ServerMessage {
  /** One line without hidden characters and secrets, truncated. */
  readonly message: string
  readonly code: string
  readonly param: string
}

const maxServerMessage = 400

/** Reads the error formats of different servers and masks secrets. */
export function readServerMessage(text: string, secrets: readonly string[]): ServerMessage {
  const body = parseJson(text) ?? text
  const error = isRecord(body) ? (body.error ?? body.detail ?? body) : body
  const fields = isRecord(error) ? error : { message: typeof error === 'string' ? error : text }
  const line =
    textOrEmpty(fields.message) || textOrEmpty(fields.detail) || (isRecord(error) ? JSON.stringify(error) : text)
  const masked = maskSecrets(withoutHidden(line), secrets)
  return {
    message: shorten(masked.replace(/\s+/g, ' ').trim(), maxServerMessage),
    code: typeof fields.code === 'number' ? String(fields.code) : textOrEmpty(fields.code) || textOrEmpty(fields.type),
    param: textOrEmpty(fields.param),
  }
}

const maskSecrets = (text: string, secrets: readonly string[]): string =>
  secrets
    .filter((secret) => secret.length > 3)
    // The longest first: of a secret that contains another one, a part would be left.
    .toSorted((a, b) => b.length - a.length)
    .reduce((rest, secret) => rest.replaceAll(secret, '***'), text)

const textOrEmpty = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The delay that the server asked for, from `retry-after-ms` or `retry-after`. */
export function retryDelayMs(header: (name: string) => string | undefined, now: number): number | undefined {
  const exact = header('retry-after-ms')
  if (exact !== undefined && /^\d{1,9}$/.test(exact)) return Number(exact)
  return retryAfterMs(header('retry-after'), now)
}
