/** HTTP to one origin: requests whose answers are told as they arrive, without streams in between. */
export interface Channel extends AsyncDisposable {
  /** Whether a connection over which the server has answered is still open. */
  readonly connected: boolean
  /** How often the last such connection was closed, by either side: another server may listen there since. */
  readonly gaps: number
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
  /** The proxy that has passed it on, or may have made it up itself. */
  readonly relay?: string | undefined
  /** The media type, without parameters. */
  readonly type: string
  header(name: string): string | undefined
  /** Every value of a header that may come several times. */
  all(name: string): readonly string[]
  /** Stops the rest of the answer. */
  abort(): void
}

/** Whoever reads the rest of an answer: `data` any number of times, then one of the other two. */
export interface Body {
  /** The length up to which it is wanted in one piece. */
  readonly whole?: number
  data(chunk: Buffer): void
  end(): void
  lost(error: Error): void
}

/** No connection was made in time. The code is the one that the operating system uses. */
export class ConnectTimeout extends Error {
  override readonly name = 'ConnectTimeout'
  readonly code = 'ETIMEDOUT'

  constructor(ms: number) {
    super(`no connection within ${ms / 1000} s, a fixed limit`)
  }
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
