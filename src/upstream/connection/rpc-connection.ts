import type { Peer } from '../../core/call.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Budget } from '../../core/limits/budget.ts'
import type { Log } from '../../core/log.ts'
import { Json } from '../../json/json.ts'
import { hasMoreValues, integerMember, maxDepth } from '../../json/json-text.ts'
import { AmbiguousMember, definedBytes } from '../../wire/check-members.ts'
import { serverNotifications } from '../../wire/defined-members.ts'
import {
  type Id,
  maxMessageValues,
  notificationBytes,
  type ResultMessage,
  readMessage,
  requestBytes,
} from '../../wire/message.ts'
import { metaKeys, modernRevision } from '../../wire/revisions.ts'
import { written } from '../listing/list-reader.ts'
import type { CallTurns } from '../requests/call-turns.ts'
import { createServerRequests, type ServerRequest } from '../requests/server-requests.ts'
import { createTaskUpdates, type TaskUpdates } from '../requests/tasks.ts'
import type { Transport, TransportReceiver } from '../transports/transport.ts'
import { LimitExceeded, unansweredError, unsentError } from '../transports/transport-errors.ts'

/** JSON-RPC over one transport: matches responses to requests, and routes other messages to the right request. */
export interface RpcConnection extends AsyncDisposable {
  readonly transport: Transport
  /** Sends a request. Rejects with the server's error or a ToolwayError. */
  request(request: RpcRequest): Promise<ResultMessage>
  notify(method: string, params?: Buffer): Promise<void>
  /** Fails all pending requests. The server may have executed them. */
  abandon(why: ToolwayError): void
  readonly received: number
  readonly cancelledSinceReceived: number
  readonly taskUpdates: TaskUpdates
  /** Whether only one caller uses this connection, so that every message from the server is for that caller. */
  owned: boolean
  /** Whether the server has received a call, or the owner's roots. From then on, it may keep state for its caller. */
  isUsed: boolean
  /** Until when tasks that were started on this connection may run, by the monotonic clock. */
  tasksUntil: number
  /** Attributes messages to the owner's calls; set if the transport does not show which call a message belongs to. */
  turns: CallTurns | undefined
  /** Whether the server sent a request when there was no caller to answer it. */
  hadUnroutableRequest: boolean
  /** Whether the server sends log messages only for requests that ask for them. */
  logsByRequest: boolean
  /** Whether to cancel a request by sending a message. Not needed if closing the request's stream cancels it. */
  cancelsByMessage: boolean
  /** Called for notifications that do not belong to a request, such as list_changed. */
  onNotification: (method: string, params: Buffer | undefined) => void
  /** Called when a message for a caller arrived outside the streams of its calls, on a transport that has streams. */
  onOutOfStream: () => void
  onClosed: (error: ToolwayError) => void
}

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

interface Pending {
  readonly request: RpcRequest
  over(): void
  resolve(answer: ResultMessage): void
  reject(error: Error): void
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

export async function openRpcConnection(
  transport: Transport,
  options: RpcConnectionOptions,
  signal: AbortSignal,
): Promise<RpcConnection> {
  const { server, log } = options
  const pending = new Map<number, Pending>()
  /** Cancelled calls that the server has not responded to, with the time of cancellation. */
  const cancelledCalls = new Map<number, number>()
  const questions = createServerRequests(transport, log)
  let lastId = 0
  let closed = false

  const connection: RpcConnection & { received: number; cancelledSinceReceived: number } = {
    transport,
    request,
    notify: (method, params) => transport.send({ body: notificationBytes(method, params) }),
    abandon: failAll,
    received: 0,
    cancelledSinceReceived: 0,
    taskUpdates: createTaskUpdates(options.tasks),
    owned: options.owned,
    isUsed: false,
    tasksUntil: 0,
    turns: undefined,
    hadUnroutableRequest: false,
    logsByRequest: false,
    cancelsByMessage: true,
    onNotification: () => {},
    onOutOfStream: () => {},
    onClosed: () => {},
    async [Symbol.asyncDispose]() {
      failAll(new ToolwayError('SERVER_UNAVAILABLE', `The connection to ${server} was closed.`, { server }))
      await transport[Symbol.asyncDispose]()
    },
  }

  const receiver: TransportReceiver = {
    message,
    failed: fail,
    closed: (error) => {
      failAll(error)
      connection.onClosed(error)
    },
  }

  await transport.open(receiver, signal)
  return connection

  function request(request: RpcRequest): Promise<ResultMessage> {
    const { turns } = connection
    const { method, name, peer, signal } = request
    if (!turns || !peer || closed || signal.aborted) return transmit(request)
    const about = method === 'tools/call' || method === 'prompts/get' ? `${method} ${name}` : method
    return turns.run(about, peer, signal, () => transmit(request))
  }

  function transmit(request: RpcRequest): Promise<ResultMessage> {
    const { headers, signal, repeatable } = request
    // This request was certainly not sent, whatever happened to requests that were pending when the connection closed.
    if (closed) return Promise.reject(unsentError(server, `The connection to ${server} is closed; try again.`))
    if (signal.aborted) return Promise.reject(signal.reason)
    const id = ++lastId
    const { promise, resolve, reject } = Promise.withResolvers<ResultMessage>()
    const over = () => signal.removeEventListener('abort', cancel)
    const cancel = () => {
      if (!pending.delete(id)) return
      if (request.peer) {
        cancelledCalls.set(id, performance.now())
        const [oldest] = cancelledCalls.keys()
        if (oldest !== undefined && cancelledCalls.size > maxCancelled) cancelledCalls.delete(oldest)
        connection.cancelledSinceReceived++
      }
      if (connection.cancelsByMessage) sendCancellation(id)
      reject(signal.reason)
    }
    const body = requestBytes(id, request.method, request.params(id))
    pending.set(id, { request, over, resolve, reject })
    signal.addEventListener('abort', cancel, { once: true })
    transport.send({ body, headers, exchange: id, signal, repeatable }).catch((error) => fail(id, error))
    return promise
  }

  function sendCancellation(requestId: number): void {
    const params = Json.of({ requestId, reason: 'request cancelled' })
    connection.notify('notifications/cancelled', params.bytes).catch(() => {})
  }

  function settle(id: number): Pending | undefined {
    const waiting = pending.get(id)
    pending.delete(id)
    waiting?.over()
    return waiting
  }

  function fail(id: number, error: Error): void {
    const waiting = settle(id)
    const isUnknown = error instanceof ToolwayError && error.code === 'OUTCOME_UNKNOWN'
    waiting?.reject(isUnknown ? unansweredError(waiting.request.method, error.message, error.details) : error)
  }

  function failAll({ message, details }: ToolwayError): void {
    closed = true
    const requestOnly = LimitExceeded.in(details.cause) && (true as const)
    // If there are several requests, it is unknown which of them exceeded a limit: blame none of them.
    const about = pending.size > 1 && requestOnly ? { ...details, requestOnly, cause: undefined } : details
    questions.cancelAll()
    connection.turns?.close()
    connection.taskUpdates[Symbol.dispose]()
    for (const { request, over, reject } of pending.values()) {
      over()
      reject(unansweredError(request.method, message, { server, ...about }))
    }
    pending.clear()
  }

  function message(body: Buffer, exchange?: number): boolean {
    const message = readMessage(body)
    connection.received++
    connection.cancelledSinceReceived = 0
    switch (message.kind) {
      case 'response': {
        const waiting = answered(message.id, exchange)
        waiting?.resolve(message)
        return waiting !== undefined
      }
      case 'error': {
        const waiting = answered(message.id ?? exchange ?? null, exchange)
        const isLarge = hasMoreValues(message.error, maxMessageValues)
        waiting?.reject(isLarge ? largeError(waiting.request.method) : new ServerError(Json.raw(message.error)))
        return waiting !== undefined
      }
      case 'notification':
        if (isWithinLimit(message.params)) notified(message.method, message.params, exchange)
        break
      case 'request':
        if (isWithinLimit(message.params)) asked(message, exchange)
        else void questions.refuse(message.id, 'The request has too many values.')
        break
      case 'invalid':
        log.debug({ server, reason: message.reason }, 'ignored an invalid JSON-RPC message')
        // If the request has its own stream, its response can still follow a malformed message.
        if (exchange === undefined || !body.includes('"method"')) {
          const cause = message.tooDeep && new LimitExceeded('deep-nesting', maxDepth)
          const id = exchange ?? message.id ?? (cause && integerMember(body, 'id')) ?? 0
          const isKnown = garbled(Number(id), message.reason, cause)
          // Some servers write their log to stdout as JSON.
          if (!isKnown && body.includes('"jsonrpc"')) unusable()
        }
    }
    return false
  }

  /** Whether a message without a request of ours has few enough values to be parsed. Reports it if not. */
  function isWithinLimit(params: Buffer | undefined): boolean {
    if (params === undefined || !hasMoreValues(params, maxMessageValues)) return true
    options.exceeded?.(tooManyValues())
    return false
  }

  function largeError(method: string): ToolwayError {
    const sentence = `${server} responded with an error of more than ${written(maxMessageValues)} values (a fixed limit).`
    return unansweredError(method, sentence, { server, cause: tooManyValues() })
  }

  function answered(responseId: Id | null, exchange: number | undefined): Pending | undefined {
    const id = ownId(responseId)
    // A caller must never get another caller's result, even if the server mixes up its responses.
    if (exchange !== undefined && id !== exchange) {
      garbled(exchange, 'a response to another request')
      return undefined
    }
    if (typeof id === 'number') cancelledCalls.delete(id)
    const waiting = typeof id === 'number' ? settle(id) : undefined
    if (!waiting) log.debug({ server, id }, 'ignored a response without a pending request')
    // The response to a request that was cancelled may come late.
    if (!waiting && !(typeof id === 'number' && id > 0 && id <= lastId)) unusable()
    return waiting
  }

  function notified(method: string, received: Buffer | undefined, exchange: number | undefined): void {
    const params = definedNotification(method, received)
    if (params === undefined) log.debug({ server, method: method.slice(0, 100) }, 'ignored an unknown notification')
    else if (method === 'notifications/progress') {
      const progress = Json.raw<Record<string, unknown>>(params)
      const token = progress.value.progressToken
      const request = typeof token === 'number' ? pending.get(token)?.request : undefined
      request?.progressed?.()
      if (!request?.ownProgress) request?.peer?.notify(method, progress)
    } else if (method === 'notifications/cancelled') questions.cancelled(params)
    else if (method === 'notifications/tasks/status') connection.taskUpdates.publish(params)
    else if (method === 'notifications/message' || method === 'notifications/elicitation/complete') {
      addressees(method, exchange)[0]?.notify(method, Json.raw(params))
    } else {
      const listener = pending.get(exchange ?? subscriptionOf(params) ?? 0)?.request.onStreamNotification
      const peer = exchange === undefined ? undefined : pending.get(exchange)?.request.peer
      if (listener) listener(method, params)
      else if (peer && !isForEverybody(method)) peer.notify(method, Json.raw(params))
      else connection.onNotification(method, params)
    }
  }

  function asked(question: ServerRequest, exchange: number | undefined): void {
    const { method } = question
    const first = method === 'ping' ? [] : addressees(method, exchange)
    if (first.length === 0 && method !== 'ping') connection.hadUnroutableRequest = true
    if (method === 'roots/list' && exchange === undefined && first.length > 0) {
      const owner = options.roots?.(first)
      const answered = questions.answer(question, () => (owner ? [owner] : addressees(method, exchange)))
      options.onRoots?.(answered)
      return
    }
    const { turns } = connection
    const speaker = exchange === undefined ? turns?.speaker() : undefined
    // Any of several calls may have caused the request. A single call is asked itself, and pauses its own timeout.
    const calls = exchange === undefined && !speaker && connection.owned ? peersOf(pending) : []
    const suspects = calls.length > 1 ? calls : []
    const routes = () => {
      if (!speaker) return addressees(method, exchange)
      // Since we know which call triggered this request, the request ends when that call does.
      return turns?.runs(speaker) ? [speaker, ...host().session] : []
    }
    void questions.answer(question, routes, suspects)
  }

  /**
   * The routes to the caller that a message is for, best first: the call on whose stream the message arrived, or any
   * call by the connection's owner. On a shared connection, a message is delivered only if exactly one call can have
   * caused it, so that it never reaches another caller.
   */
  function addressees(method: string, exchange: number | undefined): readonly Peer[] {
    if (exchange !== undefined) {
      const peer = pending.get(exchange)?.request.peer
      return peer ? [peer] : []
    }
    const logs = method === 'notifications/message'
    const peers = peersOf(pending)
    if (transport.kind === 'http' && peers.length > 0) connection.onOutOfStream()
    if (connection.owned) {
      const { turns } = connection
      const callers = turns && (turns.strict || !logs) ? turns.speakers() : peers.reverse()
      // Stateless callers (`rounds`) ask for logs with each call; a session that set no level receives all of them.
      const { calls, session } = host()
      if (logs) return [...callers, ...session].filter(({ rounds, logLevel }) => !rounds || logLevel !== undefined)
      if (callers.length === 0) return [...calls, ...session]
      // Prefer the session if there are several calls: a request sent through it outlives any single call.
      return callers.length === 1 ? [...callers, ...session] : [...session, ...callers]
    }
    // Servers that get the level with each request log only for calls that asked; other servers may log for any call.
    const wanting = logs && connection.logsByRequest ? peers.filter(({ logLevel }) => logLevel !== undefined) : peers
    // Deliver nothing if a cancelled call may still be running on the server, because it may send messages too.
    return wanting.length === 1 && !someGoOn() ? wanting : []
  }

  function host() {
    return options.host?.() ?? { calls: [], session: [] }
  }

  function someGoOn(): boolean {
    const oldest = performance.now() - goesOnMs
    for (const [id, since] of cancelledCalls) if (since < oldest) cancelledCalls.delete(id)
    return cancelledCalls.size > 0
  }

  function unusable(): void {
    options.exceeded?.(new LimitExceeded('unusable-response', 0))
  }

  /** Fails a request whose response is invalid. Returns whether there is such a request. */
  function garbled(id: number, reason: string, cause?: LimitExceeded): boolean {
    const waiting = settle(id)
    const sentence = `${server} sent an invalid JSON-RPC message: ${reason}.`
    waiting?.reject(unansweredError(waiting.request.method, sentence, { server, cause }))
    return waiting !== undefined
  }
}

const peersOf = (pending: ReadonlyMap<number, Pending>): Peer[] =>
  [...pending.values()].flatMap(({ request }) => request.peer ?? [])

/** A notification's params, reduced to the defined members; undefined if the notification must be ignored (V1). */
function definedNotification(method: string, params: Buffer = empty): Buffer | undefined {
  const level = Object.hasOwn(serverNotifications, method) ? serverNotifications[method] : undefined
  if (level === undefined) return undefined
  try {
    return definedBytes(params, level, { revision: modernRevision }, [])
  } catch (thrown) {
    if (thrown instanceof AmbiguousMember) return undefined
    throw thrown
  }
}

const empty = Buffer.from('{}')

const tooManyValues = (): LimitExceeded => new LimitExceeded('too-many-values', maxMessageValues)

/** The id of a response as we sent it: some servers return numbers as strings. */
const ownId = (id: Id | null): Id | null => (typeof id === 'string' && /^[1-9][0-9]{0,14}$/.test(id) ? Number(id) : id)

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
