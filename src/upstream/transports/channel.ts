import type { Dispatcher, Pool } from 'undici'

/** HTTP to one origin: requests whose answers are told as they arrive, without streams in between. */
export interface Channel extends AsyncDisposable {
  /**
   * Settles when the head of the answer is there; `receive` says at that moment who reads the rest.
   * Rejects with `NoAnswer` if none came, or with the signal's reason.
   */
  ask(request: HttpRequest, receive: (head: Head) => Body): Promise<Head>
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly signal?: AbortSignal | undefined
}

export interface Head {
  readonly status: number
  /** The media type, without parameters. */
  readonly type: string
  header(name: string): string | undefined
  /** Stops the rest of the answer. */
  abort(): void
}

/** Whoever reads the rest of an answer: `data` any number of times, then one of the other two. */
export interface Body {
  data(chunk: Buffer): void
  end(): void
  lost(error: Error): void
}

/** The connection failed before an answer began; `written` says whether the request may have reached the server. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
  readonly written: boolean

  constructor(written: boolean, cause: unknown) {
    super('no answer', { cause })
    this.written = written
  }
}

export function createChannel(origin: string): Channel {
  let pool: Pool | undefined
  let opening: Promise<Pool> | undefined
  let closed = false
  /** Loaded when it is needed: many gateways have no server that is reached over HTTP, and it is large. */
  const open = async () => {
    const { Pool } = await import('undici')
    pool = new Pool(origin, poolOptions)
    if (closed) await pool.destroy()
    return pool
  }
  return {
    ask(request, receive) {
      if (pool) return ask(pool, request, receive)
      opening ??= open()
      return opening.then((opened) => ask(opened, request, receive))
    },
    async [Symbol.asyncDispose]() {
      closed = true
      await pool?.destroy()
    },
  }
}

const poolOptions: Pool.Options = {
  // Calls end by their own signal; a tool may well need longer than a timeout that knows nothing of it.
  headersTimeout: 0,
  bodyTimeout: 0,
  // A connection that the server closes just as we write to it leaves the outcome unknown: one that has been idle
  // for long, or nearly as long as the server says it waits, is not used again.
  keepAliveTimeout: 4_000,
  keepAliveMaxTimeout: 15_000,
  keepAliveTimeoutThreshold: 2_000,
  // Streams that stay open for hours are better off on connections of their own.
  allowH2: false,
}

function ask(pool: Pool, request: HttpRequest, receive: (head: Head) => Body): Promise<Head> {
  const { method, path, headers, body: sent, signal } = request
  if (signal?.aborted) return Promise.reject(signal.reason)
  const { promise, resolve, reject } = Promise.withResolvers<Head>()
  let controller: Dispatcher.DispatchController | undefined
  let body: Body | undefined
  const abort = (): void => controller?.abort(new Error('nobody reads the answer any more'))
  const stop = (): void => {
    reject(signal?.reason)
    abort()
  }
  signal?.addEventListener('abort', stop, { once: true })
  const over = (): void => signal?.removeEventListener('abort', stop)

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(started) {
      controller = started
      if (signal?.aborted) abort()
    },
    onResponseStart(_, status, received) {
      if (status < 200) return
      const header = (name: string): string | undefined => {
        const value = received[name]
        return Array.isArray(value) ? value[0] : value
      }
      const type = (header('content-type') ?? '').split(';', 1)[0] as string
      const head = { status, type: type.trim().toLowerCase(), header, abort }
      body = receive(head)
      resolve(head)
    },
    onResponseData: (_, chunk) => body?.data(chunk),
    onResponseEnd() {
      over()
      body?.end()
    },
    onResponseError(_, error) {
      over()
      if (body) body.lost(error)
      else reject(new NoAnswer(controller !== undefined, error))
    },
  }
  try {
    pool.dispatch({ method, path, headers, body: sent ?? null }, handler)
  } catch (error) {
    over()
    reject(new NoAnswer(false, error))
  }
  return promise
}
