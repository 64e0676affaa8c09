import type { ServerConfig } from '../../config/schema.ts'
import { type Caller, type Capabilities, clientKey, hasShare, type Peer } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { never } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Json } from '../../json/json.ts'
import { CallTurns, type ToolMessaging } from '../requests/call-turns.ts'
import { unsentError } from '../transports/transport-errors.ts'
import { type Connector, connectWithinMs } from './connect.ts'
import { type InitializedConnection, isStateful, requestLogLevel } from './handshake.ts'
import type { ConnectionEvents, ConnectionSettings, ManagedConnection } from './managed-connection.ts'
import {
  type CallerUse,
  type ConnectionState,
  ConnectionTable,
  caughtUp,
  createRootsOf,
  PooledConnection,
  rootsKey,
  statelessKey,
} from './pooled-connection.ts'
import { ReconnectBackoff } from './reconnect.ts'
import {
  type ClientScope,
  type ConnectionFacts,
  chooseScope,
  dependsOnRoots,
  needsOwnConnection,
  prefersSession,
  sharedKey,
} from './scope.ts'

export interface ConnectionPoolOptions {
  readonly server: string
  readonly config: ServerConfig
  readonly connect: Connector
  /** Whether the server may send log messages. */
  mayLog(): boolean
  /** Whether the server may send messages to this caller's client outside any call. */
  mayReach(caller: Caller): boolean
  readonly events: PoolEvents
  readonly clock: Clock
  readonly log: Log
}

export interface PoolEvents extends Pick<ConnectionEvents, 'awaitStart' | 'opening' | 'failed' | 'broke' | 'idle'> {
  opened(open: InitializedConnection, capabilities: Capabilities, managed: ManagedConnection): void
  closed(managed: ManagedConnection): void
  /** Whether to reconnect in the background while the server is down; never, if not given. */
  isWanted?(): boolean
}

/**
 * Maximum number of connections with a single client each, and of spares. A quarter is the bound for one caller, whose
 * clients or sessions might otherwise take over a server.
 */
const maxOwned = { stdio: 256, http: 4_096, sse: 4_096 } as const
/** The minimum pause before an attempt in the background. Jitter may reduce the pause for callers to zero. */
const minReconnectMs = 500

type PoolWork<T> = (open: InitializedConnection) => Promise<T>

interface PoolUse<T> {
  readonly managed: PooledConnection
  readonly user: CallerUse
  readonly work: PoolWork<T>
  /** Whether the server of the connection was given the call's roots. */
  readonly rooted: boolean
}

/** All connections to one server. Chooses which connection each caller uses (G3). */
export class ConnectionPool implements AsyncDisposable {
  /** Why the last connection broke; cleared when one opens. */
  lost: ToolwayError | undefined
  latest: InitializedConnection | undefined
  /** How many times a connection broke, was abandoned, or was closed by `interrupt`. */
  breaks = 0
  readonly #options: ConnectionPoolOptions
  readonly #settings: ConnectionSettings
  readonly #connections = new ConnectionTable()
  readonly #facts: ConnectionFacts
  /** Whether calls to each known tool send requests or log messages before the result. */
  readonly #messaging = new Map<string, ToolMessaging>()
  readonly #rootsOf = createRootsOf()
  /** Whether the server has sent messages for a caller outside the streams of that caller's calls. */
  #sendsOutOfStream = false
  #open = 0
  #lastSpare = 0
  #isClosed = false
  /** Set while the next attempt to reconnect in the background is due. */
  #reconnection: Disposable | undefined

  constructor(options: ConnectionPoolOptions) {
    const { server, config, clock, log } = options
    const isStdio = config.transport === 'stdio'
    this.#options = options
    this.#settings = {
      server,
      backoff: new ReconnectBackoff(clock, { restarts: isStdio ? config.restarts : undefined }),
      connectWithinMs: config.startTimeout ?? connectWithinMs(config.transport),
      idleMs: isStdio && config.idle > 0 ? config.idle : undefined,
      clock,
      log,
    }
    this.#facts = {
      config,
      connections: this.#connections.byKey,
      personal: !isStdio && config.auth?.type === 'oauth' && config.auth.perPrincipal,
      sessionless: false,
      hasOwners: false,
      wantsRoots: false,
      logsForAnyCall: () => this.#logsForAnyCall(),
    }
  }

  get connected(): boolean {
    return this.#open > 0
  }

  get opening(): boolean {
    return this.all.some((managed) => managed.opening)
  }

  /** Whether each principal has its own credential, so that connections are never shared. */
  get personal(): boolean {
    return this.#facts.personal
  }

  /** Why no connection could be opened; cleared when one opens. */
  get failure(): ToolwayError | undefined {
    return this.#settings.backoff.failure
  }

  /** Milliseconds until the next attempt to reach a server that is down. */
  get pauseMs(): number {
    return this.#settings.backoff.pauseMs
  }

  get all(): readonly PooledConnection[] {
    return this.#connections.all
  }

  /** Closes all connections; the next use reconnects, regardless of earlier failures. */
  async interrupt(error: ToolwayError): Promise<void> {
    if (this.#open > 0) this.breaks++
    this.lost = undefined
    await Promise.all(this.all.map((managed) => managed.interrupt(error)))
    this.#facts.sessionless = false
    this.#settings.backoff.reset()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    this.#reconnection?.[Symbol.dispose]()
    await Promise.all(this.all.map((managed) => managed[Symbol.asyncDispose]()))
  }

  use<T>(user: CallerUse, work: PoolWork<T>): Promise<T> {
    if (this.#facts.wantsRoots && dependsOnRoots(user, this.#facts)) return this.#useWithRoots(user, work)
    return this.#useConnection(this.#connectionFor(user.caller, user.peer), user, work)
  }

  /** The connection for this caller's calls. Must not be used for servers with `session: call`. */
  forCaller(caller: Caller): ManagedConnection {
    return this.#connectionFor(caller, caller.peer)
  }

  /** A connection for fetching the listing that clients with these capabilities see. */
  forListing(capabilities: Capabilities): ManagedConnection {
    const stateless = this.#connections.stateless
    if (stateless) return stateless
    if (!needsOwnConnection(capabilities, this.#facts)) return this.#openShared(capabilities)
    const spares = this.#connections.sparesFor(capabilities)
    return spares.find(({ prefersSession }) => !prefersSession) ?? this.#openSpare(capabilities)
  }

  /** An open connection that lists the same for all clients with these capabilities, if there is one. */
  current(capabilities: Capabilities): InitializedConnection | undefined {
    const stateless = this.#connections.stateless?.current
    if (stateless) return stateless
    const common = this.#connections.listingFor(capabilities).filter((open) => !isStateful(open))
    return common.find(({ handshake }) => handshake.era === 'modern') ?? common[0]
  }

  /** The open connections with the state of one client each, of clients with these capabilities, oldest first. */
  stateful(capabilities: Capabilities): readonly InitializedConnection[] {
    return this.#connections.listingFor(capabilities).filter(isStateful)
  }

  /** The caller whose connection this is; undefined if it belongs to no caller. */
  callerOf(open: InitializedConnection): Caller | undefined {
    return [...this.#connections.byKey.values()].find(({ current }) => current === open)?.caller
  }

  /** Sends a notification on the connections that only this session uses, whichever agents it acts as. */
  notifyServer(session: string, method: string): void {
    for (const { current } of this.#connections.ofSession(session)) current?.connection.notify(method).catch(() => {})
  }

  sessionEnded(session: string): void {
    for (const managed of this.#connections.ofSession(session)) this.#connections.end(managed)
    for (const managed of this.all) managed.sessions.delete(session)
  }

  /** The open connections, at most `limit`. */
  describe(limit: number): readonly ConnectionState[] {
    return this.#connections.describe(limit)
  }

  /** Whether all messages from the server share one stream, which does not show which call they belong to. */
  #isOneStream(): boolean {
    return (this.latest?.connection.transport.kind ?? this.#options.config.transport) !== 'http'
  }

  #logsForAnyCall(): boolean {
    if (!this.#options.mayLog()) return false
    const open = this.#connections.stateless?.current ?? this.latest
    return this.#isOneStream() || open?.handshake.era !== 'modern'
  }

  // Using a connection.
  #useConnection<T>(managed: PooledConnection, user: CallerUse, work: PoolWork<T>, rooted = false): Promise<T> {
    const used = managed.use(user, (open) => this.#begin(open, { managed, user, work, rooted }))
    return managed.scope === 'call' ? used.finally(() => this.#connections.end(managed)) : used
  }

  #begin<T>(open: InitializedConnection, use: PoolUse<T>): Promise<T> {
    const { managed, user, work } = use
    const { connection } = open
    if (connection.owned && (this.#isOneStream() || this.#sendsOutOfStream)) {
      const { clock } = this.#settings
      connection.turns ??= new CallTurns(clock, this.#messaging, {
        strict: user.peer.rounds,
        caughtUp: () => caughtUp(open, clock),
      })
    }
    if (managed.scope !== 'shared' && (managed.isSettling || this.#needsRoots(use))) return this.#settle(open, use)
    const { logLevel } = user.peer
    connection.isUsed = true
    return logLevel ? requestLogLevel(open, logLevel, user.signal).then(() => work(open)) : work(open)
  }

  async #settle<T>(open: InitializedConnection, use: PoolUse<T>): Promise<T> {
    const { managed, user, work } = use
    await managed.greeted(user.signal)
    if (this.#needsRoots(use)) return this.#useWithRoots(user, work)
    await managed.rooted(user)
    open.connection.isUsed = true
    if (user.peer.logLevel) await requestLogLevel(open, user.peer.logLevel, user.signal)
    return work(open)
  }

  #needsRoots({ user, rooted }: PoolUse<unknown>): boolean {
    return !rooted && dependsOnRoots(user, this.#facts)
  }

  /** Uses a connection whose server was given this call's roots. */
  async #useWithRoots<T>(user: CallerUse, work: PoolWork<T>): Promise<T> {
    const { caller, peer, signal } = user
    const roots = await this.#rootsOf(peer, signal)
    const managed = roots ? this.#withRoots(caller, roots) : this.#connectionFor(caller, peer)
    return this.#useConnection(managed, user, work, true)
  }

  // Choosing a connection.
  #connectionFor(caller: Caller, peer: Peer | undefined): PooledConnection {
    const scope = chooseScope(caller, peer, this.#facts)
    const managed = this.#connections.byKey.get(scope.key) ?? this.#openScope(scope, caller)
    if (scope.kind === 'own' && !managed.roots) {
      managed.caller = caller
      managed.receivesLogs ||= scope.logs === true
    }
    if (caller.peer) managed.sessions.add(caller.session)
    return managed
  }

  #openScope({ kind, key }: ClientScope, caller: Caller): PooledConnection {
    if (kind === 'shared') return this.#openShared(caller.capabilities, key)
    if (kind === 'own') return this.#openOwn(caller)
    const managed = this.#take(caller, 'call')
    this.#connections.unlist(managed)
    this.#fillSpares(caller)
    return managed
  }

  #withRoots(caller: Caller, roots: Json): PooledConnection {
    const own = clientKey(caller)
    const known = this.#connections.byKey.get(`${own} ${rootsKey(roots)}`)
    if (known) return known
    const managed = this.#connections.byKey.get(own) ?? this.#openOwn(caller)
    this.#bind(managed, caller, roots)
    return managed
  }

  #bind(managed: PooledConnection, caller: Caller, roots: Json): void {
    managed.bindRoots(roots)
    this.#connections.list(managed, `${clientKey(caller)} ${rootsKey(roots)}`)
  }

  #openShared(capabilities: Capabilities, key = sharedKey(capabilities)): PooledConnection {
    const known = this.#connections.byKey.get(key)
    if (known) return known
    const managed = this.#create('shared', capabilities)
    this.#connections.list(managed, key)
    return managed
  }

  /** Opens a connection for one client. Throws OVERLOADED if its caller has its share, and uses all of it. */
  #openOwn(caller: Caller): PooledConnection {
    const { server, config } = this.#options
    const max = maxOwned[config.transport]
    const own = this.#connections.owned.filter((one) => one.caller?.principal === caller.principal)
    if (hasShare(caller) && own.length >= max / 4 && !this.#connections.endUnused(own)) {
      const sentence = `You have reached the limit of ${max / 4} connections to ${server} per caller: end some of your sessions.`
      throw new ToolwayError('OVERLOADED', sentence, { server })
    }
    const managed = this.#take(caller, 'session')
    managed.caller = caller
    this.#facts.hasOwners = true
    this.#connections.list(managed, clientKey(caller))
    const owned = this.#connections.owned
    if (owned.length > max) this.#connections.endUnused(owned.filter((other) => other !== managed))
    this.#fillSpares(caller)
    return managed
  }

  // Spares: open connections in reserve, so that callers that need their own do not have to wait.
  /** A connection for one client: a spare that suits it, or a new one. */
  #take(caller: Caller, scope: 'session' | 'call'): PooledConnection {
    const { capabilities, principal } = caller
    const { personal } = this.#facts
    const prefers = prefersSession(caller, this.#facts)
    // Skip connections that are in use, and those whose server asked for roots before there was a caller.
    const isFree = ({ busy, current }: PooledConnection) => !busy && !current?.connection.hadUnroutableRequest
    const spares = personal ? [] : this.#connections.sparesFor(capabilities)
    const spare = spares.find((one) => isFree(one) && suits(one, prefers))
    const managed = spare ?? this.#create(scope, capabilities, personal ? principal : undefined)
    managed.scope = scope
    managed.prefersSession ||= prefers
    return managed
  }

  #fillSpares(caller: Caller): void {
    const { config } = this.#options
    if (config.session === 'shared' || this.#facts.personal) return
    const { capabilities } = caller
    const prefers = prefersSession(caller, this.#facts)
    const spares = this.#connections.sparesFor(capabilities)
    const forSessions = prefers && spares.some(({ current }) => current?.handshake.era === 'modern')
    const missing = config.spares - spares.filter((spare) => suits(spare, prefers) || spare.opening).length
    const room = maxOwned[config.transport] - this.#connections.owned.length
    for (let spare = 0; spare < Math.min(missing, room); spare++)
      // Ignore a failure: when a caller takes this connection, another attempt is made.
      this.#openSpare(capabilities, forSessions)
        .open(never)
        .catch(() => {})
  }

  #openSpare(capabilities: Capabilities, forSessions = false): PooledConnection {
    const managed = this.#create('spare', capabilities)
    managed.prefersSession = forSessions
    this.#connections.list(managed, `spare ${++this.#lastSpare}`)
    return managed
  }

  // Creating and closing connections.
  #create(scope: PooledConnection['scope'], capabilities: Capabilities, principal?: string): PooledConnection {
    const { server } = this.#settings
    const { events } = this.#options
    if (this.#isClosed) throw unsentError(server, `Toolway is closing its connections to ${server}.`)
    const managed: PooledConnection = new PooledConnection({ scope, capabilities, principal }, this.#settings, {
      ...events,
      connect: (signal) => this.#connect(managed, signal),
      opened: (open) => this.#opened(managed, open),
      closed: (error) => {
        this.#open--
        if (error) this.lost = error
        if (managed.key === statelessKey) this.#facts.sessionless = false
        events.closed(managed)
      },
      failed: (error) => {
        events.failed(error)
        this.#reconnectLater()
      },
      broke: (open, error) => {
        this.breaks++
        this.#facts.sessionless = false
        events.broke?.(open, error)
      },
    })
    return managed
  }

  /** Keeps trying, in the background, to reconnect to a server that is down (T5). */
  #reconnectLater(): void {
    const { clock } = this.#settings
    this.#reconnection?.[Symbol.dispose]()
    if (this.#isClosed || !this.#options.events.isWanted) return
    this.#reconnection = clock.after(Math.max(this.pauseMs, minReconnectMs), () => this.#reconnect())
  }

  #reconnect(): void {
    this.#reconnection = undefined
    // Stop if the server has been reached in the meantime or is not in use; the next call tries again.
    if (!this.failure || !this.#options.events.isWanted?.()) return
    if (this.pauseMs > 0) this.#reconnectLater()
    // If another attempt is under way, `open` waits for its outcome.
    else
      this.forListing({})
        .open(never)
        .catch(() => {
          if (!this.#reconnection && this.failure) this.#reconnectLater()
        })
  }

  #connect(managed: PooledConnection, signal: AbortSignal): Promise<InitializedConnection> {
    const { capabilities, principal } = managed
    const { connect, mayReach } = this.#options
    const owned = managed.scope !== 'shared'
    managed.triedSession = managed.prefersSession && !this.#facts.sessionless && managed.key !== statelessKey
    const scope = { capabilities, owned, principal, prefersSession: managed.triedSession }
    if (!owned) return connect(scope, signal)
    return connect(
      {
        ...scope,
        host: managed.routes(mayReach),
        roots: ([first]) => {
          const { caller } = managed
          if (!first || !caller || caller.peer) return undefined
          this.#facts.wantsRoots = true
          return managed.rootsProvider(first, this.#rootsOf, (roots) => this.#bind(managed, caller, roots))
        },
        onRoots: (answered) => {
          if (managed.current) managed.current.connection.isUsed = true
          managed.beginRootsWait(answered)
        },
      },
      signal,
    )
  }

  #opened(managed: PooledConnection, open: InitializedConnection): void {
    const preferred = managed.triedSession
    const { config, events } = this.#options
    this.#open++
    this.lost = undefined
    open.connection.onOutOfStream = () => {
      this.#sendsOutOfStream = true
    }
    managed.greet(open)
    const isModern = open.handshake.era === 'modern'
    if (isModern && preferred && !open.mayOfferSession) this.#facts.sessionless = true
    const mayShare = config.session === 'shared' && !this.#facts.personal && !managed.receivesLogs
    if (isModern && mayShare && !this.#connections.stateless) this.#share(managed, statelessKey)
    if (managed.key === statelessKey) open.connection.owned = false
    if (managed.key === statelessKey && !isModern) this.#becomeStateful(managed)
    // A session beside the stateless protocol says nothing about other connections.
    const isBeside = !isModern && preferred && this.latest?.handshake.era === 'modern'
    if (!isBeside) this.latest = open
    events.opened(open, managed.capabilities, managed)
  }

  /** Shares a connection, so that neither its first caller nor the spares own it. */
  #share(managed: PooledConnection, key: string): void {
    managed.scope = 'shared'
    managed.caller = undefined
    this.#connections.list(managed, key)
  }

  /**
   * Stops sharing one connection among all callers, because the server has gone back to the session-based protocol. It
   * continues as the connection of clients that need none of their own.
   */
  #becomeStateful(managed: PooledConnection): void {
    this.#facts.sessionless = false
    if (needsOwnConnection(managed.capabilities, this.#facts)) this.#connections.end(managed)
    else this.#share(managed, sharedKey(managed.capabilities))
  }
}

/** Whether a spare suits a caller that prefers a session, or one that does not. */
function suits({ prefersSession, current, opening }: PooledConnection, prefers: boolean): boolean {
  if (!prefers) return !prefersSession || current?.handshake.era === 'modern'
  // One that is not open yet opens as its caller prefers.
  return current ? current.handshake.era === 'legacy' : prefersSession || !opening
}
