import type { ServerResponse } from 'node:http'
import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import { acquireLease, type Membership, ownerOf } from '../../core/cluster.ts'
import type { Log } from '../../core/log.ts'
import { readTaskId } from '../../core/task-id.ts'
import { agentFor } from '../auth/agent.ts'
import type { Identity } from '../auth/identity.ts'
import { parkedBy } from '../calls/pending-calls.ts'
import type { HttpRequest } from '../http/request.ts'
import { type Inbound, type InboundRequest, isObject, type Params, type Unreadable } from '../inbound-message.ts'
import { readRecord } from '../session/session.ts'
import type { Sessions } from '../session/session-store.ts'
import { handedOver, handOver } from './forward-request.ts'

/** One request, as far as it has been read. */
export interface Coming {
  readonly request: HttpRequest
  readonly response: ServerResponse
  readonly identity: Identity
  readonly body?: Buffer
  readonly inbound?: Inbound | Unreadable | undefined
}

export interface ElsewhereOptions {
  readonly membership: Membership
  /** Whether this replica holds a session, wherever it was opened. */
  holds(session: string): boolean
  /** Goes on with the session of a replica that is gone. */
  adopt(session: string, record: string, coming: Coming): void
}

export interface Elsewhere {
  /** True where another replica has answered, or nobody waits for an answer any more. */
  lead(coming: Coming): Promise<boolean>
  /** Streams that lead to others are closed: their clients come back by another way. */
  drain(): void
}

/** Whoever is sent from one to another and back again goes in a circle: the last one takes it. */
const maxHops = 3
/** As many as one replica may hold. */
const maxHeirs = 10_000

/**
 * Sessions, calls that wait for an answer of their caller, and tasks live in the replica that has begun them; requests
 * about them find it there, whichever replica they come to.
 */
export function createElsewhere({ membership, holds, adopt }: ElsewhereOptions): Elsewhere {
  const streams = new Set<ServerResponse>()
  /** Who goes on with a session that another one has opened: remembered, so that it is found while nobody can be asked. */
  const heirs = new Map<string, string>()
  const inherited = (session: string, heir: string) => {
    heirs.set(session, heir)
    const [oldest] = heirs.keys()
    if (oldest !== undefined && heirs.size > maxHeirs) heirs.delete(oldest)
  }
  return {
    lead: find,
    drain() {
      for (const stream of streams) stream.destroy()
    },
  }

  async function find(coming: Coming): Promise<boolean> {
    const { request, response, body, inbound } = coming
    const session = request.headers['mcp-session-id']
    if (typeof session !== 'string') {
      const owner = inbound && ownerOfCall(inbound)
      const address = owner === undefined ? undefined : membership.addressOf(owner)
      return address !== undefined && hand(address)
    }
    if (holds(session)) return false
    const owner = heirs.get(session) ?? ownerOf(session)
    const address = membership.addressOf(owner)
    if (address !== undefined && (await hand(address))) return true
    if (address !== undefined) membership.unreachable(owner)
    heirs.delete(session)
    let taken = await membership.takeOver(session, address && owner)
    if (taken && 'heldBy' in taken) {
      inherited(session, taken.heldBy)
      if (await hand(taken.address)) return true
      taken = await membership.takeOver(session, taken.heldBy)
    }
    if (response.destroyed) return true
    // Of two requests that come at once the first one has done it.
    if (taken && 'record' in taken && !holds(session)) adopt(session, taken.record, coming)
    return false

    async function hand(address: string): Promise<boolean> {
      if ((handedOver(request, membership)?.hops ?? 0) >= maxHops) return false
      if (request.method === 'GET') {
        streams.add(response)
        response.once('close', () => streams.delete(response))
      }
      const answered = await handOver({ request, response, body, address, membership })
      if (!answered) streams.delete(response)
      return answered
    }
  }
}

/** Who has begun what a stateless request goes on with. */
function ownerOfCall(inbound: Inbound | Unreadable): string | undefined {
  if (inbound.kind !== 'request') return undefined
  const { requestState, taskId } = inbound.params
  if (typeof requestState === 'string') return parkedBy(requestState)
  return typeof taskId === 'string' ? readTaskId(taskId)?.replica : undefined
}

/** A session whose holder is gone, and who asks for it now. */
interface Orphan {
  readonly id: string
  readonly record: string
  readonly identity: Identity
  readonly address: string | undefined
}

interface Adoption {
  readonly access: Access
  readonly sessions: Sessions
  readonly log: Log
}

/** Goes on with it here, for nobody but whom it belongs to. */
export function adoptSession({ access, sessions, log }: Adoption, { id, record, identity, address }: Orphan): void {
  const kept = readRecord(record)
  if (kept === undefined || kept.principal !== identity.principal) return
  const { asked, client, logLevel, subscriptions } = kept
  const agent = agentFor(access, { ...identity, ...(address !== undefined && { address }) }, asked)
  const session = sessions.open({ ...identity, agent, ...(asked !== undefined && { asked }) }, client, address, id)
  session.logLevel = logLevel
  log.info({ principal: identity.principal }, 'went on with a session whose replica is gone')
  for (const uri of subscriptions) {
    session.subscriptions
      .goOn(uri)
      .catch((cause: unknown) => log.warn({ uri, err: cause }, 'cannot follow it any more'))
  }
}

export interface EnvironmentsOptions {
  readonly membership: Membership
  /** The environment that a call of a tool names, if it names one. */
  environmentOf(caller: Caller, tool: string, args: Params): Promise<string | undefined> | undefined
}

/** A request of the stateless era, and the call that is in it. */
interface CallComing {
  readonly request: HttpRequest
  readonly response: ServerResponse
  readonly body: Buffer
}

/** True where another replica has answered. Undefined where nobody needs to be asked. */
export type LeadCall = (
  called: InboundRequest & { readonly caller: Caller },
  coming: CallComing,
) => Promise<boolean> | undefined

/**
 * The variables of a named environment live in one replica (S7, B10). Who has no session comes to any of them: a program
 * for an environment is led to the one that holds it.
 */
export function leadToEnvironments({ membership, environmentOf }: EnvironmentsOptions): LeadCall {
  return ({ method, params, caller }, coming) => {
    const { name, arguments: args } = params
    if (method !== 'tools/call' || typeof name !== 'string' || !isObject(args)) return undefined
    // Whoever has handed it over has found it to be ours.
    if (handedOver(coming.request, membership)) return undefined
    return environmentOf(caller, name, args)?.then(
      async (environment) => environment !== undefined && lead(environment, coming),
    )
  }

  async function lead(environment: string, coming: CallComing): Promise<boolean> {
    const found = await acquireLease(membership, environment)
    if (!('heldBy' in found)) return false
    const { heldBy, address } = found
    if (await handOver({ ...coming, address, membership })) return true
    membership.unreachable(heldBy)
    await acquireLease(membership, environment, heldBy)
    return false
  }
}
