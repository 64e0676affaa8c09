import { ToolwayError } from '../../../core/errors.ts'
import { retryAfterMs } from '../../../lib/retry-after.ts'
import { ProxyFailure } from '../../../outbound/proxy-failure.ts'
import { isSchemaObject as isObject } from '../../constrain/schema.ts'
import { type Dispensable, dispensable } from '../server-profile.ts'
import { type Answer, readText } from './http.ts'

/** An event is longer than it may be. */
export class EventTooLong extends Error {
  override readonly name = 'EventTooLong'
}

/** Where a model is, for sentences about it. */
export interface Place {
  /** Its name in the configuration. */
  readonly name: string
  readonly origin: string
}

/** The end of many sentences. */
const look = ({ name, origin }: Place): string => `Check models.${name} and the log of the server at ${origin}.`

/** The server refused a request, and said why. */
export interface Refusal {
  readonly status: number
  readonly said: Said
  readonly retryAfterMs: number | undefined
  /** It came inside an answer whose own status promised better. */
  readonly inside?: true
}

/** What an answer means that is not the one that was asked for. */
export function refused(place: Place, { status, said, retryAfterMs, inside }: Refusal): ToolwayError {
  const { name } = place
  const http = inside ? `error ${status}` : `HTTP ${status}`
  const quote = said.message === '' ? '' : ` It says: ${said.message}`
  if (isBusy(status)) {
    const when = retryAfterMs === undefined ? 'Try again later.' : `Try again in ${Math.ceil(retryAfterMs / 1000)} s.`
    const details = retryAfterMs === undefined ? {} : { retryAfterMs }
    return new ToolwayError('OVERLOADED', `The server of the model ${name} is too busy (${http}). ${when}`, details)
  }
  // What it says about a key may hold a part of it.
  if (status === 401 || status === 403) {
    return failed(place, `refuses our key (${http}). Check models.${name}.apiKey.`)
  }
  if (status === 404) {
    return failed(place, `knows no such model or path (${http}). Check models.${name}.baseUrl and model.${quote}`)
  }
  if (status >= 300 && status < 400) {
    return failed(place, `redirects, which is not followed. Put the final address into models.${name}.baseUrl.`)
  }
  if (status >= 400 && status < 500) {
    const advice = 'Send less, or something else.'
    return new ToolwayError(
      'INVALID_ARGUMENTS',
      `The server of the model ${name} refused the request (${http}). ${advice}${quote}`,
    )
  }
  return failed(place, `failed (${http}). ${look(place)}${quote}`)
}

export const isBusy = (status: number): boolean => status === 429 || status === 503 || status === 529

/** An answer that has nothing to do with models. */
export const noAnswer = (place: Place, what: string): ToolwayError =>
  failed(place, `answered with ${what} instead of a completion. Check models.${place.name}.baseUrl.`)

export const tooLong = (place: Place, most: number): ToolwayError =>
  failed(place, `sent more than ${Math.round(most / 1024)} KiB in one answer. ${look(place)}`)

/** The server reported an error in the middle of its answer. */
export const brokenStream = (place: Place, said: Said): ToolwayError =>
  failed(place, `gave up in the middle of its answer. ${look(place)} It says: ${said.message}`)

/** Something went wrong with the connection, before the answer or in it. */
export function lost(place: Place, thrown: unknown, begun: boolean): ToolwayError {
  if (thrown instanceof ToolwayError) return thrown
  if (thrown instanceof EventTooLong) return failed(place, `sent an event that is too long. ${look(place)}`)
  if (thrown instanceof ProxyFailure) return failed(place, `cannot be reached: ${thrown.message}`, thrown)
  const why = reason(thrown)
  if (begun) return failed(place, `broke off in the middle of its answer (${why}). Try again.`, thrown)
  return failed(
    place,
    `cannot be reached (${why}). Check that it runs and that models.${place.name}.baseUrl is right.`,
    thrown,
  )
}

/** `key`: which of the model's timeouts is over. */
export const tooSlow = (place: Place, what: string, ms: number, key: 'total' | 'step' | 'chunk'): ToolwayError =>
  new ToolwayError(
    'TIMEOUT',
    `The server of the model ${place.name} ${what} within ${ms / 1000} s (models.${place.name}.timeouts.${key}). Try again, or ask for less.`,
  )

function failed({ name }: Place, what: string, cause?: unknown): ToolwayError {
  return new ToolwayError(
    'SERVER_UNAVAILABLE',
    `The server of the model ${name} ${what}`,
    cause === undefined ? {} : { cause },
  )
}

/** A code such as ECONNREFUSED; a name with several addresses fails with one error for each. */
function reason(thrown: unknown): string {
  const error = thrown instanceof AggregateError ? thrown.errors[0] : thrown
  if (!(error instanceof Error)) return 'unknown reason'
  return (error as NodeJS.ErrnoException).code ?? error.name
}

/** What a server says about a failure. */
export interface Said {
  /** One line, at most so long, without control characters. */
  readonly message: string
  readonly code: string
  readonly param: string
}

const longest = 400

/** Reads an error as the different servers write it. Whatever is secret is blotted out, wherever it stands. */
function saidIn(text: string, secrets: readonly string[]): Said {
  const body = parsed(text)
  const error = isObject(body) ? (body.error ?? body.detail ?? body) : body
  const fields = isObject(error) ? error : { message: typeof error === 'string' ? error : text }
  const line = textOf(fields.message) || textOf(fields.detail) || (isObject(error) ? JSON.stringify(error) : text)
  return {
    message: blotted(line, secrets)
      .replace(/[\s\p{Cc}]+/gu, ' ')
      .trim()
      .slice(0, longest),
    code: typeof fields.code === 'number' ? String(fields.code) : textOf(fields.code) || textOf(fields.type),
    param: textOf(fields.param),
  }
}

/** A text without any of the secrets. */
function blotted(text: string, secrets: readonly string[]): string {
  return secrets.filter((secret) => secret.length > 3).reduce((rest, secret) => rest.replaceAll(secret, '***'), text)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Of an answer that refuses, only a sentence is of interest. */
const maxBytes = 64 * 1024

/** Reads why a request was refused. */
export async function refusalOf(answer: Answer, secrets: readonly string[], now: number): Promise<Refusal> {
  const text = await readText(answer.chunks, maxBytes)
  return { status: answer.status, said: saidIn(text ?? '', secrets), retryAfterMs: waitAskedMs(answer.header, now) }
}

/** An error that came in the place of an answer, although the status promised one. */
export class RefusedInside extends Error {
  override readonly name = 'RefusedInside'
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super('refused')
    this.refusal = refusal
  }
}

/** The refusal in an object of an answer, if it is one. */
export function refusalIn(object: unknown, secrets: readonly string[]): Refusal | undefined {
  if (typeof object !== 'object' || object === null || !('error' in object) || !object.error) return undefined
  const said = saidIn(JSON.stringify(object), secrets)
  const status = Number(said.code)
  return { status: status >= 400 && status < 600 ? status : 500, said, retryAfterMs: undefined, inside: true }
}

const isTooMuch =
  /context[ _](?:length|window|size)|too (?:long|many tokens)|maximum (?:context|prompt|number of tokens)/i
const isAboutForm = /grammar|schema|response_format|jinja|tool|structured/i

/** A number that is out of bounds is the caller's mistake; the next one may be right. */
const isOutOfBounds =
  /too (?:large|big|high|small|low)|must be|should be|at (?:most|least)|(?:less|greater|larger) than|out of range|between/i
const isUnsupported = /unsupported|not supported|does not support|not permitted|unknown|unrecognized|unexpected/i

/** Whether one of the fields that every form has was given a value that it cannot have. */
function isValue({ code, message }: Said): boolean {
  const about = `${code} ${message}`
  return isOutOfBounds.test(about) && !isUnsupported.test(about) && dispensable.some((field) => about.includes(field))
}

/** Whether the same request may be taken in a weaker form: it was refused, and not for its length or its numbers. */
export function mayBeForm({ status, said }: Refusal): boolean {
  if (isTooMuch.test(`${said.code} ${said.message}`) || isValue(said)) return false
  if (status === 500) return isAboutForm.test(said.message)
  return status === 400 || status === 422 || status === 501
}

/** The field that the server does not want, if it is one that nobody needs. */
export function dislikedField({ status, said }: Refusal, body: object): Dispensable | undefined {
  if ((status !== 400 && status !== 422) || isValue(said)) return undefined
  return dispensable.find((field) => field in body && (said.param === field || said.message.includes(field)))
}

/** How long a server asks to be left alone, in milliseconds: in seconds or as a date, as HTTP has it. */
export function waitAskedMs(header: (name: string) => string | undefined, now: number): number | undefined {
  const exact = header('retry-after-ms')
  if (exact !== undefined && /^\d{1,9}$/.test(exact)) return Number(exact)
  return retryAfterMs(header('retry-after'), now)
}
