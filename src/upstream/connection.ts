import { ServerError, ToolwayError } from '../core/errors.ts'
import { Json } from '../core/json.ts'
import type { Log } from '../core/log.ts'
import { errorBytes, notificationBytes, requestBytes, resultBytes } from '../wire/encode.ts'
import { type Id, readMessage } from '../wire/message.ts'
import type { Receiver, Transport } from './transports/transport.ts'

/** One open line to a server: matches answers to requests, and what is said on the way to the request it belongs to. */
export interface Connection extends AsyncDisposable {
  readonly transport: Transport
  /** Resolves with the bytes of the result; rejects with the server's own error or with one of ours. */
  request(request: Request): Promise<Buffer>
  notify(method: string, params?: Buffer): Promise<void>
  /** Notifications that belong to no request, such as list_changed. */
  onNotification: (method: string, params: Buffer | undefined) => void
  /** The line went down without our doing. */
  onClosed: (error: ToolwayError) => void
}

export interface Request {
  readonly method: string
  /** Makes the params; `progressToken` is this hop's own, to be used if the caller wants progress. */
  params(progressToken: number): Buffer | undefined
  readonly signal: AbortSignal
  progress?(params: Json<Record<string, unknown>>): void
}

interface Pending {
  readonly request: Request
  resolve(result: Buffer): void
  reject(error: Error): void
}

export async function openConnection(transport: Transport, log: Log, signal: AbortSignal): Promise<Connection> {
  const pending = new Map<number, Pending>()
  let lastId = 0
  let closed: ToolwayError | undefined

  const connection: Connection = {
    transport,
    request,
    notify: (method, params) => transport.send({ body: notificationBytes(method, params) }),
    onNotification: () => {},
    onClosed: () => {},
    async [Symbol.asyncDispose]() {
      failAll(new ToolwayError('SERVER_UNAVAILABLE', 'The connection to this server was closed; call again.'))
      await transport[Symbol.asyncDispose]()
    },
  }

  const receiver: Receiver = {
    message,
    failed: (exchange, error) => settle(exchange)?.reject(error),
    closed: (error) => {
      failAll(error)
      connection.onClosed(error)
    },
  }

  await transport.open(receiver, signal)
  return connection

  async function request(request: Request): Promise<Buffer> {
    if (closed) throw closed
    request.signal.throwIfAborted()
    const id = ++lastId
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    pending.set(id, { request, resolve, reject })
    const cancel = () => {
      if (!pending.delete(id)) return
      const params = Json.of({ requestId: id, reason: 'nobody waits for the answer any more' })
      connection.notify('notifications/cancelled', params.bytes).catch(() => {})
      reject(request.signal.reason)
    }
    request.signal.addEventListener('abort', cancel, { once: true })
    const body = requestBytes(id, request.method, request.params(id))
    transport.send({ body, exchange: id, signal: request.signal }).catch((error) => settle(id)?.reject(error))
    try {
      return await promise
    } finally {
      request.signal.removeEventListener('abort', cancel)
    }
  }

  function settle(id: number): Pending | undefined {
    const waiting = pending.get(id)
    pending.delete(id)
    return waiting
  }

  function failAll(error: ToolwayError): void {
    closed = error
    for (const waiting of pending.values()) waiting.reject(error)
    pending.clear()
  }

  function message(body: Buffer, exchange?: number): void {
    const message = readMessage(body)
    switch (message.kind) {
      case 'response':
        answered(message.id)?.resolve(message.result)
        break
      case 'error':
        answered(message.id)?.reject(new ServerError(Json.raw(message.error)))
        break
      case 'notification':
        notified(message.method, message.params)
        break
      case 'request':
        asked(message.id, message.method)
        break
      case 'invalid':
        log.debug({ reason: message.reason, exchange }, 'ignored a message that is not JSON-RPC')
    }
  }

  function answered(id: Id | null): Pending | undefined {
    const waiting = typeof id === 'number' ? settle(id) : undefined
    if (!waiting) log.debug({ id }, 'ignored an answer that nobody waits for')
    return waiting
  }

  function notified(method: string, params: Buffer | undefined): void {
    if (method !== 'notifications/progress' || !params) {
      connection.onNotification(method, params)
      return
    }
    const progress = Json.raw<Record<string, unknown>>(params)
    const token = progress.value.progressToken
    if (typeof token === 'number') pending.get(token)?.request.progress?.(progress)
  }

  /** A server asks its client for something. A ping is answered here; nothing else has been offered to it. */
  function asked(id: Id, method: string): void {
    const answer =
      method === 'ping'
        ? resultBytes(id, Buffer.from('{}'))
        : errorBytes(id, { code: -32601, message: `Toolway does not offer ${method} to servers` })
    transport.send({ body: answer }).catch((error) => log.debug({ method, err: error }, 'could not answer the server'))
  }
}
