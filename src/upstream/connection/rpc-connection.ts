import type { Peer } from '../../core/call.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Budget } from '../../core/limits/budget.ts'
import type { Log } from '../../core/log.ts'
import { Json } from '../../json/json.ts'
import { hasMoreValues, integerMember, maxDepth } from '../../json/json-text.ts'
import { InFlight } from '../../lib/in-flight.ts'
import { AmbiguousMember, definedBytes } from '../../wire/check-members.ts'
import { serverNotifications } from '../../wire/defined-members.ts'
import {
  type Id,
  type MalformedMessage,
  maxMessageValues,
  notificationBytes,
  type ResultMessage,
  readMessage,
  requestBytes,
} from '../../wire/message.ts'
import { metaKeys, modernRevision } from '../../wire/revisions.ts'
import { withCommas } from '../listing/list-reader.ts'
import type { CallTurns } from '../requests/call-turns.ts'
import { type ServerRequest, ServerRequests } from '../requests/server-requests.ts'
import { TaskUpdates } from '../requests/tasks.ts'
import type { Transport, TransportReceiver } from '../transports/transport.ts'
import { LimitExceeded, unansweredError, unsentError } from '../transports/transport-errors.ts'

export interface RpcRequest {
  readonly method: string
  readonly name?: string
  /** Builds the params. The id of the request is also its progress token. */
  params(id: number): Buffer | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  readonly repeatable?: boolean | undefined
  /** The route back to the caller, for messages that the server sends during the request. */
  readonly peer?: Peer
  /** Whether only Toolway asked for progress, so that progress is not forwarded to the caller. */
  readonly ownProgress?: boolean
  readonly progressed?: (() => void) | undefined
  /** For a long-lived `subscriptions/listen` request: receives its notifications. */
  readonly onStreamNotification?: ((method: string, params: Buffer | undefined) => void) | undefined
}

export interface RpcConnectionOptions {
  readonly server: string
  readonly owned: boolean
  /** The owner's calls that are using or awaiting the connection, and the route to the owner's session, if any. */
  readonly host?: (() => { readonly calls: readonly Peer[]; readonly session: readonly Peer[] }) | undefined
  /** Provides the roots of an owner without a session; undefined for other owners. */
  readonly roots?: ((through: readonly Peer[]) => Peer | undefined) | undefined
  /** Called when the server asks for roots. The promise resolves when the server has them. */
  readonly onRoots?: ((answered: Promise<void>) => void) | undefined
  /** The tasks whose status is forwarded to their callers. */
  readonly tasks?: Budget | undefined
  /** Called if the server exceeds a limit or sends an unusable response, without a request that fails for it. */
  exceeded?(limit: LimitExceeded): void
  readonly log: Log
}

/** A request that was sent and has no response yet. */
class PendingRpcRequest {
  readonly id: number
  readonly request: RpcRequest
  readonly settled = Promise.withResolvers<ResultMessage>()
  /** The listener for the signal of the request. */
  readonly cancel: () => void

  constructor(id: number, request: RpcRequest, cancel: (pending: PendingRpcRequest) => void) {
    this.id = id
    this.request = request
    this.cancel = () => cancel(this)
    request.signal.addEventListener('abort', this.cancel, { once: true })
  }
}

/** JSON-RPC over one transport: matches responses to requests, and routes other messages to the right request. */
export class RpcConnection implements TransportReceiver, AsyncDisposable {
  readonly transport: Transport
  /** How many messages have been received, and how many requests were cancelled since the last one. */
  received = 0
  cancelledSinceReceived = 0
  readonly taskUpdates: TaskUpdates
  /** Whether only one caller uses this connection, so that every message from the server is for that caller. */
  owned: boolean
  /** Whether the server has received a call, or the owner's roots. From then on, it may keep state for its caller. */
  isUsed = false
  /** Until when tasks that were started on this connection may run, by the monotonic clock. */
  tasksUntil = 0
  /** Attributes messages to the owner's calls; set if the transport does not show which call a message belongs to. */
  turns: CallTurns | undefined
  /** Whether the server sent a request when there was no caller to answer it. */
  hadUnroutableRequest = false
  /** Whether the server sends log messages only for requests that ask for them. */
  logsByRequest = false
  /** Whether to cancel a request by sending a message. Not needed if closing the request's stream cancels it. */
  cancelsByMessage = true
  /** Called for notifications that do not belong to a request, such as list_changed. */
  onNotification: (method: string, params: Buffer | undefined) => void = () => {}
  /** Called when a message for a caller arrived outside the streams of its calls, on a transport that has streams. */
  onOutOfStream: () => void = () => {}
  onClosed: (error: ToolwayError) => void = () => {}
  readonly #options: RpcConnectionOptions
  readonly #pending = new InFlight<number, PendingRpcRequest>()
  /** Cancelled calls that the server has not responded to, with the time of cancellation. */
  readonly #cancelledCalls = new Map<number, number>()
  readonly #questions: ServerRequests
  #lastId = 0
  #isClosed = false

  static async open(transport: Transport, options: RpcConnectionOptions, signal: AbortSignal): Promise<RpcConnection> {
    const connection = new RpcConnection(transport, options)
    await transport.open(connection, signal)
    return connection
  }

  private constructor(transport: Transport, options: RpcConnectionOptions) {
    this.transport = transport
    this.owned = options.owned
    this.taskUpdates = new TaskUpdates(options.tasks)
    this.#options = options
    this.#questions = new ServerRequests(transport, options.log)
  }

  /** Sends a request. Rejects with the server's error or a ToolwayError. */
  request(request: RpcRequest): Promise<ResultMessage> {
    const { turns } = this
    const { method, name, peer, signal } = request
    if (!turns || !peer || this.#isClosed || signal.aborted) return this.#send(request)
    const about = method === 'tools/call' || method === 'prompts/get' ? `${method} ${name}` : method
    return turns.run(about, peer, signal, () => this.#send(request))
  }

  notify(method: string, params?: Buffer): Promise<void> {
    return this.transport.send({ body: notificationBytes(method, params) })
  }

  /** Fails all pending requests. The server may have executed them. */
  abandon({ message, details }: ToolwayError): void {
    const { server } = this.#options
    this.#isClosed = true
    const requestOnly = LimitExceeded.in(details.cause) && (true as const)
    // If there are several requests, it is unknown which of them exceeded a limit: blame none of them.
    const about = this.#pending.size > 1 && requestOnly ? { ...details, requestOnly, cause: undefined } : details
    this.#questions.cancelAll()
    this.turns?.close()
    this.taskUpdates[Symbol.dispose]()
    for (const { id, request } of this.#pending.values())
      this.#settle(id)?.reject(unansweredError(request.method, message, { server, ...about }))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { server } = this.#options
    this.abandon(new ToolwayError('SERVER_UNAVAILABLE', `The connection to ${server} was closed.`, { server }))
    await this.transport[Symbol.asyncDispose]()
  }

  // What the transport reports.
  failed(id: number, error: Error): void {
    const method = this.#pending.get(id)?.request.method ?? ''
    const isUnknown = error instanceof ToolwayError && error.code === 'OUTCOME_UNKNOWN'
    this.#settle(id)?.reject(isUnknown ? unansweredError(method, error.message, error.details) : error)
  }

  closed(error: ToolwayError): void {
    this.abandon(error)
    this.onClosed(error)
  }

  message(body: Buffer, exchange?: number): boolean {
    const message = readMessage(body)
    this.received++
    this.cancelledSinceReceived = 0
    switch (message.kind) {
      case 'response': {
        const waiting = this.#takeRequest(message.id, exchange)
        waiting?.settled.resolve(message)
        return waiting !== undefined
      }
      case 'error': {
        const waiting = this.#takeRequest(message.id ?? exchange ?? null, exchange)
        const isLarge = hasMoreValues(message.error, maxMessageValues)
        const { method = '' } = waiting?.request ?? {}
        waiting?.settled.reject(isLarge ? this.#largeError(method) : new ServerError(Json.raw(message.error)))
        return waiting !== undefined
      }
      case 'notification':
        if (this.#isWithinLimit(message.params)) this.#receiveNotification(message.method, message.params, exchange)
        break
      case 'request':
        if (this.#isWithinLimit(message.params)) this.#receiveRequest(message, exchange)
        else void this.#questions.refuse(message.id, 'The request has too many values.')
        break
      case 'invalid':
        this.#receiveInvalid(message, body, exchange)
    }
    return false
  }

  #send(request: RpcRequest): Promise<ResultMessage> {
    const { method, headers, signal, repeatable } = request
    const { server } = this.#options
    // This request was certainly not sent, whatever happened to requests that were pending when the connection closed.
    if (this.#isClosed) return Promise.reject(unsentError(server, `The connection to ${server} is closed; try again.`))
    if (signal.aborted) return Promise.reject(signal.reason)
    const exchange = ++this.#lastId
    const body = requestBytes(exchange, method, request.params(exchange))
    const pending = new PendingRpcRequest(exchange, request, this.#cancel)
    this.#pending.set(exchange, pending)
    this.transport.send({ body, headers, exchange, signal, repeatable }).catch((error) => this.failed(exchange, error))
    return pending.settled.promise
  }

  readonly #cancel = ({ id, request, settled }: PendingRpcRequest): void => {
    if (!this.#pending.take(id)) return
    if (request.peer) {
      this.#cancelledCalls.set(id, performance.now())
      const [oldest] = this.#cancelledCalls.keys()
      if (oldest !== undefined && this.#cancelledCalls.size > maxCancelled) this.#cancelledCalls.delete(oldest)
      this.cancelledSinceReceived++
    }
    const params = Json.of({ requestId: id, reason: 'request cancelled' })
    if (this.cancelsByMessage) this.notify('notifications/cancelled', params.bytes).catch(() => {})
    settled.reject(request.signal.reason)
  }

  #settle(id: number): PromiseWithResolvers<ResultMessage> | undefined {
    const pending = this.#pending.take(id)
    pending?.request.signal.removeEventListener('abort', pending.cancel)
    return pending?.settled
  }

  /** The request that a response is for, which is no longer pending then. */
  #takeRequest(responseId: Id | null, exchange: number | undefined): PendingRpcRequest | undefined {
    const { server, log } = this.#options
    // Some servers return numbers as strings.
    const isDigits = typeof responseId === 'string' && /^[1-9][0-9]{0,14}$/.test(responseId)
    const id = isDigits ? Number(responseId) : responseId
    // A caller must never get another caller's result, even if the server mixes up its responses.
    if (exchange !== undefined && id !== exchange) {
      this.#failInvalid(exchange, 'a response to another request')
      return undefined
    }
    const pending = typeof id === 'number' ? this.#pending.get(id) : undefined
    if (typeof id === 'number') {
      this.#cancelledCalls.delete(id)
      this.#settle(id)
    }
    if (pending) return pending
    log.debug({ server, id }, 'ignored a response without a pending request')
    // The response to a request that was cancelled may come late.
    if (!(typeof id === 'number' && id > 0 && id <= this.#lastId)) this.#reportUnusable()
    return undefined
  }

  /** Whether a message without a request of ours has few enough values to be parsed. Reports it if not. */
  #isWithinLimit(params: Buffer | undefined): boolean {
    if (params === undefined || !hasMoreValues(params, maxMessageValues)) return true
    this.#options.exceeded?.(tooManyValuesLimit())
    return false
  }

  #largeError(method: string): ToolwayError {
    const { server } = this.#options
    const sentence = `${server} responded with an error of more than ${withCommas(maxMessageValues)} values (a fixed limit).`
    return unansweredError(method, sentence, { server, cause: tooManyValuesLimit() })
  }

  #receiveInvalid(message: MalformedMessage, body: Buffer, exchange: number | undefined): void {
    const { server, log } = this.#options
    log.debug({ server, reason: message.reason }, 'ignored an invalid JSON-RPC message')
    // If the request has its own stream, its response can still follow a malformed message.
    if (exchange !== undefined && body.includes('"method"')) return
    const cause = message.tooDeep && new LimitExceeded('deep-nesting', maxDepth)
    const id = exchange ?? message.id ?? (cause && integerMember(body, 'id')) ?? 0
    const isKnown = this.#failInvalid(Number(id), message.reason, cause)
    // Some servers write their log to stdout as JSON.
    if (!isKnown && body.includes('"jsonrpc"')) this.#reportUnusable()
  }

  /** Fails a request whose response is invalid. Returns whether there is such a request. */
  #failInvalid(id: number, reason: string, cause?: LimitExceeded): boolean {
    const { server } = this.#options
    const pending = this.#pending.get(id)
    const sentence = `${server} sent an invalid JSON-RPC message: ${reason}.`
    if (pending) this.#settle(id)?.reject(unansweredError(pending.request.method, sentence, { server, cause }))
    return pending !== undefined
  }

  #reportUnusable(): void {
    this.#options.exceeded?.(new LimitExceeded('unusable-response', 0))
  }

  #receiveNotification(method: string, received: Buffer | undefined, exchange: number | undefined): void {
    const { server, log } = this.#options
    const params = definedNotification(method, received)
    if (params === undefined) log.debug({ server, method: method.slice(0, 100) }, 'ignored an unknown notification')
    else if (method === 'notifications/progress') {
      const progress = Json.raw<Record<string, unknown>>(params)
      const token = progress.value.progressToken
      const request = typeof token === 'number' ? this.#pending.get(token)?.request : undefined
      request?.progressed?.()
      if (!request?.ownProgress) request?.peer?.notify(method, progress)
    } else if (method === 'notifications/cancelled') this.#questions.cancelled(params)
    else if (method === 'notifications/tasks/status') this.taskUpdates.publish(params)
    else if (method === 'notifications/message' || method === 'notifications/elicitation/complete') {
      this.#addressees(method, exchange)[0]?.notify(method, Json.raw(params))
    } else {
      const listener = this.#pending.get(exchange ?? subscriptionOf(params) ?? 0)?.request.onStreamNotification
      const peer = exchange === undefined ? undefined : this.#pending.get(exchange)?.request.peer
      if (listener) listener(method, params)
      else if (peer && !isForEverybody(method)) peer.notify(method, Json.raw(params))
      else this.onNotification(method, params)
    }
  }

  #receiveRequest(question: ServerRequest, exchange: number | undefined): void {
    const { method } = question
    const first = method === 'ping' ? [] : this.#addressees(method, exchange)
    if (first.length === 0 && method !== 'ping') this.hadUnroutableRequest = true
    if (method === 'roots/list' && exchange === undefined && first.length > 0) {
      const owner = this.#options.roots?.(first)
      const answered = this.#questions.answer(question, () => (owner ? [owner] : this.#addressees(method, exchange)))
      this.#options.onRoots?.(answered)
      return
    }
    const { turns } = this
    const speaker = exchange === undefined ? turns?.speaker() : undefined
    // Any of several calls may have caused the request. A single call is asked itself, and pauses its own timeout.
    const calls = exchange === undefined && !speaker && this.owned ? this.#pendingPeers() : []
    const suspects = calls.length > 1 ? calls : []
    const routes = () => {
      if (!speaker) return this.#addressees(method, exchange)
      // Since we know which call triggered this request, the request ends when that call does.
      return turns?.runs(speaker) ? [speaker, ...this.#host().session] : []
    }
    void this.#questions.answer(question, routes, suspects)
  }

  /**
   * The routes to the caller that a message is for, best first: the call on whose stream the message arrived, or any
   * call by the connection's owner. On a shared connection, a message is delivered only if exactly one call can have
   * caused it, so that it never reaches another caller.
   */
  #addressees(method: string, exchange: number | undefined): readonly Peer[] {
    if (exchange !== undefined) {
      const peer = this.#pending.get(exchange)?.request.peer
      return peer ? [peer] : []
    }
    const logs = method === 'notifications/message'
    const peers = this.#pendingPeers()
    if (this.transport.kind === 'http' && peers.length > 0) this.onOutOfStream()
    if (this.owned) {
      const { turns } = this
      const callers = turns && (turns.strict || !logs) ? turns.speakers() : peers.reverse()
      // Stateless callers (`rounds`) ask for logs with each call; a session that set no level receives all of them.
      const { calls, session } = this.#host()
      if (logs) return [...callers, ...session].filter(({ rounds, logLevel }) => !rounds || logLevel !== undefined)
      if (callers.length === 0) return [...calls, ...session]
      // Prefer the session if there are several calls: a request sent through it outlives any single call.
      return callers.length === 1 ? [...callers, ...session] : [...session, ...callers]
    }
    // Servers that get the level with each request log only for calls that asked; other servers may log for any call.
    const wanting = logs && this.logsByRequest ? peers.filter(({ logLevel }) => logLevel !== undefined) : peers
    // Deliver nothing if a cancelled call may still be running on the server, because it may send messages too.
    return wanting.length === 1 && !this.#someCancelledCallsRun() ? wanting : []
  }

  #host() {
    return this.#options.host?.() ?? { calls: [], session: [] }
  }

  #pendingPeers(): Peer[] {
    return [...this.#pending.values()].flatMap(({ request }) => request.peer ?? [])
  }

  #someCancelledCallsRun(): boolean {
    const oldest = performance.now() - goesOnMs
    for (const [id, since] of this.#cancelledCalls) if (since < oldest) this.#cancelledCalls.delete(id)
    return this.#cancelledCalls.size > 0
  }
}

/** A notification's params, reduced to the defined members; undefined if the notification must be ignored (V1). */
function definedNotification(method: string, params: Buffer = emptyParams): Buffer | undefined {
  const level = Object.hasOwn(serverNotifications, method) ? serverNotifications[method] : undefined
  if (level === undefined) return undefined
  try {
    return definedBytes(params, level, { revision: modernRevision }, [])
  } catch (thrown) {
    if (thrown instanceof AmbiguousMember) return undefined
    throw thrown
  }
}

const emptyParams = Buffer.from('{}')

const tooManyValuesLimit = (): LimitExceeded => new LimitExceeded('too-many-values', maxMessageValues)

/** How many of the cancelled calls that the server has not responded to are remembered. */
const maxCancelled = 1_000

/** How long a cancelled call is assumed to keep running on the server. */
const goesOnMs = 300_000

/** Whether a notification is about the server itself and so concerns all callers, on whichever stream it arrives. */
const isForEverybody = (method: string): boolean =>
  method.endsWith('/list_changed') || method === 'notifications/resources/updated'

/** The `subscriptions/listen` request that a notification belongs to, for transports without separate streams. */
function subscriptionOf(params: Buffer | undefined): number | undefined {
  if (!params?.includes(metaKeys.subscriptionId)) return undefined
  const id = Json.raw<{ _meta?: Record<string, unknown> }>(params).value._meta?.[metaKeys.subscriptionId]
  return typeof id === 'number' ? id : undefined
}
