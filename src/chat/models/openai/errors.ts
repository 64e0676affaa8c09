import { type ErrorDetails, ToolwayError } from '../../../core/errors.ts'
import { ProxyError } from '../../../lib/proxy.ts'
import { readBeginning } from '../../../lib/read-bounded.ts'
import { retryAfterMs } from '../../../lib/retry-after.ts'
import { isSchemaObject as isObject } from '../../constrain/schema.ts'
import { parseOrText } from '../request-plan.ts'
import { type OptionalField, optionalFields } from '../server-profile.ts'
import type { HttpResponse } from './http.ts'

export class EventTooLong extends Error {
  override readonly name = 'EventTooLong'
}

export interface ModelServer {
  /** The model's name in the configuration. */
  readonly name: string
  readonly origin: string
}

const look = ({ name, origin }: ModelServer): string => `Check models.${name} and the log of the server at ${origin}.`

export interface ModelRefusal {
  readonly status: number
  readonly serverMessage: ServerMessage
  readonly retryAfterMs: number | undefined
  /** Set if the error was in the body of a response with status 200. */
  readonly inside?: true
}

export function refusalError(
  server: ModelServer,
  { status, serverMessage, retryAfterMs, inside }: ModelRefusal,
): ToolwayError {
  const { name } = server
  const http = inside ? `error ${status}` : `HTTP ${status}`
  const quote = serverMessage.message === '' ? '' : ` It says: ${serverMessage.message}`
  if (isBusy(status)) {
    const when = retryAfterMs === undefined ? 'Try again later.' : `Try again in ${Math.ceil(retryAfterMs / 1000)} s.`
    const message = `The server for the model ${name} is too busy (${http}). ${when}`
    return new ToolwayError('OVERLOADED', message, { retryAfterMs })
  }
  // Do not quote the server's message: it may contain part of the key.
  if (status === 401 || status === 403) {
    return failed(server, `rejected the API key (${http}). Check models.${name}.apiKey.`)
  }
  if (status === 404) {
    return failed(server, `does not know this model or path (${http}). Check models.${name}.baseUrl and model.${quote}`)
  }
  if (status >= 300 && status < 400) {
    return failed(server, `sent a redirect, which is not followed. Set the final address in models.${name}.baseUrl.`)
  }
  if (status >= 400 && status < 500) {
    const message = `The server for the model ${name} refused the request (${http}).`
    return new ToolwayError('INVALID_ARGUMENTS', `${message} Change the request, for example by shortening it.${quote}`)
  }
  return failed(server, `failed (${http}). ${look(server)}${quote}`)
}

const unusable: ErrorDetails = { requestOnly: true }

export const isBusy = (status: number): boolean => status === 429 || status === 503 || status === 529

export const notACompletion = (server: ModelServer, what: string): ToolwayError =>
  failed(server, `answered with ${what} instead of a completion. Check models.${server.name}.baseUrl.`, unusable)

export const tooLong = (server: ModelServer, bytes: number): ToolwayError =>
  failed(server, `sent more than ${Math.round(bytes / 1024)} KiB in one answer. ${look(server)}`, unusable)

/** The error for a problem that the server reported in the middle of the stream. */
export const brokenStream = (server: ModelServer, serverMessage: ServerMessage): ToolwayError =>
  failed(server, `reported an error in the middle of its response. ${look(server)} It says: ${serverMessage.message}`)

/** The error for a connection that failed before or during the response. */
export function connectionError(server: ModelServer, thrown: unknown, begun: boolean): ToolwayError {
  if (thrown instanceof ToolwayError) return thrown
  if (thrown instanceof EventTooLong) return failed(server, `sent an event that is too long. ${look(server)}`, unusable)
  if (thrown instanceof ProxyError) return failed(server, `cannot be reached: ${thrown.message}`, { cause: thrown })
  const why = reason(thrown)
  const cause = thrown
  if (begun)
    return failed(server, `closed the connection in the middle of its response (${why}). Try again.`, { cause })
  const advice = `Check that it is running and that models.${server.name}.baseUrl is correct.`
  return failed(server, `cannot be reached (${why}). ${advice}`, { cause })
}

/** The error for an expired timeout; `key` is the name of its setting. */
export function timeoutError({ name }: ModelServer, what: string, ms: number, key: string): ToolwayError {
  const message = `The server for the model ${name} ${what} within ${ms / 1000} s (models.${name}.timeouts.${key}).`
  return new ToolwayError('TIMEOUT', `${message} Try again, or shorten the request.`)
}

const failed = ({ name }: ModelServer, what: string, details: ErrorDetails = {}): ToolwayError =>
  new ToolwayError('SERVER_UNAVAILABLE', `The server for the model ${name} ${what}`, details)

/** A short reason, such as ECONNREFUSED. If several addresses were tried, it is the reason for the first. */
function reason(thrown: unknown): string {
  const error = thrown instanceof AggregateError ? thrown.errors[0] : thrown
  if (!(error instanceof Error)) return 'unknown reason'
  return (error as NodeJS.ErrnoException).code ?? error.name
}

export interface ServerMessage {
  /** One line without control characters, truncated. */
  readonly message: string
  readonly code: string
  readonly param: string
}

const maxMessage = 400

/** Reads the error formats of different servers and masks secrets. */
function readServerMessage(text: string, secrets: readonly string[]): ServerMessage {
  const body = parseOrText(text)
  const error = isObject(body) ? (body.error ?? body.detail ?? body) : body
  const fields = isObject(error) ? error : { message: typeof error === 'string' ? error : text }
  const line = textOf(fields.message) || textOf(fields.detail) || (isObject(error) ? JSON.stringify(error) : text)
  return {
    message: withoutSecrets(line, secrets)
      .replace(/[\s\p{Cc}]+/gu, ' ')
      .trim()
      .slice(0, maxMessage),
    code: typeof fields.code === 'number' ? String(fields.code) : textOf(fields.code) || textOf(fields.type),
    param: textOf(fields.param),
  }
}

const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.filter((secret) => secret.length > 3).reduce((rest, secret) => rest.replaceAll(secret, '***'), text)

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** How many bytes of an error response are read. */
const maxBytes = 64 * 1024

export async function refusalOf(answer: HttpResponse, secrets: readonly string[], now: number): Promise<ModelRefusal> {
  const { bytes, truncated } = await readBeginning(answer.chunks, maxBytes)
  return {
    status: answer.status,
    serverMessage: readServerMessage(truncated ? '' : bytes.toString(), secrets),
    retryAfterMs: retryDelayMs(answer.header, now),
  }
}

/** An error in the body of a response with status 200. */
export class RefusalInBody extends Error {
  override readonly name = 'RefusalInBody'
  readonly refusal: ModelRefusal

  constructor(refusal: ModelRefusal) {
    super('refused')
    this.refusal = refusal
  }
}

/** The error reported in a response object; undefined if there is none. */
export function refusalIn(object: unknown, secrets: readonly string[]): ModelRefusal | undefined {
  if (typeof object !== 'object' || object === null || !('error' in object) || !object.error) return undefined
  const serverMessage = readServerMessage(JSON.stringify(object), secrets)
  const status = Number(serverMessage.code)
  return { status: status >= 400 && status < 600 ? status : 500, serverMessage, retryAfterMs: undefined, inside: true }
}

const isTooMuch =
  /context[ _](?:length|window|size)|too (?:long|many tokens)|maximum (?:context|prompt|number of tokens)/i
const isAboutForm = /grammar|schema|response_format|jinja|tool|structured/i

/** Matches complaints about an out-of-range number, which say nothing about support for the field. */
const isOutOfBounds =
  /too (?:large|big|high|small|low)|must be|should be|at (?:most|least)|(?:less|greater|larger) than|out of range|between/i
const isUnsupported = /unsupported|not supported|does not support|not permitted|unknown|unrecognized|unexpected/i

/** Whether the server complained about an optional field's value, not about the field itself. */
function isValue({ code, message }: ServerMessage): boolean {
  const about = `${code} ${message}`
  const isNamed = optionalFields.some((field) => about.includes(field))
  return isNamed && isOutOfBounds.test(about) && !isUnsupported.test(about)
}

/** Whether the server may accept a weaker form. It will not if the problem is the length or an out-of-range number. */
export function mayAcceptWeakerForm({ status, serverMessage }: ModelRefusal): boolean {
  if (isTooMuch.test(`${serverMessage.code} ${serverMessage.message}`) || isValue(serverMessage)) return false
  if (status === 500) return isAboutForm.test(serverMessage.message)
  return status === 400 || status === 422 || status === 501
}

/** The optional field that the server does not support, if it named one. */
export function unsupportedField({ status, serverMessage }: ModelRefusal, body: object): OptionalField | undefined {
  if ((status !== 400 && status !== 422) || isValue(serverMessage)) return undefined
  return optionalFields.find(
    (field) => field in body && (serverMessage.param === field || serverMessage.message.includes(field)),
  )
}

/** The delay that the server asked for, from `retry-after-ms` or `retry-after`. */
export function retryDelayMs(header: (name: string) => string | undefined, now: number): number | undefined {
  const exact = header('retry-after-ms')
  if (exact !== undefined && /^\d{1,9}$/.test(exact)) return Number(exact)
  return retryAfterMs(header('retry-after'), now)
}
