import type { ServerConfig } from '../../config/schema.ts'
import {
  type Caller,
  type Capabilities,
  canBeAsked,
  clientKey,
  hasShare,
  type Peer,
  profileOf,
} from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { waitFor } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Json } from '../../json/json.ts'
import { createCallTurns, type ToolMessaging } from '../requests/call-turns.ts'
import { unsentError } from '../transports/transport-errors.ts'
import { type ConnectionScope, type Connector, connectWithinMs } from './connect.ts'
import { type InitializedConnection, isStateful, requestLogLevel } from './handshake.ts'
import {
  BoundedConnections,
  type ConnectionState,
  createManagedConnection,
  type ManagedConnection,
  maxOwned,
  maxShared,
  stateOf,
} from './managed-connection.ts'
import { caughtUp } from './ping.ts'
import { createReconnectBackoff } from './reconnect.ts'
import {
  awaitRoots,
  beginRootsWait,
  type ConnectionOwner,
  type ConnectionUser,
  createHost,
  createRootsOf,
  rootsKey,
  rootsProvider,
  waitForRoots,
} from './roots.ts'
import { createWarmPool } from './warm-pool.ts'

/** All connections to one server. Chooses which connection each caller uses (G3). */
export interface ConnectionPool extends AsyncDisposable {
  readonly connected: boolean
  readonly opening: boolean
  /** Whether each principal has its own credential, so that connections are never shared. */
  readonly personal: boolean
  /** Why no connection could be opened (`failure`) or why the last one broke (`lost`); cleared when one opens. */
  readonly failure: ToolwayError | undefined
  readonly lost: ToolwayError | undefined
  /** Milliseconds until the next attempt to reach a server that is down. */
  readonly pauseMs: number
  readonly all: readonly ManagedConnection[]
  readonly latest: InitializedConnection | undefined
  /** How many times a connection broke, was abandoned, or was closed by `interrupt`. */
  readonly breaks: number
  /** Closes all connections; the next use reconnects, regardless of earlier failures. */
  interrupt(error: ToolwayError): Promise<void>
  use<T>(user: ConnectionUser, work: Work<T>): Promise<T>
  /** The connection for this caller's calls. Must not be used for servers with `session: call`. */
  forCaller(caller: Caller): ManagedConnection
  /** A connection for fetching the listing that clients with these capabilities see. */
  forListing(capabilities: Capabilities): ManagedConnection
  /** An open connection that lists the same for all clients with these capabilities, if there is one. */
  current(capabilities: Capabilities): InitializedConnection | undefined
  /** The open connections with the state of one client each, of clients with these capabilities, oldest first. */
  stateful(capabilities: Capabilities): readonly InitializedConnection[]
  /** The caller whose connection this is; undefined if it belongs to no caller. */
  callerOf(open: InitializedConnection): Caller | undefined
  /** Sends a notification on the connections that only this session uses, whichever agents it acts as. */
  notifyServer(session: string, method: string): void
  sessionEnded(session: string): void
  /** The open connections, at most `limit`. */
  describe(limit: number): readonly ConnectionState[]
}

export interface ConnectionPoolOptions {
  readonly server: string
  readonly config: ServerConfig
  readonly connect: Connector
  mayLog(): boolean
  /** Whether the server may send messages to this caller's client outside any call. */
  mayReach(caller: Caller): boolean
  awaitStart?(signal: AbortSignal): Promise<Disposable> | undefined
  opening?(): void
  opened(open: InitializedConnection, capabilities: Capabilities, managed: ManagedConnection): void
  closed(managed: ManagedConnection, error?: ToolwayError): void
  /** Called when a connection could not be opened, or stopped responding. */
  failed(error: ToolwayError): void
  /** Called when a connection broke, and when one is closed because nobody used it. */
  broke?(open: InitializedConnection, error: ToolwayError): void
  idle?(open: InitializedConnection): void
  readonly clock: Clock
  readonly log: Log
}

type PoolState = { lost: ToolwayError | undefined; latest: InitializedConnection | undefined; breaks: number }
type Work<T> = (open: InitializedConnection) => Promise<T>

/** What the pool knows about a connection; `profile` is that of the clients for which it was created. */
interface ConnectionFacts {
  readonly profile: string
  owner: ConnectionOwner | undefined
  prefersSession: boolean
}

export function createConnectionPool(options: ConnectionPoolOptions): ConnectionPool {
  const { server, config, clock, log } = options
  const stdio = config.transport === 'stdio'
  const personal = !stdio && config.auth?.type === 'oauth' && config.auth.perPrincipal
  const spares = config.session === 'shared' || personal ? 0 : config.spares

  // The connections, by whom they are for.
  const shared = new BoundedConnections(maxShared, (managed) => managed !== stateless, end)
  const owned = new BoundedConnections(maxOwned[config.transport], (managed) => managed !== stateless, end)
  const shortLived = new Set<ManagedConnection>()
  const warmPool = createWarmPool({ count: spares, create: createOwned, close: end })
  /** The connection to a stateless server, shared by all callers, because each request describes its client. */
  let stateless: ManagedConnection | undefined
  const facts = new WeakMap<ManagedConnection, ConnectionFacts>()
  const factsOf = (managed: ManagedConnection) => facts.get(managed) as ConnectionFacts
  const backoff = createReconnectBackoff(clock, { restarts: stdio ? config.restarts : undefined })
  let open = 0
  let closed = false

  // What the server was found to do.
  /** Whether all its messages share one stream, which does not show which call they belong to. */
  const isOneStream = () => (pool.latest?.connection.transport.kind ?? config.transport) !== 'http'
  /** Whether the stateless server was found to offer no sessions. It may be replaced when a connection to it ends. */
  let sessionless = false
  /** Whether the server has sent messages for a caller outside the streams of that caller's calls. */
  let speaksOutOfStream = false
  /** Whether the server has asked a caller without a session for its roots. */
  let wantsRoots = false
  /** Whether calls to each known tool send requests or log messages before the result. */
  const habits = new Map<string, ToolMessaging>()
  const rootsOf = createRootsOf()

  const pool: ConnectionPool & PoolState = {
    get connected() {
      return open > 0
    },
    get opening() {
      return all().some((managed) => managed.opening)
    },
    get failure() {
      return backoff.failure
    },
    get pauseMs() {
      return backoff.pauseMs
    },
    get all() {
      return all()
    },
    personal,
    lost: undefined,
    latest: undefined,
    breaks: 0,
    async interrupt(error) {
      if (open > 0) pool.breaks++
      pool.lost = undefined
      await Promise.all(all().map((managed) => managed.interrupt(error)))
      sessionless = false
      backoff.reset()
    },
    use,
    forCaller: (caller) => connectionOf(caller, caller.peer),
    forListing(capabilities) {
      const isOwn = config.session === 'call' || needsOwn(capabilities)
      return stateless ?? (isOwn ? warmPool.peek(capabilities) : sharedConnection(capabilities))
    },
    notifyServer(session, method) {
      for (const [, { current }] of ofSession(session)) current?.connection.notify(method).catch(() => {})
    },
    sessionEnded(session) {
      for (const [key, managed] of ofSession(session)) owned.drop(key, managed)
      for (const managed of all()) managed.sessions.delete(session)
    },
    current(capabilities) {
      const all = [...shared.values(), ...owned.values(), ...warmPool.all]
      const common = listing(all, capabilities).filter((open) => !isStateful(open))
      return stateless?.current ?? common.find(({ handshake }) => handshake.era === 'modern') ?? common[0]
    },
    stateful: (capabilities) => listing(owned.values(), capabilities).filter(isStateful),
    callerOf(open) {
      const managed = [...owned.values()].find(({ current }) => current === open)
      return managed && factsOf(managed).owner?.caller
    },
    describe(limit) {
      const open = all().filter(({ current }) => current)
      return open.slice(0, limit).map(describe)
    },
    async [Symbol.asyncDispose]() {
      closed = true
      await Promise.all(all().map((managed) => managed[Symbol.asyncDispose]()))
    },
  }
  return pool

  /** The open connections whose lists clients with these capabilities may see. */
  function listing(connections: Iterable<ManagedConnection>, capabilities: Capabilities): InitializedConnection[] {
    const profile = profileOf(capabilities)
    const same = [...connections].filter((managed) => factsOf(managed).profile === profile)
    return same.flatMap(({ current }) => (current && current.principal === undefined ? [current] : []))
  }

  function all(): ManagedConnection[] {
    return [...new Set([...shared.values(), ...owned.values(), ...shortLived, ...warmPool.all])]
  }

  function ofSession(session: string): [string, ManagedConnection][] {
    return [...owned].filter(([, managed]) => factsOf(managed).owner?.caller?.session === session)
  }

  function describe(managed: ManagedConnection): ConnectionState {
    const isShared = managed === stateless || [...shared.values()].includes(managed)
    const ownScope = [...owned.values()].includes(managed) ? 'session' : 'spare'
    const scope = isShared ? 'shared' : shortLived.has(managed) ? 'call' : ownScope
    return stateOf(managed, scope, factsOf(managed).owner?.caller?.principal)
  }

  // Using a connection.
  function use<T>(user: ConnectionUser, work: Work<T>): Promise<T> {
    if (config.session === 'call') return useOnce(user, work)
    if (needsRoots(user)) return useRooted(user, work)
    return useConnection(connectionOf(user.caller, user.peer), user, work)
  }

  async function useConnection<T>(managed: ManagedConnection, user: ConnectionUser, work: Work<T>, rooted = false) {
    const { peer, signal } = user
    const { owner } = factsOf(managed)
    const logged = (open: InitializedConnection) => {
      open.connection.isUsed = true
      return peer.logLevel ? requestLogLevel(open, peer.logLevel, signal).then(() => work(open)) : work(open)
    }
    const settled = async (open: InitializedConnection, { greeting }: ConnectionOwner) => {
      if (greeting) await waitFor(greeting, signal)
      if (!rooted && needsRoots(user)) return useRooted(user, work)
      if (owner?.rooting) await waitForRoots(owner.rooting, clock, user)
      return logged(open)
    }
    const prepared = (open: InitializedConnection) => {
      const { connection } = open
      if (connection.owned && (isOneStream() || speaksOutOfStream)) {
        connection.turns ??= createCallTurns(clock, habits, {
          strict: peer.rounds,
          caughtUp: () => caughtUp(open, clock),
        })
      }
      const settling = owner?.greeting || owner?.rooting || (!rooted && needsRoots(user))
      return owner && settling ? settled(open, owner) : logged(open)
    }
    owner?.users.add(user)
    try {
      return await managed.use(prepared, signal)
    } finally {
      owner?.users.delete(user)
    }
  }

  /** Uses a connection whose server was given this call's roots. */
  async function useRooted<T>(user: ConnectionUser, work: Work<T>): Promise<T> {
    const { caller, peer, signal } = user
    const roots = await rootsOf(peer, signal)
    const managed = roots ? rootedConnection(caller, roots) : connectionOf(caller, peer)
    return useConnection(managed, user, work, true)
  }

  /**
   * Whether the choice of connection for a call depends on its roots. A caller without a session may be several
   * programs with different roots.
   */
  function needsRoots({ caller, peer }: ConnectionUser): boolean {
    return wantsRoots && !stateless && !caller.peer && peer.rounds && caller.capabilities.roots !== undefined
  }

  function rootedConnection(caller: Caller, roots: Json): ManagedConnection {
    const key = `${clientKey(caller)} ${rootsKey(roots)}`
    const first = owned.get(clientKey(caller))
    const free = first && factsOf(first).owner?.roots === undefined ? first : undefined
    const known = owned.get(key)
    const managed = known ?? free ?? newOwned(caller)
    if (known) owned.keep(key, known)
    else bind(managed, key, roots)
    return managed
  }

  async function useOnce<T>(user: ConnectionUser, work: Work<T>): Promise<T> {
    const managed = newConnection(user.caller)
    shortLived.add(managed)
    try {
      return await useConnection(managed, user, work)
    } finally {
      if (managed !== stateless) end(managed)
      else shortLived.delete(managed)
    }
  }

  // Choosing a connection.
  /** Chooses a caller's connection. All of the caller's calls use it, so that they see the same server state (V3). */
  function connectionOf(caller: Caller, peer: Peer | undefined): ManagedConnection {
    const managed = chosenFor(caller, peer)
    if (caller.peer) managed.sessions.add(caller.session)
    return managed
  }

  function chosenFor(caller: Caller, peer: Peer | undefined): ManagedConnection {
    const { capabilities, session } = caller
    const own = owned.size > 0 ? (owned.get(clientKey(caller)) ?? lastRooted(caller)) : undefined
    const logs = wantsLogs(peer)
    if (own && factsOf(own).owner?.roots) return own
    if (own || (needsOwn(capabilities) && (!stateless || prefersSession(caller)))) return ownConnection(caller, logs)
    // A session that has used the shared connection stays on it, because the server may hold the session's state there.
    if (logs && !(stateless ?? shared.get(profileOf(capabilities)))?.sessions.has(session))
      return ownConnection(caller, logs)
    return stateless ?? sharedConnection(capabilities)
  }

  /** The caller's last used connection with roots, for requests without roots of their own, such as subscriptions. */
  function lastRooted(caller: Caller): ManagedConnection | undefined {
    if (!wantsRoots || caller.capabilities.roots === undefined) return undefined
    const prefix = `${clientKey(caller)} `
    return [...owned].findLast(([key]) => key.startsWith(prefix))?.[1]
  }

  /** Whether this caller wants log messages that only a separate connection can attribute to it. */
  function wantsLogs(peer: Peer | undefined): boolean {
    if (peer?.logLevel === undefined || !options.mayLog()) return false
    return isOneStream() || (stateless?.current ?? pool.latest)?.handshake.era !== 'modern'
  }

  /**
   * Whether a client needs its own connection. If the server can send requests to the client, only a separate
   * connection shows which client a request is for, because other clients' calls, even cancelled ones, can also
   * trigger requests.
   */
  function needsOwn(capabilities: Capabilities): boolean {
    return config.session === 'caller' || personal || canBeAsked(capabilities)
  }

  /**
   * Whether to open a session for a client although the server may support the stateless protocol too: many such servers
   * can ask their client and keep its state only in a session, which is what the client would get without a gateway.
   */
  function prefersSession({ peer, capabilities }: Caller): boolean {
    const mayChoose = config.transport !== 'sse' && config.era === 'auto' && !sessionless
    return mayChoose && peer !== undefined && needsOwn(capabilities)
  }

  function sharedConnection(capabilities: Capabilities): ManagedConnection {
    const profile = profileOf(capabilities)
    const managed = shared.get(profile) ?? create({ capabilities, owned: false })
    shared.keep(profile, managed)
    return managed
  }

  function ownConnection(caller: Caller, logs: boolean): ManagedConnection {
    const key = clientKey(caller)
    const managed = owned.get(key) ?? newOwned(caller)
    owned.keep(key, managed)
    const { owner } = factsOf(managed)
    if (!owner) return managed
    owner.receivesLogs ||= logs
    owner.caller = caller
    owner.key = caller.peer ? undefined : key
    return managed
  }

  // Creating and closing connections.
  /** Opens a connection for one client. Throws OVERLOADED if its caller has its share, and uses all of it. */
  function newOwned(caller: Caller): ManagedConnection {
    const share = maxOwned[config.transport] / 4
    const isOwn = (managed: ManagedConnection) => factsOf(managed).owner?.caller?.principal === caller.principal
    if (hasShare(caller) && !owned.hasRoom(share, isOwn)) {
      const sentence = `You have reached the limit of ${share} connections to ${server} per caller: end some of your sessions.`
      throw new ToolwayError('OVERLOADED', sentence, { server })
    }
    const managed = newConnection(caller)
    const { owner } = factsOf(managed)
    if (owner) owner.caller = caller
    return managed
  }

  function newConnection(caller: Caller): ManagedConnection {
    const { capabilities, principal } = caller
    const prefers = prefersSession(caller)
    if (personal) return createOwned(capabilities, prefers, principal)
    const managed = warmPool.take(capabilities, prefers)
    factsOf(managed).prefersSession ||= prefers
    return managed
  }

  function createOwned(capabilities: Capabilities, prefers = false, principal?: string): ManagedConnection {
    const owner: ConnectionOwner = { users: new Set(), rooted: Promise.withResolvers() }
    const scope: ConnectionScope = {
      ...{ capabilities, owned: true, principal },
      host: createHost(owner, options.mayReach),
      roots([first]) {
        if (!first || owner.key === undefined) return undefined
        wantsRoots = true
        return rootsProvider(owner, first, rootsOf, (roots) => bind(managed, `${owner.key} ${rootsKey(roots)}`, roots))
      },
      onRoots(answered) {
        if (managed.current) managed.current.connection.isUsed = true
        beginRootsWait(owner, answered, () => managed.current?.connection, clock)
      },
    }
    const managed = create(scope, owner, prefers)
    return managed
  }

  function bind(managed: ManagedConnection, key: string, roots: Json): void {
    const { owner } = factsOf(managed)
    if (!owner) return
    if (owner.key !== undefined && owned.get(owner.key) === managed) owned.delete(owner.key)
    owner.key = key
    owner.roots = roots
    owner.rooted.resolve(roots)
    owned.keep(key, managed)
  }

  /** Closes a connection. Closing takes a while, so the pool waits for it on disposal. */
  function end(managed: ManagedConnection): void {
    shortLived.add(managed)
    void managed[Symbol.asyncDispose]().then(() => shortLived.delete(managed))
  }

  function create(scope: ConnectionScope, owner?: ConnectionOwner, prefersSession = false): ManagedConnection {
    if (closed) throw unsentError(server, `Toolway is closing its connections to ${server}.`)
    /** Whether the latest attempt to connect preferred a session. */
    let preferred = false
    const managed: ManagedConnection = createManagedConnection({
      server,
      connect(signal) {
        preferred = factsOf(managed).prefersSession && !sessionless && managed !== stateless
        return options.connect({ ...scope, prefersSession: preferred }, signal)
      },
      backoff,
      connectWithinMs: config.startTimeout ?? connectWithinMs(config.transport),
      idleMs: stdio && config.idle > 0 ? config.idle : undefined,
      awaitStart: options.awaitStart,
      opening: options.opening,
      opened(opened) {
        open++
        pool.lost = undefined
        opened.connection.onOutOfStream = () => {
          speaksOutOfStream = true
        }
        awaitRoots(opened, scope.capabilities, factsOf(managed).owner, clock)
        const modern = opened.handshake.era === 'modern'
        if (modern && preferred && !opened.mayOfferSession) sessionless = true
        if (modern && config.session === 'shared' && !personal && !stateless && !factsOf(managed).owner?.receivesLogs)
          adopt(managed)
        if (managed === stateless) opened.connection.owned = false
        if (managed === stateless && !modern) disown(managed)
        // A session beside the stateless protocol says nothing about other connections.
        const isBeside = !modern && preferred && pool.latest?.handshake.era === 'modern'
        if (!isBeside) pool.latest = opened
        options.opened(opened, scope.capabilities, managed)
      },
      closed(error) {
        open--
        if (error) pool.lost = error
        if (managed === stateless) sessionless = false
        options.closed(managed, error)
      },
      failed: options.failed,
      broke(open, error) {
        pool.breaks++
        sessionless = false
        options.broke?.(open, error)
      },
      idle: options.idle,
      clock,
      log,
    })
    facts.set(managed, { profile: profileOf(scope.capabilities), owner, prefersSession })
    return managed
  }

  /** Stops sharing one connection among all callers, because the server has gone back to the session-based protocol. */
  function disown(managed: ManagedConnection): void {
    stateless = undefined
    sessionless = false
    shared.delete('stateless')
    // One that was opened for all clients with the same capabilities continues as theirs.
    if (![...shared.values()].includes(managed)) end(managed)
  }

  /** Shares this connection among all callers, so that neither its first caller nor the warm pool owns it. */
  function adopt(managed: ManagedConnection): void {
    stateless = managed
    shared.set('stateless', managed)
    factsOf(managed).owner = undefined
    warmPool.forget(managed)
    for (const [key, candidate] of owned) if (candidate === managed) owned.delete(key)
  }
}
