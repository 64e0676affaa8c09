import { deadline, settles } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { maxMessage } from '../../wire/message.ts'
import { forgetsSession, HttpTransportBase, promptlyMs, sessionEndMs } from './http-base.ts'
import { discardBody, type ResponseBodyReader, type ResponseHead } from './http-channel.ts'
import { isStream, readEvents } from './http-streams.ts'
import type { OutgoingMessage, TransportReceiver } from './transport.ts'
import {
  closedByUs,
  connectionLost,
  noResponseError,
  rejectedRequest,
  rejectedSession,
  sessionEnded,
  type TransportState,
  unsentError,
} from './transport-errors.ts'

/** Maximum length of the endpoint that a server announces: it is sent with every message. */
const maxEndpoint = 8 * 1024

/** The older HTTP+SSE transport: one stream for all messages from the server, which announces an endpoint for POST. */
export class SseTransport extends HttpTransportBase {
  readonly kind = 'sse'
  readonly #stream = new AbortController()
  readonly #announced = Promise.withResolvers<string>()
  /** The path for POST. */
  #endpoint: string | undefined
  #isEstablished = false
  /** Whether the server has not accepted any request since the handshake. */
  #isFresh = true
  #ending: Disposable | undefined

  async open(receiver: TransportReceiver, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const stop = () => {
      this.#stream.abort(signal.reason)
      this.#announced.reject(signal.reason)
    }
    // Avoid an unhandled rejection, because this promise may reject while nothing is awaiting it.
    this.#announced.promise.catch(() => {})
    signal.addEventListener('abort', stop, { once: true })
    const headers = { ...this.configured, accept: 'text/event-stream' }
    const request = { method: 'GET', path: this.path, headers, signal: this.#stream.signal } as const
    try {
      this.receiver = receiver
      const head = await this.follow(request, (head) =>
        isStream(head) ? this.#read(head) : discardBody(head, this.options.clock),
      )
      if (head.status !== 200) throw rejectedRequest(this.state(), head)
      if (!isStream(head))
        throw connectionLost(this.state(), `responded with ${head.type || 'no media type'} instead of events`)
      this.#endpoint = await this.#announced.promise
    } catch (thrown) {
      this.receiver = undefined
      this.#stream.abort()
      throw noResponseError(this.state(), thrown)
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  established(): void {
    this.#isEstablished = true
  }

  async send({ body, signal, exchange, headers: more }: OutgoingMessage): Promise<void> {
    const { name, clock } = this.options
    if (this.over) throw this.over
    if (this.#endpoint === undefined) throw unsentError(name, `The connection to ${name} is not open yet.`)
    // POSTs return quickly, because the actual response arrives on the stream.
    const slow = `did not accept a message within ${promptlyMs / 1000} s (a fixed limit)`
    using limit = deadline(clock, promptlyMs, () => connectionLost(this.state(), slow), signal)
    const headers = { ...this.configured, ...more, 'content-type': 'application/json' }
    const request = { path: this.#endpoint, headers, body, signal: limit.signal }
    try {
      const { head, text } = await this.post(request, (head) => discardBody(head, clock))
      const isRequest = this.#isEstablished && exchange !== undefined
      if (head.status < 300) {
        if (isRequest) this.#isFresh = false
        return
      }
      if (isRequest && forgetsSession(head, text)) {
        // The path names the session, so the server rejects the request before it runs.
        const error = rejectedSession(name, head.status, this.#isFresh, true, 'SERVER_UNAVAILABLE')
        this.#endSession()
        throw error
      }
      throw rejectedRequest(this.state(), head)
    } catch (thrown) {
      throw noResponseError(this.state(), thrown)
    }
  }

  #read(head: ResponseHead): ResponseBodyReader {
    return readEvents(head, this.options, {
      event: ({ event, data }, limit) => {
        if (event === 'endpoint') this.#onEndpoint(data.toString('utf8'))
        else if (event !== 'message' || data.length === 0 || !this.receiver?.message(data)) limit.message(data)
      },
      tooLong: (cause) => {
        // Close the connection, because we cannot know which request this event was the response to.
        this.#onDown(`sent an event longer than ${maxMessage / 1024 / 1024} MiB`, cause)
        head.abort()
      },
      ended: (error) => this.#onDown(`closed the event stream${error ? ' unexpectedly' : ''}`, error),
    })
  }

  /** Handles the announced endpoint, which must have the configured origin, because the credential is sent to it. */
  #onEndpoint(address: string): void {
    const { name: server } = this.options
    const { href, origin } = this.url
    const isShort = address.length <= maxEndpoint
    const target = isShort && URL.canParse(address, href) ? new URL(address, href) : undefined
    const why = isShort ? 'that is not a URL' : `of more than ${maxEndpoint / 1024} KiB (a fixed limit)`
    const where = target ? `at another origin, ${target.origin}` : why
    const sentence = `${server} sent an endpoint ${where}. Check mcpServers.${server}.url.`
    if (target?.origin === origin) this.#announced.resolve(target.pathname + target.search)
    else this.#announced.reject(new ToolwayError('SERVER_UNAVAILABLE', sentence, { server }))
  }

  /** Ends a connection whose session the server has forgotten. The stream may still bring pending responses. */
  #endSession(): void {
    if (this.over) return
    this.end(sessionEnded(this.state()))
    this.#ending = this.options.clock.after(sessionEndMs, () =>
      this.receiver?.closed(connectionLost(this.state(), 'ended the session')),
    )
  }

  #onDown(what: string, cause?: unknown): void {
    if (this.over) return
    const { name } = this.options
    const error = connectionLost(this.state(), what, cause)
    this.end(unsentError(name, `${name} ${what}; try again.`))
    this.#announced.reject(error)
    setImmediate(() => {
      if (this.#endpoint !== undefined) this.receiver?.closed(error)
    })
  }

  protected async dispose(): Promise<void> {
    const { name, clock } = this.options
    const error = closedByUs(name)
    this.end(error)
    this.#ending?.[Symbol.dispose]()
    this.receiver = undefined
    this.#announced.promise.catch(() => {})
    this.#announced.reject(error)
    this.#stream.abort(error)
    await settles(this.plain[Symbol.asyncDispose](), sessionEndMs, clock)
  }

  protected state(): TransportState {
    return { name: this.options.name, origin: this.url.origin, established: this.#isEstablished }
  }
}
