import type { Clock } from '../../../core/clock.ts'
import type { WayOut } from '../../../outbound/way-out.ts'

/** An answer whose head has come. */
export interface HttpResponse extends Disposable {
  readonly status: number
  /** The media type, without parameters. */
  readonly type: string
  header(name: string): string | undefined
  /** The rest, as it comes. Rejects when the signal of the request aborts. */
  readonly chunks: AsyncIterable<Buffer>
  /** All has been said; what still comes is the end. */
  over(): void
}

interface Post {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly signal: AbortSignal
}

/** Whoever has said that all is said should hang up within this time. */
const lastMoment = 1_000

/**
 * Sends one request. Disposing of the answer before it has ended closes the connection, so that the server stops; if
 * only the end is missing, it may still come, so that the connection can be used again.
 */
export async function post(way: WayOut, { path, headers, body, signal }: Post): Promise<HttpResponse> {
  const {
    statusCode,
    headers: received,
    body: rest,
  } = await way.request({ method: 'POST', path, headers, body, signal })
  // Whoever has stopped reading need not hear how it ended.
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

/** The same chunks; `stalled` is called when one is awaited for too long, and has to end the waiting. */
export async function* withStallTimeout(
  chunks: AsyncIterable<Buffer>,
  { clock, ms, stalled }: { readonly clock: Clock; readonly ms: number; stalled(): void },
): AsyncGenerator<Buffer> {
  const iterator = chunks[Symbol.asyncIterator]()
  try {
    // Until the first one, a server may have to read a long prompt.
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

/** The text of an answer, up to so many bytes; `undefined` where it is longer. */
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
