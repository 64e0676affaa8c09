import { request as ask, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Clock } from '../../core/clock.ts'
import type { Membership } from '../../core/cluster.ts'
import { errorBody } from '../admin/responses.ts'
import { HttpError, sendHttpError } from '../errors.ts'
import type { ReceivedRequest } from '../http/request.ts'

/** Where one replica tells another whose request it hands over; signed, since anybody can send a header. */
const clientHeader = 'toolway-client'

/** A machine that is gone does not even say no. */
const connectMs = 1_000

/** Of one hop only, and none of the next one's business. */
const ofOneHop = [
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'expect'],
  clientHeader,
]

export interface ForwardOptions {
  readonly request: ReceivedRequest
  readonly response: ServerResponse
  /** The body, where there is one: it has been read to find out whose the request is. */
  readonly body: Buffer | undefined
  /** The request whose body has not been read yet, and goes on as it comes. */
  readonly unread?: IncomingMessage
  /** The other one answers to the same names. */
  readonly sameHost?: boolean
  readonly address: string
  readonly membership: Membership
}

/**
 * Lets another replica answer a request, as if it had come to that one. False where it cannot be reached, so that
 * nothing has been asked of it; true also where nobody waits for an answer any more. Who is let in and as whom is
 * decided there, once more.
 */
export function forwardRequest(handed: ForwardOptions): Promise<boolean> {
  const { request, response, body, address, membership } = handed
  // Who has left would never be heard leaving.
  if (response.destroyed) return Promise.resolve(true)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const headers: Record<string, string | string[] | undefined> = withoutHop(request.headers)
  if (!handed.sameHost) delete headers.host
  const { client = '', hops } = forwardedFrom(request, membership) ?? { client: request.socket.remoteAddress, hops: 0 }
  headers[clientHeader] = membership.sign(`${Date.now()} ${client} ${hops + 1}`)
  if (handed.unread === undefined) headers['content-length'] = String(body?.length ?? 0)
  // node:http frames a body by itself only where the method is one that usually has some.
  else if (request.headers['transfer-encoding'] !== undefined) headers['transfer-encoding'] = 'chunked'
  // A connection of its own: where that cannot be had, the request has surely not been worked on.
  // The path as it is: resolved against the address, one that begins with // would name another host.
  const target = { agent: false, method: request.method, path: request.url ?? '/', headers }
  const onward = ask(new URL(address), target)
  let connected = false
  onward.once('socket', (socket) => {
    // A turn later: it may have been this process that did not get on.
    socket.setTimeout(connectMs, () => setImmediate(() => connected || onward.destroy()))
    socket.once('connect', () => {
      connected = true
      socket.setTimeout(0)
    })
  })
  onward.once('response', (answer) => {
    resolve(true)
    response.writeHead(answer.statusCode ?? 502, withoutHop(answer.headers))
    // A stream has begun, although there may be nothing to say on it for long.
    if (answer.headers['content-type'] === 'text/event-stream') response.flushHeaders()
    answer.pipe(response)
    answer.once('error', () => response.destroy())
  })
  onward.once('error', () => {
    // What has been written may have been worked on: the client sees a connection that breaks, and knows as much.
    if (connected) response.destroy()
    // Where it is the client that has left, nobody needs another answer, and the other one is as well as before.
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

/** How old a note of another replica may be: it is written for one request. */
const freshMs = 60_000

/** What another replica says of a request that it has let in and sends on. */
export interface Forwarded {
  /** Where its client is. */
  readonly client: string | undefined
  /** How often it has been handed over. */
  readonly hops: number
}

/** Undefined for a request that has come from its client itself. */
export function forwardedFrom(
  { headers }: Pick<ReceivedRequest, 'headers'>,
  membership: Membership | undefined,
): Forwarded | undefined {
  const note = membership && headers[clientHeader]
  const [at, address, hops = 1] = typeof note === 'string' ? (membership?.verify(note)?.split(' ') ?? []) : []
  if (at === undefined || Math.abs(Date.now() - Number(at)) > freshMs) return undefined
  return { client: address === '' ? undefined : address, hops: Number(hops) }
}

/** Where a client is, also behind another replica. */
export function clientAddress(request: ReceivedRequest, membership: Membership | undefined): string | undefined {
  const handed = forwardedFrom(request, membership)
  return handed ? handed.client : request.socket.remoteAddress
}

/** The workers of one machine, which share the port. */
export interface Workers {
  /** They alone, where there are no other machines. */
  readonly membership: Membership | undefined
  /** Where the one is that answers people; undefined where that is this one. */
  lead(): string | undefined
}

/**
 * Lets one worker answer all that is for people: who has logged in there is known there, and figures do not jump from
 * one worker's to another's. False where that is this one.
 */
export async function forwardToAdminWorker(
  request: IncomingMessage,
  response: ServerResponse,
  { membership, workers, clock }: { readonly membership: Membership; readonly workers: Workers; readonly clock: Clock },
): Promise<boolean> {
  const handed = forwardedFrom(request, membership)
  if (handed) {
    // The connection is that of one request, and of this client alone.
    Object.defineProperty(request.socket, 'remoteAddress', { value: handed.client, configurable: true })
    return false
  }
  const address = workers.lead()
  if (address === undefined) return false
  if (
    await forwardRequest({ request, response, body: undefined, unread: request, sameHost: true, address, membership })
  )
    return true
  const sentence = 'The worker that answers this is being replaced; try again in a second.'
  sendHttpError(response, HttpError.of('OVERLOADED', sentence, { retryAfterMs: 1_000 }), clock, errorBody)
  return true
}
