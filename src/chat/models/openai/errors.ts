import { type ErrorDetails, ToolwayError } from '../../../core/errors.ts'
import {
  checkLog,
  type ModelRefusal,
  type ModelServer,
  maxErrorBytes,
  modelConnectionError,
  modelRefusalError,
  modelServerFailure,
  readServerMessage,
  retryDelayMs,
  type ServerMessage,
} from '../../../core/model-server.ts'
import { readBeginning } from '../../../lib/read-bounded.ts'
import { type OptionalField, optionalFields } from '../server-profile.ts'
import type { HttpResponse } from './http.ts'

export class EventTooLong extends Error {
  override readonly name = 'EventTooLong'
}

const unusable: ErrorDetails = { requestOnly: true }

export const notACompletion = ({ name }: ModelServer, what: string): ToolwayError =>
  modelServerFailure(name, `answered with ${what} instead of a completion. Check models.${name}.baseUrl.`, unusable)

export const tooLong = (server: ModelServer, bytes: number): ToolwayError =>
  modelServerFailure(
    server.name,
    `sent more than ${Math.round(bytes / 1024)} KiB in one answer. ${checkLog(server)}`,
    unusable,
  )

/** The error for a problem that the server reported in the middle of the stream. */
export const brokenStream = (server: ModelServer, { message }: ServerMessage): ToolwayError =>
  modelServerFailure(
    server.name,
    `reported an error in the middle of its response. ${checkLog(server)} It says: ${message}`,
  )

/** The error for a connection that failed before or during the response. */
export function connectionError(server: ModelServer, thrown: unknown, begun: boolean): ToolwayError {
  if (!(thrown instanceof EventTooLong)) return modelConnectionError(server.name, thrown, begun)
  return modelServerFailure(server.name, `sent an event that is too long. ${checkLog(server)}`, unusable)
}

/** The error for an expired timeout; `key` is the name of its setting. */
export function timeoutError({ name }: ModelServer, what: string, ms: number, key: string): ToolwayError {
  const message = `The server for the model ${name} ${what} within ${ms / 1000} s (models.${name}.timeouts.${key}).`
  return new ToolwayError('TIMEOUT', `${message} Try again, or shorten the request.`)
}

export const refusalError = (server: ModelServer, refusal: ModelRefusal): ToolwayError =>
  modelRefusalError(
    server,
    refusal,
    (http) => `does not know this model or path (${http}). Check models.${server.name}.baseUrl and model.`,
  )

export async function refusalOf(answer: HttpResponse, secrets: readonly string[], now: number): Promise<ModelRefusal> {
  const { bytes, truncated } = await readBeginning(answer.chunks, maxErrorBytes)
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
