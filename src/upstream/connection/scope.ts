import type { ServerConfig } from '../../config/schema.ts'
import { type Caller, type Capabilities, canBeAsked, clientKey, listProfile, type Peer } from '../../core/call.ts'
import { type CallerUse, type PooledConnection, statelessKey } from './pooled-connection.ts'

/** Which connection a call uses: one that callers share, its caller's own, or one for this call alone. */
export interface ClientScope {
  readonly kind: 'shared' | 'own' | 'call'
  readonly key: string
  /** Whether the caller wants log messages that only its own connection can attribute to it. */
  readonly logs?: boolean
}

/** What is known about a server and its connections. */
export interface ConnectionFacts {
  readonly config: ServerConfig
  readonly connections: ReadonlyMap<string, PooledConnection>
  /** Whether each principal has its own credential, so that connections are never shared. */
  readonly personal: boolean
  /** Whether the server offers no sessions. It may be replaced when a connection to it ends. */
  sessionless: boolean
  /** Whether any caller has had its own connection. */
  hasOwners: boolean
  /** Whether the server has asked a caller without a session for its roots. */
  wantsRoots: boolean
  /** Whether log messages from the server may not say for which call they are. */
  logsForAnyCall(): boolean
}

export const sharedKey = (capabilities: Capabilities): string => `shared ${listProfile(capabilities)}`

/** All of a caller's calls use the same connection, so that they see the same server state (V3). */
export function chooseScope(caller: Caller, peer: Peer | undefined, facts: ConnectionFacts): ClientScope {
  const { connections, config, hasOwners } = facts
  if (config.session === 'call') return { kind: 'call', key: '' }
  const logs = peer?.logLevel !== undefined && facts.logsForAnyCall()
  const own = hasOwners ? ownKey(caller, facts) : undefined
  if (own !== undefined) return { kind: 'own', key: own, logs }
  const isStateless = connections.has(statelessKey)
  const needsOwn = needsOwnConnection(caller.capabilities, facts)
  if (needsOwn && (!isStateless || prefersSession(caller, facts))) return { kind: 'own', key: clientKey(caller), logs }
  const key = isStateless ? statelessKey : sharedKey(caller.capabilities)
  // A session that has used the shared connection stays on it, because the server may hold the session's state there.
  if (logs && !connections.get(key)?.sessions.has(caller.session)) return { kind: 'own', key: clientKey(caller), logs }
  return { kind: 'shared', key }
}

/** The key of the caller's connection; of several for different roots, of the one that was used last. */
function ownKey(caller: Caller, { connections, wantsRoots }: ConnectionFacts): string | undefined {
  const key = clientKey(caller)
  if (connections.has(key)) return key
  if (!wantsRoots || caller.capabilities.roots === undefined) return undefined
  const rooted = [...connections].filter(([other]) => other.startsWith(`${key} `))
  return rooted.sort(([, one], [, other]) => one.lastUse - other.lastUse).at(-1)?.[0]
}

/**
 * Whether a client needs its own connection. If the server can send requests to the client, only a separate connection
 * shows which client a request is for, because other clients' calls, even cancelled ones, can also trigger requests.
 */
export const needsOwnConnection = (capabilities: Capabilities, { config, personal }: ConnectionFacts): boolean =>
  config.session !== 'shared' || personal || canBeAsked(capabilities)

/**
 * Whether to open a session for a client although the server may support the stateless protocol too: many such servers
 * can ask their client and keep its state only in a session, which is what the client would get without a gateway.
 */
export const prefersSession = ({ peer, capabilities }: Caller, facts: ConnectionFacts): boolean =>
  facts.config.transport !== 'sse' &&
  facts.config.era === 'auto' &&
  !facts.sessionless &&
  peer !== undefined &&
  needsOwnConnection(capabilities, facts)

/**
 * Whether the choice of a connection depends on a call's roots. A caller without a session may be several programs with
 * different roots.
 */
export const dependsOnRoots = ({ caller, peer }: CallerUse, { wantsRoots, connections }: ConnectionFacts): boolean =>
  wantsRoots && !connections.has(statelessKey) && !caller.peer && peer.rounds && caller.capabilities.roots !== undefined
