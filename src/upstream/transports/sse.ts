import { deadline, settles } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { maxMessage } from '../../wire/message.ts'
import { EventReader } from '../../wire/sse.ts'
import { authorizedChannel } from '../oauth/authorization.ts'
import { type HttpTransportOptions, postAndRead } from './http.ts'
import { configuredHeaders, discardBody, type ResponseBodyReader, type ResponseHead } from './http-channel.ts'
import { forgets } from './http-rejections.ts'
import { isStream } from './http-streams.ts'
import { createHttpChannel } from './http1/channel.ts'
import { createReadLimit, maxPerSecond } from './read-limit.ts'
import { followRedirects } from './redirects.ts'
import type { OutgoingMessage, Transport, TransportReceiver } from './transport.ts'
import {
  closedByUs,
  connectionLost,
  LimitExceeded,
  noResponse,
  rejectedRequest,
  rejectedSession,
  sessionEnded,
  unsentError,
} from './transport-errors.ts'

/** How long a POST may take. POSTs return quickly, because the actual response arrives on the stream. */
const promptlyMs = 10_000
const goodbyeMs = 1_000
/** Maximum length of the endpoint that a server announces: it is sent with every message. */
const maxEndpoint = 8 * 1024

/** The older HTTP+SSE transport: one stream for all messages from the server, which announces an endpoint for POST. */
export function sseTransport(options: HttpTransportOptions): Transport {
  const { name, clock } = options
  const url = new URL(options.url)
  const configured = configuredHeaders(url, options.headers)
  const plain = followRedirects(createHttpChannel(url.origin, clock), {
    origin: url.origin,
    isRepeatable: ({ method }) => method === 'GET',
    clock,
  })
  const channel = options.authorize ? authorizedChannel(plain, options.authorize) : plain
  const stream = new AbortController()
  const endpoint = Promise.withResolvers<string>()
  // Avoid an unhandled rejection, because this promise may reject while nothing is awaiting it.
  endpoint.promise.catch(() => {})
  let path: string | undefined
  let receiver: TransportReceiver | undefined
  let established = false
  /** Whether the server has not accepted any request since the handshake. */
  let fresh = true
  let ending: Disposable | undefined
  let disposing: Promise<void> | undefined
  /** Why nothing can be sent any more; undefined while messages can be sent. */
  let over: ToolwayError | undefined

  return {
    kind: 'sse',
    get usable() {
      return over === undefined
    },
    open,
    send,
    established() {
      established = true
    },
    [Symbol.asyncDispose]() {
      disposing ??= dispose()
      return disposing
    },
  }

  async function open(given: TransportReceiver, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const stop = () => {
      stream.abort(signal.reason)
      endpoint.reject(signal.reason)
    }
    signal.addEventListener('abort', stop, { once: true })
    const request = {
      method: 'GET',
      path: url.pathname + url.search,
      headers: { ...configured, accept: 'text/event-stream' },
      signal: stream.signal,
    } as const
    try {
      receiver = given
      const head = await channel.request(request, (head) => (isStream(head) ? read(head) : discardBody(head, clock)))
      if (head.status !== 200) throw rejectedRequest(state(), head)
      if (!isStream(head))
        throw connectionLost(state(), `responded with ${head.type || 'no media type'} instead of events`)
      path = await endpoint.promise
    } catch (thrown) {
      receiver = undefined
      stream.abort()
      throw noResponse(state(), thrown)
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  function read(head: ResponseHead): ResponseBodyReader {
    const flooded = () => options.exceeded?.(new LimitExceeded('flood', maxPerSecond))
    const limit = createReadLimit(head, clock, flooded, options.reading)
    const reader = new EventReader({
      maxLength: maxMessage,
      event({ event, data }) {
        if (event === 'endpoint') named(data.toString('utf8'))
        else if (event !== 'message' || data.length === 0 || !receiver?.message(data)) limit.message(data)
      },
      other: limit.line,
      tooLong() {
        // Close the connection, because we cannot know which request this event was the response to.
        const cause = new LimitExceeded('large-message', maxMessage)
        down(`sent an event longer than ${maxMessage / 1024 / 1024} MiB`, cause)
        head.abort()
      },
    })
    return {
      data: reader.push,
      end() {
        limit.end()
        down('closed the event stream')
      },
      lost(error) {
        limit.end()
        down('closed the event stream unexpectedly', error)
      },
    }
  }

  /** Handles the announced endpoint, which must have the configured origin, because the credential is sent to it. */
  function named(address: string): void {
    const isShort = address.length <= maxEndpoint
    const target = isShort && URL.canParse(address, url.href) ? new URL(address, url.href) : undefined
    const why = isShort ? 'that is not a URL' : `of more than ${maxEndpoint / 1024} KiB (a fixed limit)`
    const where = target ? `at another origin, ${target.origin}` : why
    const sentence = `${name} sent an endpoint ${where}. Check mcpServers.${name}.url.`
    if (target?.origin === url.origin) endpoint.resolve(target.pathname + target.search)
    else endpoint.reject(new ToolwayError('SERVER_UNAVAILABLE', sentence, { server: name }))
  }

  async function send({ body, signal, exchange, headers: more }: OutgoingMessage): Promise<void> {
    if (over) throw over
    if (path === undefined) throw unsentError(name, `The connection to ${name} is not open yet.`)
    const slow = `did not accept a message within ${promptlyMs / 1000} s (a fixed limit)`
    using limit = deadline(clock, promptlyMs, () => connectionLost(state(), slow), signal)
    const headers = { ...configured, ...more, 'content-type': 'application/json' }
    const request = { path, headers, body, signal: limit.signal }
    try {
      const { head, text } = await postAndRead(channel, request, clock, (head) => discardBody(head, clock))
      const isRequest = established && exchange !== undefined
      if (head.status < 300) {
        if (isRequest) fresh = false
        return
      }
      if (isRequest && forgets(head, text)) {
        // The path names the session, so the server rejects the request before it runs.
        const error = rejectedSession(name, head.status, fresh, true, 'SERVER_UNAVAILABLE')
        endSession()
        throw error
      }
      throw rejectedRequest(state(), head)
    } catch (thrown) {
      throw noResponse(state(), thrown)
    }
  }

  /** Ends a connection whose session the server has forgotten. The stream may still bring pending responses. */
  function endSession(): void {
    if (over) return
    over = sessionEnded(state())
    ending = clock.after(goodbyeMs, () => receiver?.closed(connectionLost(state(), 'ended the session')))
  }

  function down(what: string, cause?: unknown): void {
    if (over) return
    const error = connectionLost(state(), what, cause)
    over = unsentError(name, `${name} ${what}; try again.`)
    endpoint.reject(error)
    setImmediate(() => {
      if (path !== undefined) receiver?.closed(error)
    })
  }

  async function dispose(): Promise<void> {
    over = closedByUs(name)
    ending?.[Symbol.dispose]()
    receiver = undefined
    endpoint.reject(over)
    stream.abort(over)
    await settles(channel[Symbol.asyncDispose](), goodbyeMs, clock)
  }

  function state() {
    return { name, origin: url.origin, established }
  }
}
