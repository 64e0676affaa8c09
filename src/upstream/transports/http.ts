import { deadline, settles } from '../../core/deadline.ts'
import type { ToolwayError } from '../../core/errors.ts'
import { maxMessage, readMessage } from '../../wire/message.ts'
import { authorizedChannel } from '../oauth/authorization.ts'
import {
  forgetsSession,
  HttpTransportBase,
  type HttpTransportOptions,
  mayBeOtherProtocol,
  mayForgetSession,
  promptlyMs,
  refusesVersion,
  sessionEndMs,
} from './http-base.ts'
import {
  discardBody,
  type HttpChannel,
  isHeaderValue,
  NoResponse,
  type ReceiveBody,
  type ResponseBodyReader,
  type ResponseHead,
  readWholeBody,
  UndecodableBody,
} from './http-channel.ts'
import { isResponseMessage, isStream, keepServerStream, ResponseStream } from './http-streams.ts'
import { createReadBudget } from './read-limit.ts'
import type { OutgoingMessage, TransportReceiver } from './transport.ts'
import {
  closedByUs,
  connectionLost,
  LimitExceeded,
  noResponseError,
  protocolChanged,
  rejectedRequest,
  rejectedSession,
  sessionEnded,
  type TransportState,
  unusableSession,
} from './transport-errors.ts'

type HeaderValues = Readonly<Record<string, string>>

/** How long a call waits while we check whether the server still knows the session. */
const sessionCheckMs = 2_000
/** How old a session, or the last check of it, must be before a rejection makes us check whether it was lost. */
const sessionRecheckMs = 10_000
const sessionCheck = Buffer.from('{"jsonrpc":"2.0","id":"session-check","method":"ping"}')
/** Unlike a ping, a list is refused without a session by every server that keeps sessions. */
const sessionProbe = Buffer.from('{"jsonrpc":"2.0","id":"session-check","method":"tools/list"}')

/** Streamable HTTP: one POST per message, and one stream for messages from the server. */
export class HttpTransport extends HttpTransportBase {
  readonly kind = 'http'
  /** For session checks: their rejections say nothing about the credential. */
  readonly #checks: HttpChannel
  /** The options, with a budget for all streams of this connection. */
  readonly #streams: HttpTransportOptions
  readonly #listening = new AbortController()
  readonly #disposal = new AbortController()
  readonly #underWay = new Set<number>()
  readonly #idle = Promise.withResolvers<void>()
  #session: string | undefined
  /** Whether the server sent a session id that cannot be sent back. */
  #isSessionUnusable = false
  #version: string | undefined
  #isStateless = false
  /** Prepared once, so that they need not be built for each request. */
  #headers: Readonly<Record<'hello' | 'post' | 'get', HeaderValues>>
  /** Whether the server has so far answered only the handshake in this session. */
  #isFresh = true
  #checking: Promise<void> | undefined
  /** When the session was opened or last probed, and whether that probe found it lost. */
  #probedAt = 0
  #lost = Promise.resolve(false)
  /** The message that the server accepted as its handshake; sent again to check that it still does. */
  #hello: Pick<OutgoingMessage, 'body' | 'headers'> | undefined

  constructor(options: HttpTransportOptions) {
    super(options)
    const { authorize, reading = createReadBudget() } = options
    this.#streams = { ...options, reading }
    this.#checks = authorize
      ? authorizedChannel(this.plain, { header: () => authorize.header(), refused: async () => false })
      : this.plain
    this.#headers = this.#prepareHeaders()
  }

  get gaps(): number {
    return this.plain.gaps
  }

  get hasSession(): boolean {
    return this.#session !== undefined
  }

  async open(receiver: TransportReceiver, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    this.receiver = receiver
  }

  established(protocolVersion: string, era: 'legacy' | 'modern' = 'legacy'): void {
    this.#version = protocolVersion
    this.#isStateless = era === 'modern'
    // The stateless protocol has no sessions. Callers must not share one that the server made up.
    if (this.#isStateless) this.#session = undefined
    this.#probedAt = this.options.clock.monotonic()
    this.#headers = this.#prepareHeaders()
    if (this.#isStateless) return
    void keepServerStream(this.#streams, {
      signal: this.#listening.signal,
      open: (lastEventId, receive) => this.#get(lastEventId, receive),
      deliver: (data) => this.receiver?.message(data),
      forgotten: () => this.#endSession(),
      rejected: () => void this.#isLost(),
    })
  }

  async send(message: OutgoingMessage): Promise<void> {
    if (this.over) throw this.over
    const { exchange, signal } = message
    if (exchange !== undefined) this.#underWay.add(exchange)
    using limit =
      signal || exchange !== undefined ? undefined : deadline(this.options.clock, promptlyMs, () => this.#tooSlow())
    try {
      if (this.#mustCheck(message)) await this.#check()
      await this.#postMessage(message, signal ?? limit?.signal)
    } catch (thrown) {
      this.#settle(exchange)
      const error = noResponseError(this.state(), thrown)
      // The server cannot be reached, so the next call must reconnect.
      const isDown = this.#version !== undefined && thrown instanceof NoResponse && !thrown.written
      if (isDown) this.#endConnection(error as ToolwayError)
      throw error
    }
  }

  async #postMessage(message: OutgoingMessage, signal: AbortSignal | undefined): Promise<void> {
    const { body, exchange } = message
    const isHello = this.#version === undefined
    if (isHello) this.#hello = { body, headers: message.headers }
    const headers = message.headers ? { ...this.#headers.post, ...message.headers } : this.#headers.post
    const session = this.#session
    const receive: ReceiveBody = (head) => this.#receive(head, message)
    const { head, text } = await this.post({ path: this.path, headers, body, signal }, receive, { follows: isHello })
    if (head.status >= 300) await this.#onRejected(head, text, message, session !== undefined)
    else if (exchange !== undefined && !hasMessages(head, this.#isStateless))
      throw connectionLost(this.state(), `responded with ${describeBody(head)} instead of a message`)
  }

  async #onRejected(
    head: ResponseHead,
    text: Buffer | undefined,
    { body, exchange, repeatable }: OutgoingMessage,
    hadSession: boolean,
  ): Promise<void> {
    const isForgotten = hadSession && forgetsSession(head, text)
    const isLost = hadSession && !isForgotten && mayForgetSession(head, text) && (await this.#isLost())
    const mayHaveChanged = this.#isStateless && mayBeOtherProtocol(head)
    const isRefused = mayHaveChanged && refusesVersion(text) && (await this.#hasChangedProtocol())
    if (!isForgotten && !isLost && !isRefused && this.#passOn(text, body, exchange)) return
    this.#settle(exchange)
    if (isForgotten || isLost) {
      const error = rejectedSession(this.options.name, head.status, this.#isFresh && !isLost, repeatable)
      this.#endSession()
      throw error
    }
    if (isRefused || (mayHaveChanged && (await this.#hasChangedProtocol()))) throw this.over
    if (this.#isSessionUnusable && this.#version !== undefined && (head.status === 400 || head.status === 404))
      throw unusableSession(this.state(), head)
    throw rejectedRequest(this.state(), head, text?.toString('latin1'))
  }

  /** Passes the server's JSON-RPC error to the caller unchanged, whatever the HTTP status. */
  #passOn(text: Buffer | undefined, asked: Buffer, exchange: number | undefined): boolean {
    if (exchange === undefined || text === undefined) return false
    const error = readMessage(text)
    const request = readMessage(asked)
    if (error.kind !== 'error' || request.kind !== 'request' || String(error.id) !== String(request.id)) return false
    this.#settle(exchange)
    this.receiver?.message(text, exchange)
    return true
  }

  #receive(head: ResponseHead, message: OutgoingMessage): ResponseBodyReader {
    const { exchange, signal } = message
    const { clock } = this.options
    if (this.#version === undefined) this.#readSession(head.header('mcp-session-id'))
    else if (exchange !== undefined) this.#isFresh = false
    if (exchange === undefined || head.status === 202 || !hasMessages(head, this.#isStateless)) {
      this.#settle(exchange)
      return discardBody(head, clock)
    }
    const done = (failure?: string, cause?: unknown) => this.#finish(message, failure, cause)
    if (isStream(head)) {
      const stream = new ResponseStream(this.#streams, {
        signal: () => (signal ? AbortSignal.any([signal, this.#disposal.signal]) : this.#disposal.signal),
        deliver: (data) => this.#onResponse(head, message, data),
        // The stateless protocol has no GET.
        reopen: this.#isStateless ? undefined : (lastEventId, receive) => this.#get(lastEventId, receive, signal),
        done,
      })
      return stream.read(head)
    }
    return readWholeBody(head, {
      maxLength: maxMessage,
      done: (bytes) => {
        if (!isResponseMessage(bytes)) return done('responded with something that is not a JSON-RPC message')
        this.#onResponse(head, message, bytes)
        this.#settle(exchange)
      },
      lost: (error) =>
        error instanceof UndecodableBody
          ? done(`sent a response that is not valid ${error.message}`, error)
          : done('closed the connection in the middle of its response', error),
      tooLong: () =>
        done(
          `responded with more than ${maxMessage / 1024 / 1024} MiB`,
          new LimitExceeded('large-message', maxMessage),
        ),
    })
  }

  #readSession(id: string | undefined): void {
    this.#isSessionUnusable = id !== undefined && !isHeaderValue(id)
    if (this.#session !== undefined || !isHeaderValue(id)) return
    this.#session = id
    this.#headers = this.#prepareHeaders()
  }

  #onResponse(head: ResponseHead, { exchange, repeatable }: OutgoingMessage, bytes: Buffer): void {
    const isSuspicious = this.#session !== undefined && this.#version !== undefined && mayForgetSession(head, bytes)
    if (!isSuspicious) this.receiver?.message(bytes, exchange)
    else
      void this.#isLost().then((isLost) => {
        const error = rejectedSession(this.options.name, head.status, false, repeatable)
        if (isLost) this.receiver?.failed(exchange as number, error)
        else this.receiver?.message(bytes, exchange)
      })
  }

  #finish({ exchange, signal }: OutgoingMessage, failure: string | undefined, cause: unknown): void {
    this.#settle(exchange)
    if (failure !== undefined && !signal?.aborted)
      this.receiver?.failed(exchange as number, connectionLost(this.state(), failure, cause))
  }

  #get(lastEventId: string | undefined, receive: ReceiveBody, signal?: AbortSignal): Promise<ResponseHead> {
    const { get } = this.#headers
    const headers = isHeaderValue(lastEventId) ? { ...get, 'last-event-id': lastEventId } : get
    return this.request({ method: 'GET', path: this.path, headers, signal }, receive)
  }

  /**
   * Whether to check that the server still knows the session, before sending a request that must not run twice. After a
   * restart, a server has closed all connections and forgotten the session; if it then rejects the request, it is
   * unknown whether the request has run.
   */
  #mustCheck({ exchange, repeatable }: OutgoingMessage): boolean {
    if (exchange === undefined || repeatable || this.#isFresh || this.#session === undefined) return false
    return !this.plain.connected
  }

  async #check(): Promise<void> {
    await this.#checkOnce('could not check whether the session is still valid', async (signal) => {
      const { head, text } = await this.#ask(sessionCheck, this.#headers.post, signal)
      if (head.status >= 300 && forgetsSession(head, text)) this.#endSession()
      else if (mayForgetSession(head, text)) await this.#isLost()
    })
    if (this.over) throw this.over
  }

  /** Whether a server that was stateless rejects even the handshake now, because another version has replaced it. */
  async #hasChangedProtocol(): Promise<boolean> {
    await this.#checkOnce('could not check which protocol the server speaks', async (signal) => {
      if (!this.#hello) return
      const { body } = this.#hello
      const headers = { ...this.#headers.post, ...this.#hello.headers }
      const { head } = await this.post({ path: this.path, headers, body, signal }, this.#discard)
      if (mayBeOtherProtocol(head)) this.#endConnection(protocolChanged(this.state()))
    })
    return this.over !== undefined
  }

  /** Requests that arrive during a check wait for it instead of starting another one. */
  async #checkOnce(failed: string, check: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { name: server, clock, log } = this.options
    const begin = async () => {
      try {
        using limit = deadline(clock, sessionCheckMs, () => this.#tooSlow())
        await check(limit.signal)
      } catch (error) {
        log.debug({ server, err: error }, failed)
      } finally {
        this.#checking = undefined
      }
    }
    this.#checking ??= begin()
    await this.#checking
  }

  /** Whether the session is lost, and ends it if so. Probes at most once per `recheckMs`. */
  #isLost(): Promise<boolean> {
    const { name: server, clock, log } = this.options
    const now = clock.monotonic()
    if (now - this.#probedAt < sessionRecheckMs) return this.#lost
    this.#probedAt = now
    this.#lost = this.#probe().catch((error) => {
      log.debug({ server, err: error }, 'could not check whether the session was lost')
      return false
    })
    return this.#lost
  }

  /**
   * The session is lost if the server refuses a harmless request in it, but opens a new one. If it does neither, the
   * reason is something else, such as a rejected credential, and a new session would not help.
   */
  async #probe(): Promise<boolean> {
    const { name: server, clock, log } = this.options
    if (this.#session === undefined || this.#isStateless || !this.#hello) return false
    using limit = deadline(clock, sessionCheckMs, () => this.#tooSlow())
    const { head, text } = await this.#ask(sessionProbe, this.#headers.post, limit.signal)
    if (!forgetsSession(head, text) && !mayForgetSession(head, text)) return false
    const opened = (await this.#ask(this.#hello.body, this.#headers.hello, limit.signal, this.#discard)).head
    const id = opened.header('mcp-session-id')
    if (opened.status !== 200 || !isHeaderValue(id) || id === this.#session) return false
    const headers = { ...this.#headers.get, 'mcp-session-id': id }
    this.request({ method: 'DELETE', path: this.path, headers }, this.#discard, this.#checks).catch(() => {})
    log.info({ server, status: head.status }, 'the server has lost the session; the next request opens a new one')
    this.#endSession()
    return true
  }

  #ask(body: Buffer, headers: HeaderValues, signal: AbortSignal, receive?: ReceiveBody) {
    return this.post({ path: this.path, headers, body, signal }, receive, { channel: this.#checks })
  }

  readonly #discard: ReceiveBody = (head) => discardBody(head, this.options.clock)

  #endSession(): void {
    this.#endConnection(sessionEnded(this.state()))
  }

  /** Ends a connection whose server is gone or has forgotten the session. Pending requests may still be answered. */
  #endConnection(error: ToolwayError): void {
    if (this.over) return
    this.end(error)
    this.#session = undefined
    this.#listening.abort()
    if (this.#underWay.size === 0) this.#idle.resolve()
    void settles(this.#idle.promise, sessionEndMs, this.options.clock).then(() => {
      for (const exchange of this.#underWay)
        this.receiver?.failed(exchange, connectionLost(this.state(), 'closed the session'))
      // Report the end later, so that callers whose request was just rejected learn of the rejection first.
      setImmediate(() => this.receiver?.closed(error))
    })
  }

  #settle(exchange: number | undefined): void {
    if (exchange !== undefined) this.#underWay.delete(exchange)
    if (this.over && this.#underWay.size === 0) this.#idle.resolve()
  }

  protected async dispose(): Promise<void> {
    const { name, clock } = this.options
    this.end(closedByUs(name))
    this.receiver = undefined
    this.#listening.abort()
    this.#disposal.abort()
    if (this.#session !== undefined) {
      const request = { method: 'DELETE', path: this.path, headers: this.#headers.get } as const
      await settles(this.request(request, this.#discard), sessionEndMs, clock)
    }
    await settles(this.plain[Symbol.asyncDispose](), sessionEndMs, clock)
  }

  #prepareHeaders(): Readonly<Record<'hello' | 'post' | 'get', HeaderValues>> {
    const { configured } = this
    const all = {
      ...configured,
      ...(this.#session !== undefined && { 'mcp-session-id': this.#session }),
      ...(isHeaderValue(this.#version) && { 'mcp-protocol-version': this.#version }),
    }
    const posted = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
    return {
      hello: { ...configured, ...posted },
      post: { ...all, ...posted },
      get: { ...all, accept: 'text/event-stream' },
    }
  }

  protected state(): TransportState {
    return { name: this.options.name, origin: this.url.origin, established: this.#version !== undefined }
  }

  #tooSlow(): ToolwayError {
    return connectionLost(this.state(), `did not accept a notification within ${promptlyMs / 1000} s (a fixed limit)`)
  }
}

/** Whether a response contains messages, or announces them for later, which the stateless protocol does not allow. */
const hasMessages = (head: ResponseHead, stateless: boolean): boolean =>
  (head.status === 202 && !stateless) ||
  (head.status === 200 &&
    (head.type === 'application/json' || head.type === 'text/event-stream') &&
    !head.hasUnknownEncoding)

function describeBody(head: ResponseHead): string {
  if (head.status !== 200) return `HTTP ${head.status}`
  if (head.hasUnknownEncoding) return `the unknown encoding ${JSON.stringify(head.encoding.slice(0, 100))}`
  return head.type || 'no media type'
}
