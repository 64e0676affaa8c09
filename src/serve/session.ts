import type { Access } from '../core/access.ts'
import type { Caller, Peer } from '../core/call.ts'
import type { LogLevel } from '../core/capabilities.ts'
import type { Log } from '../core/log.ts'
import type { Id } from '../wire/message.ts'
import { type Asks, createAsks } from './asks.ts'
import type { Params } from './inbound.ts'
import { sessionPeer } from './session-peer.ts'
import { createSubscriptions, type Subscriptions } from './subscriptions.ts'

/** What a client said of itself when it opened its session. */
export interface Client {
  readonly revision: string
  readonly capabilities: Params
}

/** One client's conversation in the legacy era, whichever door it came through. Disposing of it ends it. */
export interface Session extends Client, Disposable {
  readonly caller: Caller
  /** Its requests in flight. */
  readonly requests: Map<Id, { cancel(): void }>
  readonly asks: Asks
  readonly subscriptions: Subscriptions
  /** The way to the client outside any request. */
  readonly peer: Peer
  /** From which level on it wants log messages, once it has said so. */
  logLevel: LogLevel | undefined
}

interface SessionOptions {
  readonly access: Access
  readonly caller: Caller
  readonly client: Client
  readonly log: Log
  /** Sends what belongs to no request; false if the client cannot be reached. */
  tell(message: Buffer): boolean
}

export function createSession(options: SessionOptions): Session {
  const { access, client, log, tell } = options
  const ended = new AbortController()
  const peer = sessionPeer(() => session, tell, ended.signal)
  const caller: Caller = { ...options.caller, capabilities: client.capabilities, peer }
  const session: Session = {
    ...client,
    caller,
    requests: new Map(),
    asks: createAsks(client, log),
    subscriptions: createSubscriptions({ access, caller, log, tell }),
    peer,
    logLevel: undefined,
    [Symbol.dispose]() {
      for (const request of session.requests.values()) request.cancel()
      session.subscriptions[Symbol.dispose]()
      ended.abort()
      access.sessionEnded(caller)
    },
  }
  return session
}
