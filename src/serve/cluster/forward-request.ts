import { request as ask, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { hostname } from 'node:os'
import { type Clock, systemClock } from '../../core/clock.ts'
import type { Membership } from '../../core/cluster.ts'
import { errorBody } from '../admin/responses.ts'
import { HttpError, sendHttpError, stoppingHeader } from '../errors.ts'
import type { ReceivedRequest } from '../http/request.ts'

/** The header that tells the other replica the client's address. It is signed, because anyone can send a header. */
export const clientHeader = 'toolway-client'

const machine = hostname()

/** Timeout for connecting. It is needed because a machine that is down does not refuse connections. */
const connectMs = 1_000

/** Headers that are not forwarded: hop-by-hop headers and `clientHeader` itself. */
const ofOneHop = [
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'expect'],
  clientHeader,
]

interface ForwardRequestOptions {
  readonly request: ReceivedRequest
  readonly response: ServerResponse
  /** The body; undefined if it has not been read. */
  readonly body: Buffer | undefined
  /** The request from which to stream the body, if the body has not been read. */
  readonly unread?: IncomingMessage
  /** Whether to keep the Host header. Set if the other process accepts the same hosts. */
  readonly sameHost?: boolean
  readonly address: string
  readonly membership: Membership
}

/**
 * Forwards a request to another replica, which authenticates it again. Resolves with false only if that replica did
 * not start the request: it could not be reached, or is shutting down. If the client has disconnected, resolves with true.
 */
export function forwardRequest(handed: ForwardRequestOptions): Promise<boolean> {
  const { request, response, body, address, membership } = handed
  // Return now: a response that is already closed does not emit another close event.
  if (response.destroyed) return Promise.resolve(true)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const headers: Record<string, string | string[] | undefined> = withoutHop(request.headers)
  if (!handed.sameHost) delete headers.host
  const { client = '', hops } = forwardedFrom(request, membership) ?? { client: request.socket.remoteAddress, hops: 0 }
  headers[clientHeader] = membership.sign([Date.now(), client, hops + 1, systemClock.monotonic(), machine].join(' '))
  if (handed.unread === undefined) headers['content-length'] = String(body?.length ?? 0)
  // Set this header explicitly: node:http frames a body automatically only for methods that usually have one.
  else if (request.headers['transfer-encoding'] !== undefined) headers['transfer-encoding'] = 'chunked'
  // Use a new connection: if connecting fails, the request was certainly not processed. Use the raw path: resolved
  // against the address, a path that starts with // would name another host.
  const target = { agent: false, method: request.method, path: request.url ?? '/', headers }
  const onward = ask(new URL(address), target)
  let connected = false
  let refused = false
  onward.once('socket', (socket) => {
    // Wait one more tick, because the connection may have opened while this process was blocked.
    socket.setTimeout(connectMs, () => setImmediate(() => connected || onward.destroy()))
    socket.once('connect', () => {
      connected = true
      socket.setTimeout(0)
    })
  })
  onward.once('response', (answer) => {
    refused = answer.headers[stoppingHeader] !== undefined
    resolve(!refused || response.destroyed)
    if (refused) {
      answer.on('error', () => {}).resume()
      return
    }
    response.writeHead(answer.statusCode ?? 502, withoutHop(answer.headers))
    // Send the headers now, because the first event may come much later.
    if (answer.headers['content-type'] === 'text/event-stream') response.flushHeaders()
    answer.pipe(response)
    answer.once('error', () => response.destroy())
  })
  onward.on('error', () => {
    if (refused) return
    // The request may have been processed, so the outcome is unknown: break the client's connection too.
    if (connected) response.destroy()
    // If the client has disconnected, report success, because the other replica is not at fault.
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

/** Maximum age of the signed header. Each request gets its own header, so a short time is enough. */
const freshMs = 60_000

export interface Forwarded {
  readonly client: string | undefined
  readonly hops: number
}

/** The information in a forwarded request's signed header. Undefined if the request came directly from a client. */
export function forwardedFrom(
  { headers }: Pick<ReceivedRequest, 'headers'>,
  membership: Membership | undefined,
): Forwarded | undefined {
  const note = membership && headers[clientHeader]
  const text = typeof note === 'string' ? membership?.verify(note) : undefined
  if (text === undefined) return undefined
  const [at, address, hops = 1, tick, sender] = text.split(' ')
  const fresh = (then: string | undefined, now: number) => Math.abs(now - Number(then)) <= freshMs
  // On one machine, the monotonic clock decides if the wall clock was set since then.
  if (!fresh(at, Date.now()) && !(sender === machine && fresh(tick, systemClock.monotonic()))) return undefined
  return { client: address === '' ? undefined : address, hops: Number(hops) }
}

/** The client's address, even if another replica forwarded the request. */
export function clientAddress(request: ReceivedRequest, membership: Membership | undefined): string | undefined {
  const handed = forwardedFrom(request, membership)
  return handed ? handed.client : request.socket.remoteAddress
}

export interface Workers {
  /** Membership among the workers on this machine; used if there are no other replicas. */
  readonly membership: Membership | undefined
  /** Where the first worker listened; undefined if this is the first. */
  readonly port: number | undefined
  /** The address of the worker that serves the admin API; undefined if that is this worker. */
  lead(): string | undefined
}

/** Forwards admin requests to the worker with the logins and statistics. Resolves with false if that is this worker. */
export async function forwardToAdminWorker(
  request: IncomingMessage,
  response: ServerResponse,
  { membership, workers, clock }: { readonly membership: Membership; readonly workers: Workers; readonly clock: Clock },
): Promise<boolean> {
  const handed = forwardedFrom(request, membership)
  if (handed) {
    // Changing the socket is safe here, because the connection carries only this request.
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
