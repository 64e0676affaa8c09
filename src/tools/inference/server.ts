import { ToolwayError } from '../../core/errors.ts'
import { basicAuthOf, urlSecrets } from '../../lib/basic-auth.ts'
import { readBody } from '../native/fetch/body.ts'
import type { ServedModel } from './choose.ts'
import { lost, type Place, refused, tooLarge } from './failures.ts'

/** What is sent to a model server beside the completions of the chat loop: speech, images, recordings. */
export interface InferenceRequest {
  /** Behind the base address, such as `/audio/speech`. */
  readonly path: string
  readonly body: Buffer
  readonly contentType: string
  readonly accept: string
  /** Of the answer. */
  readonly maxBytes: number
  readonly signal: AbortSignal
}

export interface InferenceAnswer {
  /** The media type, without parameters. */
  readonly type: string
  readonly bytes: Buffer
}

/** An error is short; what is longer is none that anybody has written for us. */
const maxOfError = 64 * 1024

/** Posts to a model server and gives its answer whole. Redirects are not followed: they would get the key. */
export const post = (place: Place, model: ServedModel, request: InferenceRequest): Promise<InferenceAnswer> => {
  const { path, body, contentType, accept, maxBytes, signal } = request
  const url = new URL(model.baseUrl)
  const target = `${url.pathname.replace(/\/+$/, '')}${path}${url.search}`
  const headers = { 'content-type': contentType, accept }
  return exchange(place, model, { method: 'POST', path: target, body, headers, maxBytes, signal })
}

/** Gets something that a model server has pointed to on itself. */
export const get = (
  place: Place,
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

async function exchange(place: Place, model: ServedModel, asked: Exchange): Promise<InferenceAnswer> {
  const { maxBytes, signal, headers, ...request } = asked
  const { authorization, secrets } = credentials(place, model)
  const { openWay } = await import('../../outbound/way-out.ts')
  // The call has its own deadline; a model may well think for longer than a timeout that knows nothing of it.
  const patience = { connections: 1, headersTimeout: 0, bodyTimeout: 0, allowH2: false }
  await using way = openWay(new URL(model.baseUrl), patience)
  let begun = false
  try {
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

/** A key of `none` is none; a name and password in the address become a header. */
function credentials({ name }: Place, { baseUrl, apiKey }: ServedModel) {
  const url = new URL(baseUrl)
  const authorization = basicAuthOf(url)
  if (authorization !== undefined) return { authorization: { authorization }, secrets: urlSecrets(url) }
  if (apiKey === undefined || apiKey === 'none') return { authorization: {}, secrets: [] }
  if (/^[\x21-\x7e]+$/.test(apiKey)) return { authorization: { authorization: `Bearer ${apiKey}` }, secrets: [apiKey] }
  const advice = `Check models.${name}.apiKey for spaces and line breaks.`
  throw new ToolwayError('INVALID_ARGUMENTS', `The key of the model ${name} cannot be sent. ${advice}`)
}
