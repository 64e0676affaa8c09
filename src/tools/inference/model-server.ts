import type { Clock } from '../../core/clock.ts'
import type { ToolwayError } from '../../core/errors.ts'
import { readBody } from '../../egress/guarded-get.ts'
import type { HttpClient } from '../../egress/http-client.ts'
import {
  type ModelRefusal,
  maxErrorBytes,
  modelConnectionError,
  modelCredentials,
  modelRefusalError,
  modelServerFailure,
  readServerMessage,
  retryDelayMs,
} from '../../egress/model-server.ts'
import type { InferenceTask, ServedModel } from './models.ts'

/** Work for a model on a server. */
export interface ModelTask {
  /** The model's name in the configuration. */
  readonly name: string
  readonly task: InferenceTask
  readonly model: ServedModel
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** What to post. Not used for chat completions: the chat loop has its own client. */
interface InferenceRequest {
  /** The path relative to the base URL, such as `/audio/speech`. */
  readonly path: string
  readonly body: Buffer
  readonly contentType: string
  readonly accept: string
}

/** Posts to a model server. Does not follow redirects, because the new target would get the API key. */
export function postTask(task: ModelTask, { path, body, contentType, accept }: InferenceRequest, maxBytes: number) {
  const url = new URL(task.model.baseUrl)
  const target = `${url.pathname.replace(/\/+$/, '')}${path}${url.search}`
  const headers = { 'content-type': contentType, accept }
  return exchange(task, { method: 'POST', path: target, body, headers }, maxBytes)
}

/** Posts JSON; the server gets its own name of the model. */
export const postTaskJson = (task: ModelTask, path: string, body: object, accept: string, maxBytes: number) =>
  postTask(
    task,
    {
      path,
      body: Buffer.from(JSON.stringify({ model: task.model.model, ...body })),
      contentType: 'application/json',
      accept,
    },
    maxBytes,
  )

/** Downloads a file from a URL on the model server itself. */
export const getFile = (task: ModelTask, url: URL, maxBytes: number) =>
  exchange(task, { method: 'GET', path: url.pathname + url.search, headers: {} }, maxBytes)

type ModelExchange = Pick<Parameters<HttpClient['request']>[0], 'method' | 'path' | 'body'> & {
  readonly headers: Readonly<Record<string, string>>
}

async function exchange(task: ModelTask, request: ModelExchange, maxBytes: number) {
  const { name, model, clock, signal } = task
  const url = new URL(model.baseUrl)
  const { headers, secrets } = modelCredentials(name, url, model.apiKey)
  const { createHttpClient } = await import('../../egress/http-client.ts')
  // No timeouts here: the call has its own deadline, and a model may need longer than any fixed timeout.
  const patience = { connections: 1, headersTimeout: 0, bodyTimeout: 0, allowH2: false }
  let begun = false
  try {
    await using client = createHttpClient(url, patience)
    const answer = await client.request({ ...request, signal, headers: { ...request.headers, ...headers } })
    begun = true
    const header = (name: string) => String(answer.headers[name] ?? '')
    answer.body.on('error', () => {})
    const status = answer.statusCode
    const isGood = status >= 200 && status < 300
    const encoding = header('content-encoding')
    const { bytes, truncated } = await readBody(answer.body, encoding, isGood ? maxBytes : maxErrorBytes)
    if (!isGood) {
      const serverMessage = readServerMessage(truncated ? '' : bytes.toString('utf8'), secrets)
      throw taskRefusal(task, url, { status, serverMessage, retryAfterMs: retryDelayMs(header, clock.now()) })
    }
    if (truncated) throw modelAnswerTooLarge(task, maxBytes)
    return { type: header('content-type').split(';', 1)[0]?.trim().toLowerCase() ?? '', bytes }
  } catch (thrown) {
    signal.throwIfAborted()
    throw modelConnectionError(name, thrown, begun)
  }
}

const taskRefusal = ({ name, task }: ModelTask, { origin }: URL, refusal: ModelRefusal): ToolwayError =>
  modelRefusalError(
    { name, origin },
    refusal,
    (http) => `does not support this task (${http}). Set native.inference.${task} to a model that does.`,
  )

export const noAnswer = ({ name, task }: ModelTask, wanted: string): ToolwayError =>
  modelServerFailure(name, `did not return ${wanted}. Check native.inference.${task}.`, { requestOnly: true })

function modelAnswerTooLarge({ name }: ModelTask, maxBytes: number): ToolwayError {
  const advice = 'Request less, or ask the operator to raise native.inference.maxBytes.'
  return modelServerFailure(name, `sent more than ${maxBytes} bytes. ${advice}`, { requestOnly: true })
}
