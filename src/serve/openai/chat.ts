import type { ServerResponse } from 'node:http'
import type { Chat, ChatEvent } from '../../core/chat.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import { didYouMean } from '../../lib/near.ts'
import { SseStream } from '../http/sse-stream.ts'
import { notFound } from './errors.ts'

/** What fails within this time is told by the status of the answer; later it can only be told in the stream. */
const aMomentMs = 1_000

interface StreamOptions {
  readonly response: ServerResponse
  /** An event in the words of whoever asked. */
  encode(event: ChatEvent): readonly Buffer[]
  /** What comes before everything else, as soon as there is a stream. */
  readonly opening?: readonly Buffer[]
  /** A failure in the same words, for a stream that has begun. */
  failure(thrown: unknown): Buffer
  readonly clock: Clock
}

/**
 * Tells an answer as it comes, no faster than it is read. Rejects where the answer fails before anything of it was
 * told; whoever has gone away stops it.
 */
export async function streamAnswer(events: AsyncIterable<ChatEvent>, telling: StreamOptions): Promise<void> {
  const { response, encode, opening = [], failure, clock } = telling
  const held: Buffer[] = [...opening]
  let stream: SseStream | undefined
  let last: ChatEvent['kind'] | undefined
  const begin = () => {
    if (response.destroyed) return
    stream ??= new SseStream(response, clock)
    for (const message of held.splice(0)) stream.send(message)
  }
  using _timer = clock.after(aMomentMs, begin)
  try {
    for await (const event of events) {
      last = event.kind
      held.push(...encode(event))
      // Stages come at once, whatever becomes of them.
      if (stream || event.kind !== 'stage') begin()
      await drained(response)
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

/** An answer of which nobody said that it is over. */
export const incompleteAnswer = (): ToolwayError =>
  new ToolwayError('INTERNAL', 'The answer broke off before its end: ask again. The log of this gateway may say why.')

function drained(response: ServerResponse): Promise<void> | undefined {
  if (!response.writableNeedDrain || response.destroyed) return undefined
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.once('drain', done).once('close', done)
  })
}

/** The model that a request asks for, else the one that answers by default; refuses what is not there. */
export function selectModel(chat: Chat | undefined, asked: string | undefined): { chat: Chat; model: string } {
  const known = chat?.models() ?? []
  const [usual] = known
  if (!chat || usual === undefined) throw notFound(noModel, { param: 'model', code: 'model_not_found' })
  if (asked === undefined) return { chat, model: usual }
  if (!known.includes(asked)) throw unknownModel(asked, known)
  return { chat, model: asked }
}

export const unknownModel = (asked: string, known: readonly string[]) => {
  const shown = JSON.stringify(asked.length > 64 ? `${asked.slice(0, 64)}…` : asked)
  const near = didYouMean(asked, known, '.')
  const sentence = `There is no model ${shown}${near} There is ${known.join(', ') || 'none'}: use one of them, or add it to models in the configuration.`
  return notFound(sentence, { param: 'model', code: 'model_not_found' })
}

/** A model in the words of OpenAI. */
export const modelView = (id: string, created: number) => ({ id, object: 'model', created, owned_by: 'toolway' })

const noModel =
  'No model is configured here: add one to models in the configuration ({"kind": "openai", "baseUrl": …, "model": …}) and name it in chat.model. docs/chat-endpoint.md shows how.'
