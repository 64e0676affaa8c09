import type { ServerResponse } from 'node:http'
import type { Chat } from '../../core/chat.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import { quote } from '../../lib/message-text.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import { HttpError, rpcCodes } from '../errors.ts'
import { SseStream } from '../http/sse-stream.ts'

/** Maximum delay before the stream starts. An earlier failure sets the HTTP status; a later one ends the stream. */
const startDelayMs = 1_000

interface StreamOptions<Event> {
  readonly response: ServerResponse
  encode(event: Event): readonly Buffer[]
  readonly opening?: readonly Buffer[]
  failure(thrown: unknown): Buffer
  readonly clock: Clock
}

/** Streams events with back-pressure; the last one is `end`. Rejects if it fails before anything was sent. */
export async function streamAnswer<Event extends { readonly kind: string }>(
  events: AsyncIterable<Event>,
  options: StreamOptions<Event>,
): Promise<void> {
  const { response, encode, opening = [], failure, clock } = options
  const held: Buffer[] = [...opening]
  let stream: SseStream | undefined
  let last: string | undefined
  const begin = () => {
    if (response.destroyed) return
    stream ??= new SseStream(response, clock)
    for (const message of held.splice(0)) stream.send(message)
  }
  using _timer = clock.after(startDelayMs, begin)
  try {
    for await (const event of events) {
      last = event.kind
      held.push(...encode(event))
      // Do not start the stream for a stage event: a failure soon after it should still set the HTTP status.
      if (stream || event.kind !== 'stage') begin()
      await afterDrain(response)
      if (response.destroyed) return
    }
    if (last !== 'end') throw incompleteAnswer()
  } catch (thrown) {
    if (!stream) throw thrown
    held.push(failure(thrown))
  }
  begin()
  stream?.end()
}

/** The error for an answer that ended without an end event. */
export const incompleteAnswer = (): ToolwayError =>
  new ToolwayError('INTERNAL', "The answer is incomplete: try again. See this gateway's log for the cause.")

export function afterDrain(response: ServerResponse): Promise<void> | undefined {
  if (!response.writableNeedDrain || response.destroyed) return undefined
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.once('drain', done).once('close', done)
  })
}

/** Returns the requested model, or the default if none was requested. Throws if it does not exist. */
export function selectModel(chat: Chat | undefined, asked: string | undefined): { chat: Chat; model: string } {
  const known = chat?.models() ?? []
  const [usual] = known
  if (!chat || usual === undefined) throw notFound(noModel, { param: 'model', code: 'model_not_found' })
  if (asked === undefined) return { chat, model: usual }
  if (!known.includes(asked)) throw unknownModel(asked, known)
  return { chat, model: asked }
}

export const unknownModel = (asked: string, known: readonly string[]) => {
  const shown = quote(asked, 64)
  const near = didYouMean(asked, known, '.')
  const sentence = `There is no model ${shown}${near} Available models: ${known.join(', ') || 'none'}. Use one of them, or add it to models in the configuration.`
  return notFound(sentence, { param: 'model', code: 'model_not_found' })
}

export const modelView = (id: string, created: number) => ({ id, object: 'model', created, owned_by: 'toolway' })

const noModel =
  'No model is configured: add one to models in the configuration ({"kind": "openai", "baseUrl": …, "model": …}) and name it in chat.model. docs/chat-endpoint.md shows how.'

export interface OpenAiError {
  readonly error: {
    readonly message: string
    readonly type: string
    readonly param: string | null
    readonly code: string
  }
}

type Named = Partial<Pick<OpenAiError['error'], 'param' | 'code'>>

export const badRequest = (message: string, named: Named = {}): HttpError =>
  new HttpError(400, rpcCodes.params, message, { data: { code: 'invalid_request', ...named } })

export const notFound = (message: string, named: Named): HttpError =>
  new HttpError(404, rpcCodes.params, message, { data: named })

const errorTypes: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
}

export function openAiError({ status, message, details: { data } }: HttpError): OpenAiError {
  const isOurs = status >= 500
  const usual = isOurs ? 'INTERNAL' : 'invalid_request'
  const { code = usual, param = null } = (data ?? {}) as Partial<OpenAiError['error']>
  const type = errorTypes[status] ?? (isOurs ? 'server_error' : 'invalid_request_error')
  return { error: { message, type, param, code } }
}

export const errorBody = (refusal: HttpError): Buffer => Buffer.from(JSON.stringify(openAiError(refusal)))
