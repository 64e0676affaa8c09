import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Fleet, ownerOf } from '../../core/fleet.ts'
import { readTaskId } from '../../core/task-id.ts'
import type { Identity } from '../authenticate/index.ts'
import type { Inbound, Unreadable } from '../inbound.ts'
import { parkedBy } from '../parked.ts'
import { handOver } from './hand-over.ts'

/** One request, as far as it has been read. */
export interface Coming {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly identity: Identity
  readonly body?: Buffer
  readonly inbound?: Inbound | Unreadable | undefined
}

export interface ElsewhereOptions {
  readonly fleet: Fleet
  /** Whether this replica holds a session, wherever it was opened. */
  holds(session: string): boolean
  /** Goes on with the session of a replica that is gone. */
  adopt(session: string, record: string, coming: Coming): void
}

/**
 * Sessions, calls that wait for an answer of their caller, and tasks live in the replica that has begun them; requests
 * about them find it there, whichever replica they come to. True where another one has answered.
 */
export function createElsewhere({ fleet, holds, adopt }: ElsewhereOptions): (coming: Coming) => Promise<boolean> {
  return async (coming) => {
    const { request, response, body, inbound } = coming
    const session = request.headers['mcp-session-id']
    if (typeof session === 'string') {
      if (holds(session)) return false
      return lead(ownerOf(session), session)
    }
    const owner = inbound && ownerOfCall(inbound)
    return owner !== undefined && owner !== fleet.self && lead(owner, undefined)

    async function lead(owner: string, session: string | undefined): Promise<boolean> {
      if (owner === fleet.self) return false
      const address = fleet.addressOf(owner)
      if (address !== undefined && (await handOver({ request, response, body, address, fleet }))) return true
      if (address !== undefined) fleet.unreachable(owner)
      const taken = session === undefined ? undefined : await fleet.takeOver(session)
      if (taken === undefined || session === undefined) return false
      if ('heldBy' in taken) return taken.heldBy !== owner && lead(taken.heldBy, undefined)
      adopt(session, taken.record, coming)
      return false
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
