import type { ServerResponse } from 'node:http'
import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { acquireLease, type Membership, ownerOf } from '../../core/cluster.ts'
import type { Log } from '../../core/log.ts'
import { readTaskId } from '../../core/task-id.ts'
import { isRecord } from '../../lib/is-record.ts'
import { setBounded } from '../../lib/memoize.ts'
import { type AuthIdentity, actingAs, agentFor } from '../auth/identity.ts'
import { replicaOfState } from '../calls/resumable-call.ts'
import { shuttingDown } from '../errors.ts'
import type { ReceivedRequest } from '../http/request.ts'
import { BufferedResponse } from '../http/response.ts'
import type { InboundMessage, InboundRequest, Params, UnreadableMessage } from '../inbound-message.ts'
import { parseSessionRecord } from '../session/session.ts'
import type { SessionStore } from '../session/session-store.ts'
import { forwardedFrom, forwardRequest } from './forward-request.ts'

/** A request to be routed. `body` and `inbound` are set if the body has already been read. */
export interface RoutedRequest {
  readonly request: ReceivedRequest
  readonly response: ServerResponse
  readonly identity: AuthIdentity
  readonly body?: Buffer
  readonly inbound?: InboundMessage | UnreadableMessage | undefined
}

/** Maximum number of hops, to break forwarding loops. After that, a replica handles the request itself. */
const maxForwardHops = 3
/** How often a request is forwarded again because the session's holder stopped and another replica took it over. */
const maxMoves = 5
/** Maximum number of entries in `heirs`; equal to the maximum number of sessions per replica. */
const maxHeirs = 10_000

/** Forwards requests for sessions, suspended calls and tasks to the one replica that holds them. */
export function createOwnerRouting(options: {
  readonly membership: Membership
  readonly clock: Clock
  holds(session: string): boolean
  /** Continues a session in this replica because the session's own replica is gone. */
  adopt(session: string, record: string, coming: RoutedRequest): void
}) {
  const { membership, clock, holds, adopt } = options
  const streams = new Set<ServerResponse>()
  let draining = false
  /** For each adopted session, the replica that took it over. Cached here, because Redis may be unavailable. */
  const heirs = new Map<string, string>()
  return {
    route: find,
    /** Closes streams that are relayed from other replicas, and adopts no more sessions. Clients go to another replica. */
    drain() {
      draining = true
      for (const stream of streams) stream.destroy()
    },
  }

  /** Resolves with true if another replica answered or the client has disconnected. Rejects if the outcome is unknown. */
  async function find(coming: RoutedRequest): Promise<boolean> {
    const { request, response, body, inbound } = coming
    const session = request.headers['mcp-session-id']
    if (typeof session !== 'string') {
      const owner = inbound && ownerOfRequest(inbound)
      const address = owner === undefined ? undefined : membership.addressOf(owner)
      return owner !== undefined && address !== undefined && hand(address, owner)
    }
    if (holds(session)) return false
    const owner = heirs.get(session) ?? ownerOf(session)
    const address = membership.addressOf(owner)
    if (address !== undefined && (await hand(address, owner))) return true
    const refusal = () => shuttingDown(inbound?.kind === 'request' ? inbound.id : undefined)
    if (draining) throw refusal()
    if (address !== undefined) membership.unreachable(owner)
    heirs.delete(session)
    let taken = await membership.takeOver(session, address && owner)
    // The holder may stop, too, and yet another replica may take over the session before this one does.
    for (let moves = 0; taken && 'heldBy' in taken; moves++) {
      setBounded(heirs, session, taken.heldBy, maxHeirs)
      if (await hand(taken.address, taken.heldBy)) return true
      if (moves === maxMoves) throw refusal()
      taken = await membership.takeOver(session, taken.heldBy)
    }
    if (response.destroyed) return true
    // Check again, because a concurrent request may have adopted the session already.
    if (taken && 'record' in taken && !holds(session)) adopt(session, taken.record, coming)
    return false

    async function hand(address: string, replica: string): Promise<boolean> {
      if ((forwardedFrom(request, membership)?.hops ?? 0) >= maxForwardHops) return false
      if (request.method === 'GET') {
        // A stream would last until the end of `shutdownGrace`.
        if (draining) return false
        streams.add(response)
        response.once('close', () => streams.delete(response))
      }
      if (await transferConnection(replica)) return true
      const answered = await forwardRequest({ request, response, body, to: { address, replica }, membership, clock })
      if (!answered) streams.delete(response)
      return answered
    }

    /** Hands the connection to the session's worker, so that its next requests arrive there. */
    async function transferConnection(replica: string): Promise<boolean> {
      if (!membership.transferConnection || !(response instanceof BufferedResponse)) return false
      if (forwardedFrom(request, membership)) return false
      return response.line.transferConnection(
        (connection) => membership.transferConnection?.(replica, connection) ?? Promise.resolve(false),
      )
    }
  }
}

/** The replica that holds the call or task that a stateless request continues. */
function ownerOfRequest(inbound: InboundMessage | UnreadableMessage): string | undefined {
  if (inbound.kind !== 'request') return undefined
  const { requestState, taskId } = inbound.params
  if (typeof requestState === 'string') return replicaOfState(requestState)
  return typeof taskId === 'string' ? readTaskId(taskId)?.replica : undefined
}

/** Continues a session whose replica is gone, but only if the client owns the session. */
export function adoptSession(
  { access, sessions, log }: { access: Access; sessions: SessionStore; log: Log },
  { id, record, identity, address }: { id: string; record: string; identity: AuthIdentity; address?: string },
): void {
  const kept = parseSessionRecord(record)
  if (kept === undefined || kept.principal !== identity.principal) return
  const { asked, exposure, client, logLevel, subscriptions } = kept
  const agent = agentFor(access, { ...identity, address }, asked)
  const session = sessions.open({ ...identity, agent, asked, exposure }, client, address, id)
  session.logLevel = logLevel
  log.info({ principal: identity.principal }, 'took over a session from a replica that is gone')
  for (const { uri, asked } of subscriptions) {
    const resume = async () => session.subscriptions.resume(uri, actingAs(access, session.caller, asked))
    resume().catch((err: unknown) => log.warn({ uri, err }, 'cannot subscribe again after taking over a session'))
  }
}

export interface EnvironmentsOptions {
  readonly membership: Membership
  readonly clock: Clock
  environmentOf(caller: Caller, tool: string, args: Params): Promise<string | undefined> | undefined
}

/** Resolves with true if another replica answered. Returns undefined if the call does not name an environment. */
export type RouteCall = (
  called: InboundRequest & { readonly caller: Caller },
  coming: Required<Pick<RoutedRequest, 'request' | 'response' | 'body'>>,
) => Promise<boolean> | undefined

/**
 * Forwards programs to the replica that holds their environment. The variables of a named environment exist in one
 * replica only (S7, B10), but stateless requests arrive at any replica.
 */
export function routeToEnvironments({ membership, environmentOf, clock }: EnvironmentsOptions): RouteCall {
  return ({ method, params, caller }, coming) => {
    const { name, arguments: args } = params
    if (method !== 'tools/call' || typeof name !== 'string' || !isRecord(args)) return undefined
    // Do not forward again: the other replica has already found that this one holds the environment.
    if (forwardedFrom(coming.request, membership)) return undefined
    return environmentOf(caller, name, args)?.then(
      async (environment) => environment !== undefined && lead(environment, coming),
    )
  }

  async function lead(environment: string, coming: Parameters<RouteCall>[1]): Promise<boolean> {
    const found = await acquireLease(membership, environment)
    if (!('heldBy' in found)) return false
    const { heldBy, address } = found
    if (await forwardRequest({ ...coming, to: { address, replica: heldBy }, membership, clock })) return true
    membership.unreachable(heldBy)
    await acquireLease(membership, environment, heldBy)
    return false
  }
}
