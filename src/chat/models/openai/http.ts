import type { Clock } from '../../../core/clock.ts'
import type { HttpClient } from '../../../lib/http-client.ts'

/** A response whose headers have arrived. */
export interface HttpResponse extends Disposable {
  readonly status: number
  /** The media type, without parameters. */
  readonly type: string
  header(name: string): string | undefined
  /** The body. Rejects when the request's signal aborts. */
  readonly chunks: AsyncIterable<Buffer>
  /** Marks the answer as complete; only the end of the body is missing. */
  over(): void
}

interface Post {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly signal: AbortSignal
}

/** How long to wait for the end of the body. */
const lastMoment = 1_000

/**
 * Sends one request. Disposing of the response closes the connection, so that the server stops; a complete answer is
 * read to its end instead, so that the connection can be reused.
 */
export async function post(way: HttpClient, { path, headers, body, signal }: Post): Promise<HttpResponse> {
  const {
    statusCode,
    headers: received,
    body: rest,
  } = await way.request({ method: 'POST', path, headers, body, signal })
  // Errors after the consumer has left are irrelevant.
  rest.on('error', () => {})
  const header = (name: string): string | undefined => {
    const value = received[name]
    return Array.isArray(value) ? value[0] : value
  }
  let isOver = false
  const [type = ''] = (header('content-type') ?? '').split(';', 1)
  return {
    status: statusCode,
    type: type.trim().toLowerCase(),
    header,
    chunks: rest.iterator({ destroyOnReturn: false }),
    over: () => {
      isOver = true
    },
    [Symbol.dispose]() {
      if (!isOver) return void rest.destroy()
      const moment = { limit: Number.MAX_SAFE_INTEGER, signal: AbortSignal.timeout(lastMoment) }
      rest.dump(moment).catch(() => {})
    },
  }
}

/** Passes the chunks on; calls `stalled` if the next one takes too long, which must abort the request. */
export async function* withStallTimeout(
  chunks: AsyncIterable<Buffer>,
  { clock, ms, stalled }: { readonly clock: Clock; readonly ms: number; stalled(): void },
): AsyncGenerator<Buffer> {
  const iterator = chunks[Symbol.asyncIterator]()
  try {
    // No limit for the first chunk: the server may have a long prompt to read.
    let next = await iterator.next()
    while (!next.done) {
      yield next.value
      using _watch = clock.after(ms, stalled)
      next = await iterator.next()
    }
  } finally {
    await iterator.return?.()
  }
}

/** The body as text; `undefined` if it is longer than `most` bytes. */
export async function readText(chunks: AsyncIterable<Buffer>, most: number): Promise<string | undefined> {
  const parts: Buffer[] = []
  let length = 0
  for await (const chunk of chunks) {
    length += chunk.length
    if (length > most) return undefined
    parts.push(chunk)
  }
  return Buffer.concat(parts).toString('utf8')
}
