import { type ErrorDetails, invalidArguments, ToolwayError } from '../../core/errors.ts'
import { basicAuthOf, urlSecrets } from '../../lib/basic-auth.ts'
import { asRecord } from '../../lib/is-record.ts'
import { parseJson } from '../../lib/parse-json.ts'
import { ProxyError } from '../../lib/proxy.ts'
import { withoutHidden } from '../hidden-characters.ts'
import { readBody, reason } from '../native/fetch/guarded-get.ts'
import type { InferenceTask, ServedModel } from './models.ts'

/** A request to a model server. Not used for chat completions: the chat loop has its own client. */
export interface InferenceRequest {
  /** The path relative to the base URL, such as `/audio/speech`. */
  readonly path: string
  readonly body: Buffer
  readonly contentType: string
  readonly accept: string
  readonly maxBytes: number
  readonly signal: AbortSignal
}

/** Max bytes to read from an error response. Real error messages are shorter. */
const maxOfError = 64 * 1024

/** Posts to a model server. Does not follow redirects, because the new target would get the API key. */
export const post = (place: ModelTask, model: ServedModel, request: InferenceRequest) => {
  const { path, body, contentType, accept, maxBytes, signal } = request
  const url = new URL(model.baseUrl)
  const target = `${url.pathname.replace(/\/+$/, '')}${path}${url.search}`
  const headers = { 'content-type': contentType, accept }
  return exchange(place, model, { method: 'POST', path: target, body, headers, signal }, maxBytes)
}

/** Downloads a file from a URL on the model server itself. */
export const get = (place: ModelTask, model: ServedModel, url: URL, maxBytes: number, signal: AbortSignal) =>
  exchange(place, model, { method: 'GET', path: url.pathname + url.search, headers: {}, signal }, maxBytes)

interface Exchange {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly signal: AbortSignal
}

async function exchange(place: ModelTask, model: ServedModel, request: Exchange, maxBytes: number) {
  const { signal } = request
  const { authorization, secrets } = credentials(place, model)
  const { createHttpClient } = await import('../../lib/http-client.ts')
  // No timeouts here: the call has its own deadline, and a model may need longer than any fixed timeout.
  const patience = { connections: 1, headersTimeout: 0, bodyTimeout: 0, allowH2: false }
  let begun = false
  try {
    await using client = createHttpClient(new URL(model.baseUrl), patience)
    const answer = await client.request({ ...request, headers: { ...request.headers, ...authorization } })
    begun = true
    const header = (name: string) => String(answer.headers[name] ?? '')
    answer.body.on('error', () => {})
    const isGood = answer.statusCode >= 200 && answer.statusCode < 300
    const { bytes, truncated } = await readBody(answer.body, header('content-encoding'), isGood ? maxBytes : maxOfError)
    if (!isGood)
      throw refused(place, answer.statusCode, header('retry-after'), quoteOf(bytes.toString('utf8'), secrets))
    if (truncated) throw tooLarge(place, maxBytes)
    return { type: header('content-type').split(';', 1)[0]?.trim().toLowerCase() ?? '', bytes }
  } catch (thrown) {
    signal.throwIfAborted()
    throw thrown instanceof ToolwayError ? thrown : lost(place, thrown, begun)
  }
}

/** The credentials for a model server: an API key (`none` means no key), or the user name and password in its URL. */
function credentials({ name }: ModelTask, { baseUrl, apiKey }: ServedModel) {
  const url = new URL(baseUrl)
  const authorization = basicAuthOf(url)
  if (authorization !== undefined) return { authorization: { authorization }, secrets: urlSecrets(url) }
  if (apiKey === undefined || apiKey === 'none') return { authorization: {}, secrets: [] }
  if (/^[\x21-\x7e]+$/.test(apiKey)) return { authorization: { authorization: `Bearer ${apiKey}` }, secrets: [apiKey] }
  throw invalidArguments(
    `The API key for the model ${name} is invalid. Remove spaces and line breaks from models.${name}.apiKey.`,
  )
}

export interface ModelTask {
  readonly name: string
  readonly task: InferenceTask
}

/** The error for a response with this status. `quote` is the server's message, as a sentence. */
function refused(place: ModelTask, status: number, retryAfter: string, quote: string): ToolwayError {
  const { name, task } = place
  const http = `HTTP ${status}`
  // Do not quote the server: its message about a key may contain part of the key.
  if (status === 401 || status === 403)
    return failed(place, `rejected the API key (${http}). Check models.${name}.apiKey.`)
  if (status === 404 || status === 405)
    return failed(
      place,
      `does not support this task (${http}). Set native.inference.${task} to a model that does.${quote}`,
    )
  if (status === 429 || status === 503) {
    const retryAfterMs = /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) * 1000 : undefined
    const sentence = `The model server for ${name} is too busy (${http}). Try again later.`
    return new ToolwayError('OVERLOADED', sentence, { retryAfterMs })
  }
  if (status >= 300 && status < 400)
    return failed(place, `sent a redirect, which is not followed. Set the final address in models.${name}.baseUrl.`)
  if (status >= 500) return failed(place, `failed (${http}). Check its log.${quote}`)
  return invalidArguments(`The model server for ${name} refused the request (${http}). Change the request.${quote}`)
}

export const noAnswer = (place: ModelTask, wanted: string): ToolwayError =>
  failed(place, `did not return ${wanted}. Check native.inference.${place.task}.`, { requestOnly: true })

const tooLarge = (place: ModelTask, most: number): ToolwayError =>
  failed(place, `sent more than ${most} bytes. Request less, or ask the operator to raise native.inference.maxBytes.`, {
    requestOnly: true,
  })

function lost(place: ModelTask, thrown: unknown, begun: boolean): ToolwayError {
  if (thrown instanceof ProxyError) return failed(place, `cannot be reached: ${thrown.message}`, { cause: thrown })
  const why = reason(thrown)
  const cause = thrown
  if (begun) return failed(place, `closed the connection in the middle of its response (${why}). Try again.`, { cause })
  const advice = `Check that it is running and that models.${place.name}.baseUrl is correct.`
  return failed(place, `cannot be reached (${why}). ${advice}`, { cause })
}

const failed = ({ name }: ModelTask, what: string, details: ErrorDetails = {}) =>
  new ToolwayError('SERVER_UNAVAILABLE', `The model server for ${name} ${what}`, details)

function quoteOf(text: string, secrets: readonly string[]): string {
  const whole = secrets
    .filter((secret) => secret.length > 3)
    .reduce((left, secret) => left.replaceAll(secret, '***'), text)
  const words = withoutHidden(messageIn(whole)).replace(/\s+/g, ' ').trim().slice(0, 300)
  return words === '' ? '' : ` It says: ${words}`
}

function messageIn(text: string): string {
  const { error, detail, message } = asRecord(parseJson(text))
  const told = asRecord(error).message ?? error ?? detail ?? message
  return typeof told === 'string' ? told : text
}
