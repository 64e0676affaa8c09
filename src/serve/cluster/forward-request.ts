import { request as ask, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Clock } from '../../core/clock.ts'
import type { Membership } from '../../core/cluster.ts'
import { errorBody } from '../admin/responses.ts'
import { HttpError, sendHttpError } from '../errors.ts'
import type { ReceivedRequest } from '../http/request.ts'

/** Carries the client's address to the other replica. Signed, because anyone can send a header. */
const clientHeader = 'toolway-client'

/** A machine that is down does not refuse connections, so connecting needs a timeout. */
const connectMs = 1_000

/** Hop-by-hop headers, and ours. */
const ofOneHop = [
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'expect'],
  clientHeader,
]

interface ForwardRequestOptions {
  readonly request: ReceivedRequest
  readonly response: ServerResponse
  /** Undefined if it has not been read. */
  readonly body: Buffer | undefined
  /** A request whose body is streamed instead. */
  readonly unread?: IncomingMessage
  /** Keeps the Host header: the other replica accepts the same ones. */
  readonly sameHost?: boolean
  readonly address: string
  readonly membership: Membership
}

/**
 * Forwards a request to another replica, which authenticates it again. Resolves with false only if that replica never
 * received the request; with true also if the client has disconnected.
 */
export function forwardRequest(handed: ForwardRequestOptions): Promise<boolean> {
  const { request, response, body, address, membership } = handed
  // A closed response emits no further close event.
  if (response.destroyed) return Promise.resolve(true)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const headers: Record<string, string | string[] | undefined> = withoutHop(request.headers)
  if (!handed.sameHost) delete headers.host
  const { client = '', hops } = forwardedFrom(request, membership) ?? { client: request.socket.remoteAddress, hops: 0 }
  headers[clientHeader] = membership.sign(`${Date.now()} ${client} ${hops + 1}`)
  if (handed.unread === undefined) headers['content-length'] = String(body?.length ?? 0)
  // node:http frames a body automatically only for methods that usually have one.
  else if (request.headers['transfer-encoding'] !== undefined) headers['transfer-encoding'] = 'chunked'
  // A new connection: if connecting fails, the request was certainly not processed. The raw path: if resolved against
  // the address, a path that starts with // would name another host.
  const target = { agent: false, method: request.method, path: request.url ?? '/', headers }
  const onward = ask(new URL(address), target)
  let connected = false
  onward.once('socket', (socket) => {
    // One tick later, in case this process was blocked.
    socket.setTimeout(connectMs, () => setImmediate(() => connected || onward.destroy()))
    socket.once('connect', () => {
      connected = true
      socket.setTimeout(0)
    })
  })
  onward.once('response', (answer) => {
    resolve(true)
    response.writeHead(answer.statusCode ?? 502, withoutHop(answer.headers))
    // Send the head now: the first event may come late.
    if (answer.headers['content-type'] === 'text/event-stream') response.flushHeaders()
    answer.pipe(response)
    answer.once('error', () => response.destroy())
  })
  onward.once('error', () => {
    // The request may have been processed: break the client's connection too, since the outcome is unknown.
    if (connected) response.destroy()
    // If the client has disconnected, the other replica is not at fault.
    resolve(response.destroyed)
  })
  response.once('close', () => onward.destroy())
  if (handed.unread) handed.unread.pipe(onward)
  else onward.end(body)
  return promise
}

function withoutHop(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept = { ...headers }
  for (const name of ofOneHop) delete kept[name]
  return kept
}

/** Maximum age of the signed header, which is made for one request. */
const freshMs = 60_000

export interface Forwarded {
  readonly client: string | undefined
  readonly hops: number
}

/** Undefined for a request directly from a client. */
export function forwardedFrom(
  { headers }: Pick<ReceivedRequest, 'headers'>,
  membership: Membership | undefined,
): Forwarded | undefined {
  const note = membership && headers[clientHeader]
  const [at, address, hops = 1] = typeof note === 'string' ? (membership?.verify(note)?.split(' ') ?? []) : []
  if (at === undefined || Math.abs(Date.now() - Number(at)) > freshMs) return undefined
  return { client: address === '' ? undefined : address, hops: Number(hops) }
}

/** The client's address, even if another replica forwarded the request. */
export function clientAddress(request: ReceivedRequest, membership: Membership | undefined): string | undefined {
  const handed = forwardedFrom(request, membership)
  return handed ? handed.client : request.socket.remoteAddress
}

export interface Workers {
  /** The workers of this machine only, if there are no other replicas. */
  readonly membership: Membership | undefined
  /** The address of the worker that serves the admin API; undefined if it is this one. */
  lead(): string | undefined
}

/** Forwards admin requests to the worker that has the logins and the shown figures; false if this is that worker. */
export async function forwardToAdminWorker(
  request: IncomingMessage,
  response: ServerResponse,
  { membership, workers, clock }: { readonly membership: Membership; readonly workers: Workers; readonly clock: Clock },
): Promise<boolean> {
  const handed = forwardedFrom(request, membership)
  if (handed) {
    // Safe: the connection carries only this request.
    Object.defineProperty(request.socket, 'remoteAddress', { value: handed.client, configurable: true })
    return false
  }
  const address = workers.lead()
  if (address === undefined) return false
  if (
    await forwardRequest({ request, response, body: undefined, unread: request, sameHost: true, address, membership })
  )
    return true
  const sentence = 'The worker that serves the admin API is restarting: try again in a second.'
  sendHttpError(response, HttpError.of('OVERLOADED', sentence, { retryAfterMs: 1_000 }), clock, errorBody)
  return true
}
