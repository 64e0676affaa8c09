import type { Clock } from '../../../core/clock.ts'
import type { HttpClient } from '../../../egress/http-client.ts'

export type HttpResponse = Awaited<ReturnType<typeof post>>

/** How long to wait for the body to end after the answer is complete. */
const endTimeoutMs = 1_000

/** How long to wait for the usage and `[DONE]` after a finish reason; some servers send neither. */
const afterFinishMs = 2_000

/**
 * Sends one request. Disposing of the response closes the connection, so that the server stops generating. If the
 * answer is complete, the body is read to its end instead, so that the connection can be reused.
 */
export async function post(client: HttpClient, request: Omit<Parameters<HttpClient['request']>[0], 'method'>) {
  const { statusCode, headers, body } = await client.request({ ...request, method: 'POST' })
  // Ignore errors that occur after the consumer has stopped reading.
  body.on('error', () => {})
  const header = (name: string): string | undefined => [headers[name]].flat()[0]
  let isOver = false
  let isFinished = false
  return {
    status: statusCode,
    /** The media type, without parameters. */
    type: (header('content-type') ?? '').replace(/;.*/s, '').trim().toLowerCase(),
    header,
    /** The body. Reading it fails once the request's signal aborts. */
    chunks: body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>,
    /** Marks the answer as finished: only its usage and its end are still expected. */
    finish: () => {
      isFinished = true
    },
    isFinished: () => isFinished,
    /** Marks the answer as complete: only the end of the body is still expected. */
    over: () => {
      isOver = true
    },
    [Symbol.dispose]() {
      if (!isOver) return void body.destroy()
      const limits = { limit: Number.MAX_SAFE_INTEGER, signal: AbortSignal.timeout(endTimeoutMs) }
      body.dump(limits).catch(() => {})
    },
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
