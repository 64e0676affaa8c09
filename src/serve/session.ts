import type { Caller } from '../core/call.ts'
import type { Id } from '../wire/message.ts'
import { type Asks, createAsks } from './asks.ts'
import type { Params } from './inbound.ts'
import type { RequestPeer } from './peer.ts'

/** What a client said of itself when it opened its session. */
export interface Client {
  readonly revision: string
  readonly capabilities: Params
}

/** One client's conversation in the legacy era, whichever door it came through. */
export interface Session extends Client {
  readonly caller: Caller
  /** Its requests in flight. */
  readonly requests: Map<Id, RequestPeer>
  readonly asks: Asks
}

export const createSession = (caller: Caller, client: Client): Session => ({
  ...client,
  caller,
  requests: new Map(),
  asks: createAsks(),
})

/** Nobody waits for anything of this session any more. */
export function cancelAll(session: Session): void {
  for (const request of session.requests.values()) request.cancel()
}
