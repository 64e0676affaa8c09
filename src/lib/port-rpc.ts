import { isRecord } from './is-record.ts'

/** A message channel: the IPC channel of a child process, or a message port. */
export interface RpcPort {
  /** Throws or returns false if the other end is gone. Only IPC channels transmit handles. */
  send(message: unknown, handle?: unknown): unknown
  onMessage(listener: (message: unknown, handle?: unknown) => void): void
}

/** The methods of one side, by name. Parameters and results are copied, so they must be serializable. */
// biome-ignore lint/suspicious/noExplicitAny: each table has its own parameter types.
export type RpcMethods = Readonly<Record<string, (...params: any[]) => unknown>>

/** The other side of a port, which provides the `Remote` methods. */
export interface RpcPeer<Remote extends RpcMethods> {
  /** Whether the other side has responded recently. */
  readonly up: boolean
  /**
   * Calls a method on the other side. Resolves with undefined if the other side fails or does not respond in time, so
   * callers need a fallback. Rejects with the error that the remote method threw, if `errors` can encode that error.
   */
  request<Name extends keyof Remote & string>(
    method: Name,
    ...params: Parameters<Remote[Name]>
  ): Promise<Awaited<ReturnType<Remote[Name]>> | undefined>
  /** Calls a method without waiting. Requests and notifications arrive in the order in which they were sent. */
  notify<Name extends keyof Remote & string>(method: Name, ...params: Parameters<Remote[Name]>): void
}

export interface PortRpcOptions {
  readonly port: RpcPort
  /** Methods that the other side may call. */
  readonly methods: RpcMethods
  timeoutMs?(method: string): number
  readonly clock: { monotonic(): number; after(ms: number, callback: () => void): Disposable }
  /** Encodes and decodes errors. If `encode` returns undefined, the caller gets undefined as its result. */
  readonly errors: { encode(thrown: unknown): object | undefined; decode(encoded: object): Error }
  /** Called when the other side has become unresponsive, and when it responds again. */
  onUp?(up: boolean): void
  /** Called when one of our methods failed with an error that cannot be encoded. */
  onFailure?(thrown: unknown, method: string): void
}

/** The default timeout. A response that takes longer is of no use to a call. */
export const defaultRpcTimeoutMs = 500
/** After this many timeouts in a row, requests fail fast until the other side responds again. */
const maxTimeouts = 3
const rpcProbeMs = 1_000
/** The maximum number of pending requests, which limits memory use while the other side is busy. */
const maxPendingRequests = 10_000

// Do not rename the message members: during an upgrade, processes of two versions can be connected.
interface RequestMessage {
  /** Absent in notifications. */
  readonly id?: number
  readonly ask: string
  readonly given: readonly unknown[]
}

interface ResponseMessage {
  readonly answers: number
  readonly value?: unknown
  readonly thrown?: object
}

/** RPC over a message port. The protocol is symmetric: both ends call this function. */
export function createPortRpc<Remote extends RpcMethods>(options: PortRpcOptions): RpcPeer<Remote> {
  const { port, methods, timeoutMs = () => defaultRpcTimeoutMs, clock, errors, onUp, onFailure } = options
  const pending = new Map<number, (response: ResponseMessage | undefined) => void>()
  let lastId = 0
  let timeouts = 0
  let probedAt = Number.NEGATIVE_INFINITY

  const isUp = () => timeouts < maxTimeouts

  const send = (message: RequestMessage | ResponseMessage): boolean => {
    try {
      return port.send(message) !== false
    } catch {
      return false
    }
  }

  const timedOut = () => {
    timeouts++
    if (timeouts === maxTimeouts) onUp?.(false)
  }

  const responded = () => {
    if (!isUp()) onUp?.(true)
    timeouts = 0
  }

  const respond = async ({ id, ask: method, given }: RequestMessage): Promise<void> => {
    const run = Object.hasOwn(methods, method) ? methods[method] : undefined
    try {
      const value = await run?.(...given)
      if (id !== undefined) send({ answers: id, value })
    } catch (error) {
      const thrown = errors.encode(error)
      if (thrown === undefined) onFailure?.(error, method)
      if (id !== undefined) send({ answers: id, thrown })
    }
  }

  port.onMessage((message) => {
    if (isRpcResponse(message)) {
      responded()
      pending.get(message.answers)?.(message)
    } else if (isRequest(message)) void respond(message)
  })

  return {
    get up() {
      return isUp()
    },
    async request(method, ...params) {
      const id = ++lastId
      const message = { id, ask: method, given: params }
      if (!isUp()) {
        // While the other side is down, send a request as a probe from time to time, without waiting for the response.
        if (clock.monotonic() - probedAt < rpcProbeMs) return undefined
        probedAt = clock.monotonic()
        send(message)
        return undefined
      }
      if (pending.size >= maxPendingRequests) return undefined
      const { promise, resolve } = Promise.withResolvers<ResponseMessage | undefined>()
      pending.set(id, resolve)
      // Time out one event loop turn later: first read the responses that arrived while this process was busy.
      using _timer = clock.after(timeoutMs(method), () => void setImmediate(() => resolve(undefined)))
      if (!send(message)) resolve(undefined)
      const response = await promise
      pending.delete(id)
      if (response === undefined) timedOut()
      if (response?.thrown !== undefined) throw errors.decode(response.thrown)
      return response?.value as never
    },
    notify: (method, ...params) => void send({ ask: method, given: params }),
  }
}

const isRpcResponse = (value: unknown): value is ResponseMessage => isRecord(value) && typeof value.answers === 'number'

const isRequest = (value: unknown): value is RequestMessage =>
  isRecord(value) && typeof value.ask === 'string' && Array.isArray(value.given)
