import { request as ask, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { hostname } from 'node:os'
import { type Clock, systemClock, type Timer } from '../../core/clock.ts'
import type { Membership } from '../../core/cluster.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { apiErrorBody, sendHttpError, stoppingHeader, toHttpError } from '../errors.ts'
import type { ReceivedRequest } from '../http/request.ts'

/** The header that tells the other replica the client's address. It is signed, because anyone can send a header. */
export const clientHeader = 'toolway-client'

const ownHostname = hostname()

/** Timeout for connecting. It is needed because a machine that is down does not refuse connections. */
const replicaConnectMs = 1_000

/** How often to check whether the other replica is gone. It must be found gone twice in a row, since it may be late. */
const replicaCheckMs = 2_000

/** Headers that are not forwarded: hop-by-hop headers and `clientHeader` itself. */
const ofOneHop = [
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'expect'],
  clientHeader,
]

interface ForwardRequestOptions {
  readonly request: ReceivedRequest
  readonly response: ServerResponse
  readonly body?: Buffer | undefined
  /** The request from which to stream the body, if the body has not been read. */
  readonly unread?: IncomingMessage
  /** Whether to keep the Host header. Set if the other process accepts the same hosts. */
  readonly sameHost?: boolean
  /** Where to. The request fails if the named replica is gone; without a name, it waits forever. */
  readonly to: { readonly address: string; readonly replica: string | undefined }
  readonly membership: Membership
  readonly clock: Clock
}

/**
 * Forwards a request to another replica, which authenticates it again. Resolves with false only if that replica did
 * not start the request: it could not be reached, or is shutting down. If the client has disconnected, resolves with
 * true. Rejects if that replica may have started the request, but will not answer.
 */
export function forwardRequest(handed: ForwardRequestOptions): Promise<boolean> {
  const { request, response, body, membership, clock } = handed
  const { address, replica } = handed.to
  // Return now: a response that is already closed does not emit another close event.
  if (response.destroyed) return Promise.resolve(true)
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  const headers: Record<string, string | string[] | undefined> = withoutHop(request.headers)
  if (!handed.sameHost) delete headers.host
  const { client = '', hops } = forwardedFrom(request, membership) ?? { client: request.socket.remoteAddress, hops: 0 }
  headers[clientHeader] = membership.sign(
    [Date.now(), client, hops + 1, systemClock.monotonic(), ownHostname].join(' '),
  )
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
    socket.setTimeout(replicaConnectMs, () => setImmediate(() => connected || onward.destroy()))
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
    // If the client has disconnected, report success, because the other replica is not at fault.
    if (!connected || response.destroyed) resolve(response.destroyed)
    else if (response.headersSent) response.destroy()
    else reject(forwardUnanswered(request))
  })
  /** Ends the request if the other replica hangs. Its system keeps the connection open, so nothing else would. */
  const watch = (missed: number): Timer =>
    clock.after(replicaCheckMs, () => {
      const misses = replica !== undefined && membership.isGone?.(replica) ? missed + 1 : 0
      if (misses === 2) onward.destroy(new Error('the replica is gone'))
      else watching = watch(misses)
    })
  let watching = watch(0)
  onward.once('close', () => watching[Symbol.dispose]())
  response.once('close', () => onward.destroy())
  if (handed.unread) handed.unread.pipe(onward)
  else onward.end(body)
  return promise
}

/** The error for a request that another replica may have started. Reading again is safe, anything else may not be. */
export function forwardUnanswered({ method }: Pick<ReceivedRequest, 'method'>): ToolwayError {
  if (method === 'GET' || method === 'HEAD') {
    const sentence = 'The replica that holds this session stopped before it responded: try again in a second.'
    return new ToolwayError('OVERLOADED', sentence, { retryAfterMs: 1_000 })
  }
  const sentence =
    'The replica that handled this request stopped before it responded. The request may have taken effect: check before you repeat it.'
  return new ToolwayError('OUTCOME_UNKNOWN', sentence)
}

function withoutHop(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept = { ...headers }
  for (const name of ofOneHop) delete kept[name]
  return kept
}

/** Maximum age of the signed header. Each request gets its own header, so a short time is enough. */
const signatureMaxAgeMs = 60_000

/** The information in a forwarded request's signed header. Undefined if the request came directly from a client. */
export function forwardedFrom({ headers }: Pick<ReceivedRequest, 'headers'>, membership: Membership) {
  const note = headers[clientHeader]
  const text = typeof note === 'string' ? membership.verify(note) : undefined
  if (text === undefined) return undefined
  const [at, address, hops = 1, tick, sender] = text.split(' ')
  const fresh = (then: string | undefined, now: number) => Math.abs(now - Number(then)) <= signatureMaxAgeMs
  // On one machine, the monotonic clock decides if the wall clock was set since then.
  if (!fresh(at, Date.now()) && !(sender === ownHostname && fresh(tick, systemClock.monotonic()))) return undefined
  return { client: address === '' ? undefined : address, hops: Number(hops) }
}

/** The client's address, even if another replica forwarded the request. */
export function clientAddress(request: ReceivedRequest, membership: Membership): string | undefined {
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
  options: { readonly membership: Membership; readonly workers: Workers; readonly clock: Clock; readonly log: Log },
): Promise<boolean> {
  const { membership, workers, clock, log } = options
  const handed = forwardedFrom(request, membership)
  if (handed) {
    // Changing the socket is safe here, because the connection carries only this request.
    Object.defineProperty(request.socket, 'remoteAddress', { value: handed.client, configurable: true })
    return false
  }
  const address = workers.lead()
  if (address === undefined) return false
  const target = { to: { address, replica: undefined }, membership, clock }
  try {
    if (await forwardRequest({ request, response, unread: request, sameHost: true, ...target })) return true
    const sentence = 'The worker that serves the admin API is restarting: try again in a second.'
    throw new ToolwayError('OVERLOADED', sentence, { retryAfterMs: 1_000 })
  } catch (thrown) {
    sendHttpError(response, toHttpError(thrown, log), clock, apiErrorBody)
    return true
  }
}
