import type { Clock } from '../../../core/clock.ts'
import type { HttpClient } from '../../../egress/http-client.ts'
import {
  type ModelRefusal,
  type ModelServer,
  maxErrorBytes,
  readServerMessage,
  retryDelayMs,
} from '../../../egress/model-server.ts'
import { readBeginning } from '../../../egress/read-bounded.ts'
import { parseJson } from '../../../json/parse-json.ts'
import { interruption, isFinished } from '../completion-decoder.ts'
import { answerTooLong, EventTooLong, notACompletion } from './errors.ts'

export type HttpResponse = Awaited<ReturnType<typeof postCompletion>>

/** How long to wait for the body to end after the answer is complete. */
const endTimeoutMs = 1_000

/** How long to wait for the usage and `[DONE]` after a finish reason; some servers send neither. */
const afterFinishMs = 2_000

/**
 * Sends one request. Disposing of the response closes the connection, so that the server stops generating. If the
 * answer is complete, the body is read to its end instead, so that the connection can be reused.
 */
export async function postCompletion(
  client: HttpClient,
  request: Omit<Parameters<HttpClient['request']>[0], 'method'>,
) {
  const { statusCode, headers, body } = await client.request({ ...request, method: 'POST' })
  // Ignore errors that occur after the consumer has stopped reading.
  body.on('error', () => {})
  const header = (name: string): string | undefined => [headers[name]].flat()[0]
  return {
    status: statusCode,
    /** The media type, without parameters. */
    type: (header('content-type') ?? '').replace(/;.*/s, '').trim().toLowerCase(),
    header,
    /** The body. Reading it fails once the request's signal aborts. */
    chunks: body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>,
    /** Whether the answer is finished: only its usage and its end are still expected. */
    isFinished: false,
    /** Whether the answer is complete: only the end of the body is still expected. */
    isOver: false,
    [Symbol.dispose]() {
      if (!this.isOver) return void body.destroy()
      const limits = { limit: Number.MAX_SAFE_INTEGER, signal: AbortSignal.timeout(endTimeoutMs) }
      body.dump(limits).catch(() => {})
    },
  }
}

export async function refusalResponse(
  answer: HttpResponse,
  secrets: readonly string[],
  now: number,
): Promise<ModelRefusal> {
  const { bytes, truncated } = await readBeginning(answer.chunks, maxErrorBytes)
  return {
    status: answer.status,
    serverMessage: readServerMessage(truncated ? '' : bytes.toString(), secrets),
    retryAfterMs: retryDelayMs(answer.header, now),
  }
}

/**
 * Passes the chunks on. Calls `stalled`, which must abort the request, if the next chunk takes too long. Once the answer
 * is finished, a stalled or broken connection only ends the chunks.
 */
export async function* withStallTimeout(
  chunks: AsyncIterable<Buffer>,
  clock: Clock,
  ms: number,
  stalled: () => void,
  isFinished: () => boolean,
): AsyncGenerator<Buffer> {
  const iterator = chunks[Symbol.asyncIterator]()
  try {
    // There is no limit for the first chunk: the server may have to process a long prompt first.
    let next = await iterator.next()
    let endBy = Number.POSITIVE_INFINITY
    while (!next.done) {
      yield next.value
      const now = clock.monotonic()
      if (isFinished()) endBy = Math.min(endBy, now + afterFinishMs)
      using _watch = clock.after(Math.max(0, Math.min(ms, endBy - now)), stalled)
      next = await iterator.next()
    }
  } catch (thrown) {
    if (!isFinished()) throw thrown
  } finally {
    await iterator.return?.()
  }
}

/** Maximum size of a stream, far larger than any answer. */
const maxStreamBytes = 32 * 1024 * 1024
/** Maximum length of a single object. */
const maxObjectCharacters = 4 * 1024 * 1024

/** The JSON objects in a response, which is either a stream of server-sent events or a single object. */
export async function* responseObjects(
  server: ModelServer,
  answer: HttpResponse,
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<unknown> {
  const events = createSseDecoder(maxObjectCharacters)
  const parts: Buffer[] = []
  let length = 0
  // Trust only these two media types; for all others, which servers often send by mistake, look at the content.
  let form: BodyForm | undefined =
    answer.type === 'text/event-stream' ? 'events' : answer.type === 'text/html' ? 'other' : undefined
  for await (const chunk of chunks) {
    length += chunk.length
    form ??= sniffBodyForm(Buffer.concat([...parts, chunk]))
    if (length > (form === 'events' ? maxStreamBytes : maxObjectCharacters)) throw answerTooLong(server, length)
    if (form !== 'events') parts.push(chunk)
    else {
      for (const data of events.push(parts.length > 0 ? Buffer.concat([...parts.splice(0), chunk]) : chunk)) {
        if (data === '[DONE]') {
          answer.isOver = true
          return
        }
        const object = parseCompletion(server, data)
        answer.isFinished ||= isFinished(object)
        yield object
      }
    }
  }
  if (form === 'events') {
    for (const data of events.end()) {
      if (data === '[DONE]') return
      // A finished answer may break off in the middle of its last event.
      const object = answer.isFinished ? parseJson(data) : parseCompletion(server, data)
      answer.isFinished ||= isFinished(object)
      yield object
    }
    // Neither a finish reason nor [DONE]: use the answer as far as it came, but not as a complete one.
    if (!answer.isFinished) yield interruption
    return
  }
  const text = Buffer.concat(parts).toString('utf8')
  if (text.trim() === '') throw notACompletion(server, 'nothing')
  if (form !== 'object') throw notACompletion(server, answer.type || 'an unknown response')
  yield parseCompletion(server, text)
}

type BodyForm = 'events' | 'object' | 'other'

/** The format of a body, judging by its beginning; `undefined` while only whitespace has arrived. */
function sniffBodyForm(bytes: Buffer): BodyForm | undefined {
  const start = bytes
    .subarray(0, 256)
    .toString('latin1')
    .replace(/^\u00ef\u00bb\u00bf/, '')
    .trimStart()
  if (start === '') return undefined
  if (start.startsWith('{')) return 'object'
  return /^(?:data|event|id|retry)?:/.test(start) ? 'events' : 'other'
}

function parseCompletion(server: ModelServer, text: string): unknown {
  const value = parseJson(text)
  if (value === undefined) throw notACompletion(server, 'text that is not JSON')
  return value
}

/**
 * Decodes server-sent events and keeps only their data. A character may be split between chunks; invalid UTF-8 becomes
 * replacement characters. Each chunk is scanned only once, even within a long line.
 */
export function createSseDecoder(maxLength: number) {
  const decoder = new TextDecoder()
  let begun: string[] = []
  let length = 0
  let data: string[] = []

  const grow = (by: number): void => {
    length += by
    if (length > maxLength) throw new EventTooLong(`an event is longer than ${maxLength} characters`)
  }

  const read = (text: string): readonly string[] => {
    const found: string[] = []
    let from = 0
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', from)) {
      const part = text.slice(from, at)
      const line = (begun.length > 0 ? [...begun, part].join('') : part).replace(/\r$/, '')
      begun = []
      grow(at - from)
      from = at + 1
      if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
      if (line !== '') continue
      if (data.length > 0) found.push(data.join('\n'))
      data = []
      length = 0
    }
    if (from === text.length) return found
    grow(text.length - from)
    begun.push(text.slice(from))
    return found
  }

  return {
    /** Returns the data from the events that this chunk completes. */
    push: (chunk: Uint8Array) => read(decoder.decode(chunk, { stream: true })),
    /** Returns the data from the last event if the blank line after it is missing, as some servers omit it. */
    end: () => read(`${decoder.decode()}\n\n`),
  }
}
