import type { Clock } from '../../core/clock.ts'
import { deadline, settles } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { maxMessage, readMessage } from '../../wire/message.ts'
import { EventReader } from '../../wire/sse.ts'
import { authorizedChannel, type RequestAuthorizer } from '../oauth/authorization.ts'
import {
  type ChannelRequest,
  configuredHeaders,
  discardBody,
  type HttpChannel,
  isHeaderValue,
  NoResponse,
  type ReceiveBody,
  type ResponseBodyReader,
  type ResponseHead,
  readWholeBody,
  UndecodableBody,
  unknownEncoding,
} from './http-channel.ts'
import { forgets, maxRefusal, mayBeOtherProtocol, mayForget, refusesVersion } from './http-rejections.ts'
import { isResponse, isStream, keepServerStream, readResponseStream } from './http-streams.ts'
import { createHttpChannel } from './http1/channel.ts'
import { createReadBudget, maxPerSecond, type ReadBudget } from './read-limit.ts'
import { followRedirects } from './redirects.ts'
import type { OutgoingMessage, Transport, TransportReceiver } from './transport.ts'
import {
  closedByUs,
  connectionLost,
  LimitExceeded,
  noResponse,
  protocolChanged,
  rejectedRequest,
  rejectedSession,
  sessionEnded,
  unusableSession,
} from './transport-errors.ts'

export interface HttpTransportOptions {
  readonly name: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Provides credentials that change while the connection is open. */
  readonly authorize?: RequestAuthorizer | undefined
  /** Called if the server exceeds a limit, without a request that fails for it. */
  exceeded?(limit: LimitExceeded): void
  /** What all streams of the server may use together; by default, each connection has a budget of its own. */
  readonly reading?: ReadBudget | undefined
  readonly clock: Clock
  readonly log: Log
}

type Headers = Readonly<Record<string, string>>

/** How long to wait for a rejection's body, or for the response to a notification. Both arrive quickly. */
const promptlyMs = 10_000
/** How long to wait for pending responses when a session ends, and for the response to the request that ends it. */
const goodbyeMs = 1_000
/** How long a call waits while we check whether the server still knows the session. */
const checkMs = 2_000
/** How old a session, or the last check of it, must be before a rejection makes us check whether it was lost. */
const recheckMs = 10_000
const sessionCheck = Buffer.from('{"jsonrpc":"2.0","id":"session-check","method":"ping"}')
/** Unlike a ping, a list is refused without a session by every server that keeps sessions. */
const sessionProbe = Buffer.from('{"jsonrpc":"2.0","id":"session-check","method":"tools/list"}')

/** Streamable HTTP: one POST per message, and one stream for messages from the server. */
export function httpTransport(options: HttpTransportOptions): Transport {
  const { name, reading = createReadBudget(), clock, log } = options
  const url = new URL(options.url)
  const path = url.pathname + url.search
  const configured = configuredHeaders(url, options.headers)
  const plain = followRedirects(createHttpChannel(url.origin, clock), {
    origin: url.origin,
    // Nothing after the handshake.
    isRepeatable: () => version === undefined,
    clock,
  })
  const { authorize } = options
  const channel = authorize ? authorizedChannel(plain, authorize) : plain
  /** For session checks: their rejections say nothing about the credential. */
  const checks = authorize
    ? authorizedChannel(plain, { header: () => authorize.header(), refused: async () => false })
    : plain
  const listening = new AbortController()
  const disposal = new AbortController()
  const underWay = new Set<number>()
  const idle = Promise.withResolvers<void>()
  let receiver: TransportReceiver | undefined
  let session: string | undefined
  /** Whether the server sent a session id that cannot be sent back. */
  let isUnusable = false
  let version: string | undefined
  let stateless = false
  let headers: Readonly<Record<'hello' | 'post' | 'get', Headers>> = { hello: {}, post: {}, get: {} }
  let disposing: Promise<void> | undefined
  /** Whether the server has so far answered only the handshake in this session. */
  let fresh = true
  let checking: Promise<void> | undefined
  /** When the session was opened or last probed, and whether that probe found it lost. */
  let probedAt = 0
  let lost = Promise.resolve(false)
  /** The message that the server accepted as its handshake; sent again to check that it still does. */
  let hello: Pick<OutgoingMessage, 'body' | 'headers'> | undefined
  /** Why nothing can be sent any more; undefined while messages can be sent. */
  let over: ToolwayError | undefined
  remember()

  return {
    kind: 'http',
    get usable() {
      return over === undefined
    },
    get gaps() {
      return channel.gaps
    },
    get hasSession() {
      return session !== undefined
    },
    async open(given, signal) {
      signal.throwIfAborted()
      receiver = given
    },
    send,
    established(protocolVersion, era = 'legacy') {
      version = protocolVersion
      stateless = era === 'modern'
      // The stateless protocol has no sessions. Callers must not share one that the server made up.
      if (stateless) session = undefined
      probedAt = clock.monotonic()
      remember()
      if (stateless) return
      void keepServerStream({
        server: name,
        clock,
        log,
        signal: listening.signal,
        open: get,
        deliver: (data) => receiver?.message(data),
        exceeded: (limit) => options.exceeded?.(limit),
        reading,
        forgotten: endSession,
        rejected: () => void isLost(),
      })
    },
    [Symbol.asyncDispose]() {
      disposing ??= dispose()
      return disposing
    },
  }

  async function send(message: OutgoingMessage): Promise<void> {
    if (over) throw over
    const { exchange } = message
    if (exchange !== undefined) underWay.add(exchange)
    using limit = message.signal || exchange !== undefined ? undefined : deadline(clock, promptlyMs, tooSlow)
    try {
      if (mustCheck(message)) await checked()
      await post(message, message.signal ?? limit?.signal)
    } catch (thrown) {
      settled(exchange)
      const error = noResponse(state(), thrown)
      // The server cannot be reached, so the next call must reconnect.
      const down = version !== undefined && thrown instanceof NoResponse && !thrown.written
      if (down && error instanceof ToolwayError) endConnection(error)
      throw error
    }
  }

  async function post(message: OutgoingMessage, until: AbortSignal | undefined): Promise<void> {
    const { body, exchange, repeatable } = message
    const within = session
    if (version === undefined) hello = { body, headers: message.headers }
    const all = message.headers ? { ...headers.post, ...message.headers } : headers.post
    const { head, text } = await asked(channel, body, all, until, (head) => answer(head, message))
    if (head.status < 300) {
      if (exchange !== undefined && !isReadable(head, stateless))
        throw connectionLost(state(), `responded with ${what(head)} instead of a message`)
      return
    }
    const forgotten = within !== undefined && forgets(head, text)
    const found = within !== undefined && !forgotten && mayForget(head, text) && (await isLost())
    const mayHaveChanged = stateless && mayBeOtherProtocol(head)
    const isRefused = mayHaveChanged && refusesVersion(text) && (await hasChangedProtocol())
    if (!forgotten && !found && !isRefused && passOn(text, body, exchange)) return
    settled(exchange)
    if (forgotten || found) {
      const error = rejectedSession(name, head.status, fresh && !found, repeatable)
      endSession()
      throw error
    }
    if (isRefused || (mayHaveChanged && (await hasChangedProtocol()))) throw over
    if (isUnusable && version !== undefined && (head.status === 400 || head.status === 404))
      throw unusableSession(state(), head)
    throw rejectedRequest(state(), head, text?.toString('latin1'))
  }

  function asked(
    channel: HttpChannel,
    body: Buffer,
    headers: Headers,
    signal: AbortSignal | undefined,
    receive?: ReceiveBody,
  ) {
    return postAndRead(channel, { path, headers, body, signal }, clock, receive)
  }

  /**
   * Whether to check that the server still knows the session, before sending a request that must not run twice. After a
   * restart, a server has closed all connections and forgotten the session; if it then rejects the request, it is
   * unknown whether the request has run.
   */
  function mustCheck({ exchange, repeatable }: OutgoingMessage): boolean {
    return exchange !== undefined && !repeatable && !fresh && session !== undefined && !channel.connected
  }

  async function checked(): Promise<void> {
    checking ??= check()
      .catch((error) => log.debug({ server: name, err: error }, 'could not check whether the session is still valid'))
      .finally(() => {
        checking = undefined
      })
    await checking
    if (over) throw over
  }

  async function check(): Promise<void> {
    using limit = deadline(clock, checkMs, tooSlow)
    const { head, text } = await asked(checks, sessionCheck, headers.post, limit.signal)
    if (head.status >= 300 && forgets(head, text)) endSession()
    else if (mayForget(head, text)) await isLost()
  }

  /** Whether the session is lost, and ends it if so. Probes at most once per `recheckMs`. */
  function isLost(): Promise<boolean> {
    const now = clock.monotonic()
    if (now - probedAt < recheckMs) return lost
    probedAt = now
    lost = probe().catch((error) => {
      log.debug({ server: name, err: error }, 'could not check whether the session was lost')
      return false
    })
    return lost
  }

  /**
   * The session is lost if the server refuses a harmless request in it, but opens a new one. If it does neither, the
   * reason is something else, such as a rejected credential, and a new session would not help.
   */
  async function probe(): Promise<boolean> {
    if (session === undefined || stateless || !hello) return false
    using limit = deadline(clock, checkMs, tooSlow)
    const { head, text } = await asked(checks, sessionProbe, headers.post, limit.signal)
    if (!forgets(head, text) && !mayForget(head, text)) return false
    const discard: ReceiveBody = (head) => discardBody(head, clock)
    const opened = (await asked(checks, hello.body, headers.hello, limit.signal, discard)).head
    const id = opened.header('mcp-session-id')
    if (opened.status !== 200 || !isHeaderValue(id) || id === session) return false
    const ending = { ...headers.get, 'mcp-session-id': id }
    checks.request({ method: 'DELETE', path, headers: ending }, discard).catch(() => {})
    log.info({ server: name, status: head.status }, 'the server has lost the session; the next request opens a new one')
    endSession()
    return true
  }

  /** Whether a server that was stateless rejects even the handshake now, because another version has replaced it. */
  async function hasChangedProtocol(): Promise<boolean> {
    checking ??= greetAgain()
      .catch((error) => log.debug({ server: name, err: error }, 'could not check which protocol the server speaks'))
      .finally(() => {
        checking = undefined
      })
    await checking
    return over !== undefined
  }

  async function greetAgain(): Promise<void> {
    if (!hello) return
    using limit = deadline(clock, checkMs, tooSlow)
    const all = { ...headers.post, ...hello.headers }
    const { head } = await asked(channel, hello.body, all, limit.signal, (head) => discardBody(head, clock))
    if (mayBeOtherProtocol(head)) endConnection(protocolChanged(state()))
  }

  function answer(head: ResponseHead, { exchange, signal, repeatable }: OutgoingMessage): ResponseBodyReader {
    const id = head.header('mcp-session-id')
    if (version === undefined && session === undefined && isHeaderValue(id)) {
      session = id
      remember()
    }
    if (version === undefined) isUnusable = id !== undefined && !isHeaderValue(id)
    if (exchange !== undefined && version !== undefined) fresh = false
    if (exchange === undefined || !isReadable(head, stateless) || head.status === 202) {
      settled(exchange)
      return discardBody(head, clock)
    }
    const done = (failure?: string, cause?: unknown): void => {
      settled(exchange)
      if (failure !== undefined && !signal?.aborted) receiver?.failed(exchange, connectionLost(state(), failure, cause))
    }
    const deliver = (bytes: Buffer): void => {
      const suspicious = session !== undefined && version !== undefined && mayForget(head, bytes)
      if (!suspicious) receiver?.message(bytes, exchange)
      else
        void isLost().then((found) => {
          if (found) receiver?.failed(exchange, rejectedSession(name, head.status, false, repeatable))
          else receiver?.message(bytes, exchange)
        })
    }
    if (isStream(head)) {
      return readResponseStream(head, {
        clock,
        signal: () => (signal ? AbortSignal.any([signal, disposal.signal]) : disposal.signal),
        deliver,
        flooded: () => options.exceeded?.(new LimitExceeded('flood', maxPerSecond)),
        reading,
        // The stateless protocol has no GET.
        reopen: stateless ? undefined : (lastEventId, receive) => get(lastEventId, receive, signal),
        done,
      })
    }
    return readWholeBody(head, {
      maxLength: maxMessage,
      done(bytes) {
        if (!isResponse(bytes)) return done('responded with something that is not a JSON-RPC message')
        deliver(bytes)
        done()
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

  /** Passes the server's JSON-RPC error to the caller unchanged, whatever the HTTP status. */
  function passOn(text: Buffer | undefined, asked: Buffer, exchange: number | undefined): boolean {
    if (exchange === undefined || text === undefined) return false
    const error = readMessage(text)
    const request = readMessage(asked)
    if (error.kind !== 'error' || request.kind !== 'request' || String(error.id) !== String(request.id)) return false
    settled(exchange)
    receiver?.message(text, exchange)
    return true
  }

  function get(lastEventId: string | undefined, receive: ReceiveBody, signal?: AbortSignal) {
    const all = isHeaderValue(lastEventId) ? { ...headers.get, 'last-event-id': lastEventId } : headers.get
    return channel.request({ method: 'GET', path, headers: all, signal }, receive)
  }

  function endSession(): void {
    endConnection(sessionEnded(state()))
  }

  /** Ends a connection whose server is gone or has forgotten the session. Pending requests may still be answered. */
  function endConnection(error: ToolwayError): void {
    if (over) return
    over = error
    session = undefined
    listening.abort()
    if (underWay.size === 0) idle.resolve()
    void settles(idle.promise, goodbyeMs, clock).then(() => {
      for (const exchange of underWay) receiver?.failed(exchange, connectionLost(state(), 'closed the session'))
      // Report the end later, so that callers whose request was just rejected learn of the rejection first.
      setImmediate(() => receiver?.closed(error))
    })
  }

  function settled(exchange: number | undefined): void {
    if (exchange !== undefined) underWay.delete(exchange)
    if (over && underWay.size === 0) idle.resolve()
  }

  async function dispose(): Promise<void> {
    over = closedByUs(name)
    receiver = undefined
    listening.abort()
    disposal.abort()
    if (session !== undefined) {
      const request = { method: 'DELETE', path, headers: headers.get } as const
      const ended = channel.request(request, (head) => discardBody(head, clock))
      await settles(ended, goodbyeMs, clock)
    }
    await settles(channel[Symbol.asyncDispose](), goodbyeMs, clock)
  }

  /** Prepares the headers once, so that they need not be built for each request. */
  function remember(): void {
    const all = {
      ...configured,
      ...(session !== undefined && { 'mcp-session-id': session }),
      ...(isHeaderValue(version) && { 'mcp-protocol-version': version }),
    }
    const posted = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
    headers = {
      hello: { ...configured, ...posted },
      post: { ...all, ...posted },
      get: { ...all, accept: 'text/event-stream' },
    }
  }

  function state() {
    return { name, origin: url.origin, established: version !== undefined }
  }

  function tooSlow(): ToolwayError {
    return connectionLost(state(), `did not accept a notification within ${promptlyMs / 1000} s (a fixed limit)`)
  }
}

/**
 * Sends a message with POST, and reads the body of a rejection. Other bodies go to the reader from `receive`; without it
 * they are read too, if they are short.
 */
export async function postAndRead(
  channel: HttpChannel,
  request: Omit<ChannelRequest, 'method'>,
  clock: Clock,
  receive?: ReceiveBody,
) {
  let read: Promise<Buffer | undefined> | undefined
  const head = await channel.request({ method: 'POST', ...request }, (head) => {
    if (head.status < 300 && receive) return receive(head)
    const { promise, resolve } = Promise.withResolvers<Buffer | undefined>()
    read = promise
    return readShort(head, resolve)
  })
  if (!read || (head.status < 300 && receive)) return { head, text: undefined }
  const prompt = await settles(read, promptlyMs, clock)
  if (!prompt) head.abort()
  return { head, text: prompt ? await read : undefined }
}

/** Reads a short body, or the response in a stream; undefined if it is too long or incomplete. */
function readShort(head: ResponseHead, done: (text: Buffer | undefined) => void): ResponseBodyReader {
  const nothing = () => done(undefined)
  if (!isStream(head)) return readWholeBody(head, { maxLength: maxRefusal, done, lost: nothing, tooLong: nothing })
  const reader = new EventReader({
    maxLength: maxRefusal,
    event({ data }) {
      if (!isResponse(data)) return
      done(data)
      head.abort()
    },
    tooLong() {
      nothing()
      head.abort()
    },
  })
  return { data: reader.push, end: nothing, lost: nothing }
}

/** Whether a response contains messages, or announces them for later, which the stateless protocol does not allow. */
const isReadable = (head: ResponseHead, stateless: boolean): boolean =>
  (head.status === 202 && !stateless) ||
  (head.status === 200 &&
    (head.type === 'application/json' || head.type === 'text/event-stream') &&
    unknownEncoding(head) === undefined)

function what(head: ResponseHead): string {
  if (head.status !== 200) return `HTTP ${head.status}`
  const encoding = unknownEncoding(head)
  return encoding === undefined
    ? head.type || 'no media type'
    : `the unknown encoding ${JSON.stringify(encoding.slice(0, 100))}`
}
