import { hash } from 'node:crypto'
import { type Call, type Caller, type Capabilities, listProfile, type Peer, wrapPeer } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { endWith, pause } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../json/json.ts'
import type { InitializedConnection } from './handshake.ts'
import { pingOnce } from './ping.ts'
import type { RpcConnection } from './rpc-connection.ts'

/** The part of a call that selects its connection. */
export interface ConnectionUser extends Pick<Call, 'caller' | 'peer' | 'signal'> {
  /** Called when the call waits for something other than the server to start. */
  waitsFor?(what: string): void
}

/** How long calls wait for a client that declared roots but does not provide them. */
const rootsWithinMs = 5_000
/** How many pings give a server time to apply its roots; servers do not report when they have applied them. */
const applyPings = 5
const applyPauseMs = 50

interface RootsWait {
  readonly over: Promise<void>
  end(): void
  /** The timer that ends it. It starts with the first call that waits. */
  limit?: Disposable
}

/** The clients of a connection: all of a kind, or only one. Knows the state of the roots of that one. */
export class ConnectionClient {
  readonly capabilities: Capabilities
  readonly profile: number
  /** The principal whose credential the connection uses, if each principal has its own. */
  readonly principal: string | undefined
  /** Who uses the connection: callers of a kind, one caller, one call, or nobody yet (`spare`). */
  scope: 'shared' | 'session' | 'call' | 'spare'
  /** The key of the connection in the pool. */
  key = ''
  prefersSession = false
  /** The caller whose connection it is, as in its last call; undefined until there is one. */
  caller: Caller | undefined
  /** Whether that caller receives all log messages that arrive on the connection. */
  receivesLogs = false
  /** The calls on this connection, including those that are waiting for it to open. */
  readonly users = new Set<ConnectionUser>()
  readonly #clock: Clock
  #roots: Json | undefined
  readonly #bound = Promise.withResolvers<Json>()
  /** Resolves when the server has had time to ask for roots. */
  #greeting: Promise<void> | undefined
  /** Set while calls wait because the server has asked for roots. */
  #rootsWait: RootsWait | undefined

  constructor(scope: ConnectionClient['scope'], capabilities: Capabilities, clock: Clock, principal?: string) {
    this.scope = scope
    this.capabilities = capabilities
    this.profile = listProfile(capabilities)
    this.principal = principal
    this.#clock = clock
  }

  get isOwned(): boolean {
    return this.scope !== 'shared'
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
        if (answer && (this.users.size > 0 || isReachable())) return answer
        throw new ToolwayError('DENIED_BY_POLICY', 'The caller whose client was asked may no longer use this server.')
      },
    }
    return () => ({ calls: [...this.users].map(({ peer }) => peer), session: isReachable() ? [session] : [] })
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
    if (!this.isOwned || this.capabilities.roots === undefined || handshake.era === 'modern') return
    // Do not wait over HTTP, where we cannot tell when the server has had time to ask.
    if (connection.transport.kind === 'http') return
    this.#greeting = pingOnce(connection, this.#clock).then(() => {
      this.#greeting = undefined
    })
  }

  /** Makes calls wait until the server has the roots that it asked for and has applied them. */
  beginRootsWait(answered: Promise<void>, connection: () => RpcConnection | undefined): void {
    const { promise, resolve } = Promise.withResolvers<void>()
    const wait: RootsWait = {
      over: promise,
      end: () => {
        wait.limit?.[Symbol.dispose]()
        if (this.#rootsWait === wait) this.#rootsWait = undefined
        resolve()
      },
    }
    this.#rootsWait = wait
    answered.then(() => this.#rootsApplied(connection())).then(wait.end, wait.end)
  }

  get isSettling(): boolean {
    return this.#greeting !== undefined || this.#rootsWait !== undefined
  }

  /** Waits until the server has had time to ask for roots. */
  async greeted(signal: AbortSignal): Promise<void> {
    if (this.#greeting) await endWith(signal, this.#greeting)
  }

  /** Waits until the server has its roots. Gives up after a while, for all calls, if the client does not provide them. */
  async rooted(user: ConnectionUser): Promise<void> {
    const wait = this.#rootsWait
    if (!wait) return
    user.waitsFor?.("the client's roots")
    wait.limit ??= this.#clock.after(rootsWithinMs, wait.end)
    await endWith(user.signal, wait.over)
  }

  /** Gives a server time to apply its roots. A busy server responds to pings more slowly, so it gets more time. */
  async #rootsApplied(connection: RpcConnection | undefined): Promise<void> {
    for (let ping = 0; connection && ping < applyPings; ping++) {
      await pause(this.#clock, applyPauseMs)
      await pingOnce(connection, this.#clock)
    }
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
