import { hash } from 'node:crypto'
import {
  type Call,
  type Caller,
  type Capabilities,
  listProfile,
  type Peer,
  profileOf,
  wrapPeer,
} from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline, endWith, pause, settles } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../json/json.ts'
import { encodeRequest } from '../requests/encode-request.ts'
import type { InitializedConnection } from './handshake.ts'
import { type ConnectionEvents, type ConnectionSettings, ManagedConnection } from './managed-connection.ts'
import type { RpcConnection } from './rpc-connection.ts'

/** The part of a call that selects its connection. */
export interface CallerUse extends Pick<Call, 'caller' | 'peer' | 'signal'> {
  /** Called when the call waits for something other than the server to start. */
  waitsFor?(what: string): void
}

/** The connection to a stateless server, which all callers share, because each request describes its client. */
export const statelessKey = 'stateless'

/** How long calls wait for a client that declared roots but does not provide them. */
const rootsWithinMs = 5_000
/** How many pings give a server time to apply its roots; servers do not report when they have applied them. */
const applyPings = 5
const applyPauseMs = 50

interface RootsWait {
  /** Resolves when the server has had time to apply its roots, or was not given any. */
  readonly applied: Promise<void>
  /** Resolves then, or a while after the first call began to wait. */
  over?: Promise<void>
}

/**
 * What a connection is for. Its scope is callers of a kind, one caller, one call, or nobody yet (`spare`). The principal
 * is set if its credential is that of one principal.
 */
interface ConnectionPurpose {
  scope: 'shared' | 'session' | 'call' | 'spare'
  readonly capabilities: Capabilities
  readonly principal: string | undefined
}

/** A connection of a pool, and its clients: all of a kind, or only one. Knows the state of the roots of that one. */
export class PooledConnection extends ManagedConnection {
  scope: ConnectionPurpose['scope']
  readonly capabilities: Capabilities
  readonly profile: number
  readonly principal: string | undefined
  /** The key of the connection in the pool. */
  key = ''
  prefersSession = false
  /** Whether the latest attempt to connect preferred a session. */
  triedSession = false
  /** The caller whose connection it is, as in its last call; undefined until there is one. */
  caller: Caller | undefined
  /** Whether that caller receives all log messages that arrive on the connection. */
  receivesLogs = false
  readonly #clock: Clock
  #roots: Json | undefined
  readonly #bound = Promise.withResolvers<Json>()
  /** Resolves when the server has had time to ask for roots. */
  #greeting: Promise<void> | undefined
  /** Set while calls wait because the server has asked for roots. */
  #rootsWait: RootsWait | undefined

  constructor(
    { scope, capabilities, principal }: ConnectionPurpose,
    settings: ConnectionSettings,
    events: ConnectionEvents,
  ) {
    super(settings, events)
    this.scope = scope
    this.capabilities = capabilities
    this.profile = listProfile(capabilities)
    this.principal = principal
    this.#clock = settings.clock
  }

  /** The roots that the server was given, if the connection is for calls with these roots only. */
  get roots(): Json | undefined {
    return this.#roots
  }

  bindRoots(roots: Json): void {
    this.#roots = roots
    this.#bound.resolve(roots)
  }

  /**
   * The routes to the client: through its calls, and outside any call through its session, unless the policy now denies
   * the server to the caller (`mayReach`). An answer from the session that arrives after such a change reaches the server
   * only if it may be for a call that is still running.
   */
  routes(mayReach: (caller: Caller) => boolean) {
    const isReachable = () => this.caller?.peer !== undefined && mayReach(this.caller)
    const level = () => this.caller?.peer?.logLevel
    const session: Peer = {
      rounds: false,
      get logLevel() {
        return level()
      },
      notify: (method, params) => this.caller?.peer?.notify(method, params),
      ask: async (method, params, signal) => {
        const answer = await this.caller?.peer?.ask(method, params, signal)
        if (answer && (this.inUse || isReachable())) return answer
        throw new ToolwayError('DENIED_BY_POLICY', 'The caller whose client was asked may no longer use this server.')
      },
    }
    return () => ({
      calls: [...this.users.values()].flatMap(({ peer }) => peer ?? []),
      session: isReachable() ? [session] : [],
    })
  }

  /**
   * Answers roots requests for a caller without a session, with the roots that the call `first` provides. `bind` makes
   * the connection that of the caller's calls with these roots.
   */
  rootsProvider(first: Peer, rootsOf: ReturnType<typeof createRootsOf>, bind: (roots: Json) => void): Peer {
    const ask: Peer['ask'] = async (_, __, signal) => {
      if (this.#roots) return this.#roots
      const own = rootsOf(first, signal).catch((error) => {
        if (signal.aborted) throw error
        // If the call was cancelled, use the next call's roots.
        return this.#bound.promise
      })
      const roots = await Promise.race([own, this.#bound.promise])
      if (!roots) throw new ToolwayError('INVALID_ARGUMENTS', "The caller's client does not provide its roots.")
      if (!this.#roots) bind(roots)
      return roots
    }
    return wrapPeer(first, { ask })
  }

  /** Makes the first calls wait, because some servers request roots right after the handshake. */
  greet({ connection, handshake }: InitializedConnection): void {
    if (this.scope === 'shared' || this.capabilities.roots === undefined || handshake.era === 'modern') return
    // Do not wait over HTTP, where we cannot tell when the server has had time to ask.
    if (connection.transport.kind === 'http') return
    this.#greeting = pingOnce(connection, this.#clock).then(() => {
      this.#greeting = undefined
    })
  }

  /** Makes calls wait until the server has the roots that it asked for and has applied them. */
  beginRootsWait(answered: Promise<void>): void {
    const forget = () => this.#forgetRootsWait(wait)
    const wait: RootsWait = { applied: answered.then(() => this.#rootsApplied()).then(forget, forget) }
    this.#rootsWait = wait
  }

  #forgetRootsWait(wait: RootsWait): void {
    if (this.#rootsWait === wait) this.#rootsWait = undefined
  }

  get isSettling(): boolean {
    return this.#greeting !== undefined || this.#rootsWait !== undefined
  }

  /** Waits until the server has had time to ask for roots. */
  async greeted(signal: AbortSignal): Promise<void> {
    if (this.#greeting) await endWith(signal, this.#greeting)
  }

  /** Waits until the server has its roots. Gives up after a while, for all calls, if the client does not provide them. */
  async rooted(user: CallerUse): Promise<void> {
    const wait = this.#rootsWait
    if (!wait) return
    user.waitsFor?.("the client's roots")
    wait.over ??= settles(wait.applied, rootsWithinMs, this.#clock).then(() => this.#forgetRootsWait(wait))
    await endWith(user.signal, wait.over)
  }

  /** Gives a server time to apply its roots. A busy server responds to pings more slowly, so it gets more time. */
  async #rootsApplied(): Promise<void> {
    const connection = this.current?.connection
    for (let ping = 0; connection && ping < applyPings; ping++) {
      await pause(this.#clock, applyPauseMs)
      await pingOnce(connection, this.#clock)
    }
  }
}

export interface ConnectionState {
  readonly scope: PooledConnection['scope']
  readonly pid: number | undefined
  readonly openedAt: number | undefined
  /** The principal for which it was opened, if it has one. */
  readonly principal: string | undefined
  readonly sessions: number
  readonly inUse: boolean
}

/** The connections to a server by the key of their scope. Those for one call, and those that are closing, have none. */
export class ConnectionTable {
  readonly byKey = new Map<string, PooledConnection>()
  readonly #unlisted = new Set<PooledConnection>()

  get all(): readonly PooledConnection[] {
    return [...this.byKey.values(), ...this.#unlisted]
  }

  get stateless(): PooledConnection | undefined {
    return this.byKey.get(statelessKey)
  }

  /** The connections with one client each, and the spares. */
  get owned(): readonly PooledConnection[] {
    return this.#filter(({ scope }) => scope !== 'shared')
  }

  ofSession(session: string): readonly PooledConnection[] {
    return this.#filter(({ caller }) => caller?.session === session)
  }

  sparesFor(capabilities: Capabilities): readonly PooledConnection[] {
    const profile = profileOf(capabilities)
    return this.#filter((one) => one.scope === 'spare' && profileOf(one.capabilities) === profile)
  }

  /** The open connections whose lists clients with these capabilities may see. */
  listingFor(capabilities: Capabilities): readonly InitializedConnection[] {
    const profile = listProfile(capabilities)
    const same = this.#filter((one) => one.profile === profile)
    return same.flatMap(({ current }) => (current && current.principal === undefined ? [current] : []))
  }

  #filter(matches: (managed: PooledConnection) => boolean): PooledConnection[] {
    return [...this.byKey.values()].filter(matches)
  }

  /** Lists a connection under this key only. */
  list(managed: PooledConnection, key: string): void {
    if (this.byKey.get(managed.key) === managed) this.byKey.delete(managed.key)
    managed.key = key
    this.byKey.set(key, managed)
  }

  unlist(managed: PooledConnection): void {
    if (this.byKey.get(managed.key) === managed) this.byKey.delete(managed.key)
    this.#unlisted.add(managed)
  }

  /** Closes a connection. Closing takes a while, so the pool waits for it on disposal. */
  end(managed: PooledConnection): void {
    this.unlist(managed)
    void managed[Symbol.asyncDispose]().then(() => this.#unlisted.delete(managed))
  }

  /** Closes one of these that nobody uses: a spare, else the least recently used one, if possible without a session. */
  endUnused(connections: readonly PooledConnection[]): boolean {
    const rank = ({ scope, sessions }: PooledConnection) => (scope === 'spare' ? 0 : sessions.size === 0 ? 1 : 2)
    const unused = connections.filter((managed) => !managed.busy)
    const [least] = unused.sort((one, other) => rank(one) - rank(other) || one.lastUse - other.lastUse)
    if (least) this.end(least)
    return least !== undefined
  }

  /** The open connections, at most `limit`. */
  describe(limit: number): readonly ConnectionState[] {
    const open = this.all.filter(({ current }) => current)
    return open.slice(0, limit).map(({ scope, caller, current, openedAt, sessions, inUse }) => {
      const principal = caller?.principal ?? current?.principal
      const pid = current?.connection.transport.pid
      return { scope, pid, openedAt, principal, sessions: sessions.size, inUse }
    })
  }
}

/**
 * Returns a function that requests the roots for a call once and resolves with undefined if the client does not provide
 * them. It is for callers without a session: each of their calls may come from a different program with different
 * roots, while a server asks for roots once and keeps them. So the client is asked for its roots in every call, and the
 * call uses a connection whose server was given the same roots.
 */
export function createRootsOf(): (peer: Peer, signal: AbortSignal) => Promise<Json | undefined> {
  const requested = new WeakMap<Peer, Promise<Json | undefined>>()
  return (peer, signal) => {
    const known = requested.get(peer)
    if (known) return known
    const roots = peer.ask('roots/list', Json.of({}), signal).catch((thrown) => {
      // Rethrow if the call has ended, because it no longer needs a connection.
      if (signal.aborted || (thrown instanceof ToolwayError && thrown.code === 'CANCELLED')) throw thrown
      return undefined
    })
    requested.set(peer, roots)
    return roots
  }
}

export const rootsKey = (roots: Json): string =>
  hash('sha256', JSON.stringify((roots.value as { roots?: unknown }).roots ?? []), 'base64url').slice(0, 22)

/** How long to wait for a server that is busy or does not answer pings. */
const pingWithinMs = 1_000
const caughtUpWithinMs = 2_000

/**
 * Sends a ping and waits for the response. Servers send messages in order, so if the server requests roots right after
 * the handshake, that request has arrived by then.
 */
async function pingOnce(connection: RpcConnection, clock: Clock): Promise<void> {
  using limit = deadline(clock, pingWithinMs, () => new Error('no answer'))
  await connection.request({ method: 'ping', params: () => undefined, signal: limit.signal }).catch(() => {})
}

/**
 * Resolves when a server has read what it was sent, has begun to run it, and what it sent meanwhile has arrived: messages
 * are read and sent in order. Gives up after a while.
 */
export async function caughtUp(open: InitializedConnection, clock: Clock): Promise<void> {
  const method = open.handshake.era === 'modern' ? 'server/discover' : 'ping'
  using limit = deadline(clock, caughtUpWithinMs, () => new Error('no answer'))
  const { signal } = limit
  const ask = () => open.connection.request(encodeRequest(open, { method, capabilities: {}, signal, repeatable: true }))
  // Twice: a server that reads a call and this request at once may answer the request before the call begins to run.
  for (let count = 0; count < 2 && !signal.aborted; count++) await ask().catch(() => {})
}
