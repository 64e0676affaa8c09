import type { Clock } from '../../core/clock.ts'
import { settles } from '../../core/deadline.ts'
import type { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { Json } from '../../json/json.ts'
import { methodNotFound, readMessage } from '../../wire/message.ts'
import { modernErrors } from '../../wire/revisions.ts'
import { EventReader } from '../../wire/sse.ts'
import { authorizedChannel, type RequestAuthorizer } from '../oauth/authorization.ts'
import {
  type ChannelRequest,
  configuredHeaders,
  discardBody,
  type HttpChannel,
  type ReceiveBody,
  type ResponseBodyReader,
  type ResponseHead,
  readWholeBody,
} from './http-channel.ts'
import { isResponseMessage, isStream } from './http-streams.ts'
import { Http1Channel } from './http1/channel.ts'
import type { ReadBudget } from './read-limit.ts'
import type { OutgoingMessage, Transport, TransportReceiver } from './transport.ts'
import type { LimitExceeded, TransportState } from './transport-errors.ts'

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

const maxPathRedirects = 5
/** How long to wait for a rejection's body, or for the response to a notification. Both arrive quickly. */
export const promptlyMs = 10_000
/** How long to wait for pending responses when a session ends, and for the response to the request that ends it. */
export const sessionEndMs = 1_000
const maxRefusal = 64 * 1024

/** What Streamable HTTP and HTTP+SSE have in common: requests to one origin, whose redirects to other paths it follows. */
export abstract class HttpTransportBase implements Transport {
  abstract readonly kind: 'http' | 'sse'
  usable = true
  protected readonly options: HttpTransportOptions
  protected readonly url: URL
  protected readonly path: string
  protected readonly configured: Readonly<Record<string, string>>
  /** Without the credential that `authorize` provides. */
  protected readonly plain: Http1Channel
  protected readonly channel: HttpChannel
  protected receiver: TransportReceiver | undefined
  /** Why nothing can be sent any more; undefined while messages can be sent. */
  protected over: ToolwayError | undefined
  readonly #movedPaths = new Map<string, string>()
  #disposing: Promise<void> | undefined

  constructor(options: HttpTransportOptions) {
    this.options = options
    this.url = new URL(options.url)
    this.path = this.url.pathname + this.url.search
    this.configured = configuredHeaders(this.url, options.headers)
    this.plain = new Http1Channel(this.url.origin, options.clock)
    this.channel = options.authorize ? authorizedChannel(this.plain, options.authorize) : this.plain
  }

  abstract open(receiver: TransportReceiver, signal: AbortSignal): Promise<void>
  abstract send(message: OutgoingMessage): Promise<void>
  abstract established(protocolVersion: string, era?: 'legacy' | 'modern'): void
  protected abstract dispose(): Promise<void>
  protected abstract state(): TransportState

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposing ??= this.dispose()
    return this.#disposing
  }

  protected end(error: ToolwayError): void {
    this.usable = false
    this.over = error
  }

  /** Sends a request to its path, or to where an earlier redirect said that the path has moved. */
  protected request(
    request: ChannelRequest,
    receive: ReceiveBody,
    channel: HttpChannel = this.channel,
  ): Promise<ResponseHead> {
    const path = this.#movedPaths.get(request.path)
    return channel.request(path === undefined ? request : { ...request, path }, receive)
  }

  /**
   * Follows redirects to other paths of the same origin, such as from `/mcp` to `/mcp/`: many servers have them. Only 307
   * and 308, which keep the method. Not for a call: a server may have run it although it redirects.
   */
  protected async follow(request: ChannelRequest, receive: ReceiveBody): Promise<ResponseHead> {
    for (let followed = 0; ; followed++) {
      const from = this.url.origin + (this.#movedPaths.get(request.path) ?? request.path)
      let target: string | undefined
      const head = await this.request(request, (head) => {
        if (followed < maxPathRedirects) target = redirectPath(head, from)
        return target === undefined ? receive(head) : discardBody(head, this.options.clock)
      })
      if (target === undefined) return head
      this.#movedPaths.set(request.path, target)
    }
  }

  /**
   * Sends a message with POST, and reads the body of a rejection. Other bodies go to the reader from `receive`; without
   * it they are read too, if they are short.
   */
  protected async post(
    request: Omit<ChannelRequest, 'method'>,
    receive: ReceiveBody | undefined,
    { channel = this.channel, follows = false } = {},
  ): Promise<{ readonly head: ResponseHead; readonly text: Buffer | undefined }> {
    let body: PromiseWithResolvers<Buffer | undefined> | undefined
    const receiveOrRead = (head: ResponseHead) => {
      if (head.status < 300 && receive) return receive(head)
      body = Promise.withResolvers<Buffer | undefined>()
      return readShort(head, body.resolve)
    }
    const sent = { method: 'POST', ...request } as const
    const head = await (follows ? this.follow(sent, receiveOrRead) : this.request(sent, receiveOrRead, channel))
    if (!body || (head.status < 300 && receive)) return { head, text: undefined }
    const isPrompt = await settles(body.promise, promptlyMs, this.options.clock)
    if (!isPrompt) head.abort()
    return { head, text: isPrompt ? await body.promise : undefined }
  }
}

/** The path that a response redirects to; undefined if it does not, or to another origin. */
function redirectPath(head: ResponseHead, from: string): string | undefined {
  if (head.status !== 307 && head.status !== 308) return undefined
  const location = head.header('location') ?? ''
  if (!URL.canParse(location, from)) return undefined
  const { origin, pathname, search } = new URL(location, from)
  return origin === new URL(from).origin ? pathname + search : undefined
}

/** Reads a short body, or the response in a stream; undefined if it is too long or incomplete. */
function readShort(head: ResponseHead, done: (text: Buffer | undefined) => void): ResponseBodyReader {
  const nothing = () => done(undefined)
  if (!isStream(head)) return readWholeBody(head, { maxLength: maxRefusal, done, lost: nothing, tooLong: nothing })
  const reader = new EventReader({
    maxLength: maxRefusal,
    event({ data }) {
      if (!isResponseMessage(data)) return
      done(data)
      head.abort()
    },
    tooLong() {
      nothing()
      head.abort()
    },
  })
  return { data: (chunk) => reader.push(chunk), end: nothing, lost: nothing }
}

/**
 * Whether a rejection means that the server does not know the session. Many servers respond with 400 although the
 * protocol requires 404, and some respond with 404 to an unknown method.
 */
export function forgetsSession({ status }: ResponseHead, text: Buffer = Buffer.alloc(0)): boolean {
  const message = readMessage(text)
  if (message.kind === 'error' && message.id !== null) {
    return status === 404 && Json.raw<{ code: number }>(message.error).value.code !== methodNotFound
  }
  return status === 404 || (status === 400 && aboutSession.test(text.toString('latin1')))
}

const aboutSession = /session|not initialized/i

/**
 * Whether a response may mean that the server has lost the session, although the protocol does not say so: any rejection
 * but those for too many requests or with a challenge for the credential, or a JSON-RPC error about the session.
 */
export function mayForgetSession(head: ResponseHead, text: Buffer = Buffer.alloc(0)): boolean {
  const { status } = head
  if (status === 429 || status === 503) return false
  if (status >= 400 && head.header('www-authenticate') !== undefined && !aboutSession.test(text.toString('latin1')))
    return false
  const mayBeError = text.length <= maxRefusal && text.includes('"error"')
  if (status < 400 && !(mayBeError && aboutSession.test(text.toString('latin1')))) return false
  const message = readMessage(text)
  if (message.kind !== 'error') return status >= 400
  const { code } = Json.raw<{ code: number }>(message.error).value
  return code !== methodNotFound && (status >= 400 || aboutSession.test(message.error.toString('latin1')))
}

/** Whether a rejection says that the server does not support the protocol revision of the request. */
export function refusesVersion(text: Buffer | undefined): boolean {
  const error = text && readMessage(text)
  return (
    error?.kind === 'error' && Json.raw<{ code: number }>(error.error).value.code === modernErrors.unsupportedVersion
  )
}

/** Whether a server of another revision may respond like this. */
export const mayBeOtherProtocol = ({ status }: ResponseHead): boolean => [400, 404, 405].includes(status)
