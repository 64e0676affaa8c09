import { ToolwayError } from '../../core/errors.ts'
import { basicAuthOf, urlSecrets } from '../../lib/basic-auth.ts'
import { ProxyError } from '../../lib/proxy.ts'
import { withoutHidden } from '../hidden-characters.ts'
import { readBody } from '../native/fetch/guarded-get.ts'
import type { InferenceTask, ServedModel } from './models.ts'

/** A request to a model server other than the completions of the chat loop. */
export interface InferenceRequest {
  /** Relative to the base URL, such as `/audio/speech`. */
  readonly path: string
  readonly body: Buffer
  readonly contentType: string
  readonly accept: string
  /** Of the response. */
  readonly maxBytes: number
  readonly signal: AbortSignal
}

export interface InferenceAnswer {
  readonly type: string
  readonly bytes: Buffer
}

/** Real error messages are shorter. */
const maxOfError = 64 * 1024

/** Posts to a model server and reads the whole response. Does not follow redirects: the target would get the key. */
export const post = (place: ModelTask, model: ServedModel, request: InferenceRequest): Promise<InferenceAnswer> => {
  const { path, body, contentType, accept, maxBytes, signal } = request
  const url = new URL(model.baseUrl)
  const target = `${url.pathname.replace(/\/+$/, '')}${path}${url.search}`
  const headers = { 'content-type': contentType, accept }
  return exchange(place, model, { method: 'POST', path: target, body, headers, maxBytes, signal })
}

/** Downloads something from a URL on the model server itself. */
export const get = (
  place: ModelTask,
  model: ServedModel,
  { url, maxBytes, signal }: { readonly url: URL; readonly maxBytes: number; readonly signal: AbortSignal },
): Promise<InferenceAnswer> =>
  exchange(place, model, { method: 'GET', path: url.pathname + url.search, headers: {}, maxBytes, signal })

interface Exchange {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly maxBytes: number
  readonly signal: AbortSignal
}

async function exchange(place: ModelTask, model: ServedModel, asked: Exchange): Promise<InferenceAnswer> {
  const { maxBytes, signal, headers, ...request } = asked
  const { authorization, secrets } = credentials(place, model)
  const { createHttpClient } = await import('../../lib/http-client.ts')
  // The call has its own deadline; a model may take longer than any fixed timeout.
  const patience = { connections: 1, headersTimeout: 0, bodyTimeout: 0, allowH2: false }
  let begun = false
  try {
    await using way = createHttpClient(new URL(model.baseUrl), patience)
    const answer = await way.request({ ...request, headers: { ...headers, ...authorization }, signal })
    begun = true
    const header = (name: string) => String(answer.headers[name] ?? '')
    answer.body.on('error', () => {})
    const isGood = answer.statusCode >= 200 && answer.statusCode < 300
    const { bytes, truncated } = await readBody(answer.body, header('content-encoding'), isGood ? maxBytes : maxOfError)
    if (!isGood) {
      throw refused(place, answer.statusCode, {
        text: bytes.toString('utf8'),
        secrets,
        retryAfter: header('retry-after'),
      })
    }
    if (truncated) throw tooLarge(place, maxBytes)
    return { type: header('content-type').split(';', 1)[0]?.trim().toLowerCase() ?? '', bytes }
  } catch (thrown) {
    signal.throwIfAborted()
    throw thrown instanceof ToolwayError ? thrown : lost(place, thrown, begun)
  }
}

/** `none` means no key; a user name and password in the URL become a header. */
function credentials({ name }: ModelTask, { baseUrl, apiKey }: ServedModel) {
  const url = new URL(baseUrl)
  const authorization = basicAuthOf(url)
  if (authorization !== undefined) return { authorization: { authorization }, secrets: urlSecrets(url) }
  if (apiKey === undefined || apiKey === 'none') return { authorization: {}, secrets: [] }
  if (/^[\x21-\x7e]+$/.test(apiKey)) return { authorization: { authorization: `Bearer ${apiKey}` }, secrets: [apiKey] }
  const advice = `Check models.${name}.apiKey for spaces and line breaks.`
  throw new ToolwayError('INVALID_ARGUMENTS', `The key of the model ${name} cannot be sent. ${advice}`)
}

export interface ModelTask {
  readonly name: string
  readonly task: InferenceTask
}

interface Said {
  readonly text: string
  /** Redacted from the text. */
  readonly secrets: readonly string[]
  readonly retryAfter: string
}

function refused(place: ModelTask, status: number, said: Said): ToolwayError {
  const { name, task } = place
  const http = `HTTP ${status}`
  // The server's message about a key may quote part of it.
  if (status === 401 || status === 403) return failed(place, `refuses our key (${http}). Check models.${name}.apiKey.`)
  const quote = quoteOf(said)
  if (status === 404 || status === 405) {
    return failed(place, `does not know how (${http}). Name a model that does in native.inference.${task}.${quote}`)
  }
  if (status === 429 || status === 503) {
    const retryAfterMs = /^\d{1,6}$/.test(said.retryAfter) ? Number(said.retryAfter) * 1000 : undefined
    const details = retryAfterMs === undefined ? {} : { retryAfterMs }
    return new ToolwayError(
      'OVERLOADED',
      `The server of the model ${name} is too busy (${http}). Try again later.`,
      details,
    )
  }
  if (status >= 300 && status < 400) {
    return failed(place, `redirects, which is not followed. Put the final address into models.${name}.baseUrl.`)
  }
  if (status >= 500) return failed(place, `failed (${http}). Check its log.${quote}`)
  const sentence = `The server of the model ${name} refused the request (${http}). Change what you ask for.${quote}`
  return new ToolwayError('INVALID_ARGUMENTS', sentence)
}

export const noAnswer = (place: ModelTask, wanted: string): ToolwayError =>
  failed(place, `answered with something else than ${wanted}. Check native.inference.${place.task}.`)

const tooLarge = (place: ModelTask, most: number): ToolwayError =>
  failed(place, `sent more than ${most} bytes. Ask for less; the operator can raise native.inference.maxBytes.`)

function lost(place: ModelTask, thrown: unknown, begun: boolean): ToolwayError {
  if (thrown instanceof ProxyError) return failed(place, `cannot be reached: ${thrown.message}`, thrown)
  const why = reasonOf(thrown)
  if (begun) return failed(place, `broke off in the middle of its answer (${why}). Try again.`, thrown)
  const advice = `Check that it runs and that models.${place.name}.baseUrl is right.`
  return failed(place, `cannot be reached (${why}). ${advice}`, thrown)
}

const failed = ({ name }: ModelTask, what: string, cause?: unknown) =>
  new ToolwayError(
    'SERVER_UNAVAILABLE',
    `The server of the model ${name} ${what}`,
    cause === undefined ? {} : { cause },
  )

function reasonOf(thrown: unknown): string {
  const error = thrown instanceof AggregateError ? thrown.errors[0] : thrown
  if (!(error instanceof Error)) return 'unknown reason'
  return (error as NodeJS.ErrnoException).code ?? error.name
}

function quoteOf({ text, secrets }: Said): string {
  const whole = secrets
    .filter((secret) => secret.length > 3)
    .reduce((left, secret) => left.replaceAll(secret, '***'), text)
  const words = withoutHidden(messageIn(whole)).replace(/\s+/g, ' ').trim().slice(0, 300)
  return words === '' ? '' : ` It says: ${words}`
}

function messageIn(text: string): string {
  try {
    const { error, detail, message } = JSON.parse(text) as Record<string, unknown>
    const told = (error as { message?: unknown } | undefined)?.message ?? error ?? detail ?? message
    return typeof told === 'string' ? told : text
  } catch {
    return text
  }
}
