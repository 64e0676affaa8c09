import { hash } from 'node:crypto'
import { type Call, type Caller, type Capabilities, type Peer, wrapPeer } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { pause, waitFor } from '../../core/deadline.ts'
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

/** The only client of a connection, and the state of its roots. */
export interface ConnectionOwner {
  /** The caller whose connection it is, as in its last call; undefined until there is one. */
  caller?: Caller
  /** Whether the owner receives all log messages that arrive on the connection. */
  receivesLogs?: boolean
  /** The key of the connection in `owned`; set for an owner without a session. */
  key?: string | undefined
  roots?: Json
  readonly rooted: PromiseWithResolvers<Json>
  /** Resolves when the server has had time to ask for roots. */
  greeting?: Promise<void> | undefined
  /** Set while calls wait because the server has asked for roots. */
  rooting?: RootsWait | undefined
  /** The owner's calls on this connection, including those that are waiting for it to open. */
  readonly users: Set<ConnectionUser>
}

interface RootsWait {
  readonly over: Promise<void>
  end(): void
  /** The timer that ends it. It starts with the first call that waits. */
  limit?: Disposable
}

/**
 * Returns a function that returns the routes to an owner's client: through its calls, and outside any call through its
 * session, unless the policy now denies the server to the caller. An answer from the session that arrives after such a
 * change reaches the server only if it may be for a call that is still running.
 */
export function createHost(owner: ConnectionOwner, mayReach: (caller: Caller) => boolean) {
  const isReachable = () => owner.caller?.peer !== undefined && mayReach(owner.caller)
  const session: Peer = {
    rounds: false,
    get logLevel() {
      return owner.caller?.peer?.logLevel
    },
    notify: (method, params) => owner.caller?.peer?.notify(method, params),
    async ask(method, params, signal) {
      const answer = await owner.caller?.peer?.ask(method, params, signal)
      if (answer && (owner.users.size > 0 || isReachable())) return answer
      throw new ToolwayError('DENIED_BY_POLICY', 'The caller whose client was asked may no longer use this server.')
    },
  }
  return () => ({ calls: [...owner.users].map(({ peer }) => peer), session: isReachable() ? [session] : [] })
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

/**
 * Answers roots requests for an owner without a session, with the roots that the call `first` provides. `bind` makes the
 * connection that of the owner's calls with these roots.
 */
export const rootsProvider = (
  owner: ConnectionOwner,
  first: Peer,
  rootsOf: ReturnType<typeof createRootsOf>,
  bind: (roots: Json) => void,
): Peer =>
  wrapPeer(first, {
    async ask(_, __, signal) {
      if (owner.roots) return owner.roots
      const own = rootsOf(first, signal).catch((error) => {
        if (signal.aborted) throw error
        // If the call was cancelled, use the next call's roots.
        return owner.rooted.promise
      })
      const roots = await Promise.race([own, owner.rooted.promise])
      if (!roots) throw new ToolwayError('INVALID_ARGUMENTS', "The caller's client does not provide its roots.")
      if (!owner.roots) bind(roots)
      return roots
    },
  })

export const rootsKey = (roots: Json): string =>
  hash('sha256', JSON.stringify((roots.value as { roots?: unknown }).roots ?? []), 'base64url').slice(0, 22)

/** How long calls wait for a client that declared roots but does not provide them. */
const tellWithinMs = 5_000
/** How many pings give a server time to apply its roots; servers do not report when they have applied them. */
const applyPings = 5
const applyPauseMs = 50

/** Gives a server time to apply its roots. A busy server responds to pings more slowly, so it gets more time. */
async function rootsApplied(connection: RpcConnection | undefined, clock: Clock): Promise<void> {
  for (let ping = 0; connection && ping < applyPings; ping++) {
    await pause(clock, applyPauseMs)
    await pingOnce(connection, clock)
  }
}

/** Makes the owner's calls wait until the server has the roots that it asked for and has applied them. */
export function beginRootsWait(
  owner: ConnectionOwner,
  answered: Promise<void>,
  connection: () => RpcConnection | undefined,
  clock: Clock,
): void {
  const { promise, resolve } = Promise.withResolvers<void>()
  const rooting: RootsWait = {
    over: promise,
    end() {
      rooting.limit?.[Symbol.dispose]()
      if (owner.rooting === rooting) owner.rooting = undefined
      resolve()
    },
  }
  owner.rooting = rooting
  answered.then(() => rootsApplied(connection(), clock)).then(rooting.end, rooting.end)
}

/** Waits until the server has its roots. Gives up after a while, for all calls, if the client does not provide them. */
export async function waitForRoots(rooting: RootsWait, clock: Clock, user: ConnectionUser): Promise<void> {
  user.waitsFor?.("the client's roots")
  rooting.limit ??= clock.after(tellWithinMs, rooting.end)
  await waitFor(rooting.over, user.signal)
}

/** Makes the first calls wait, because some servers request roots right after the handshake. */
export function awaitRoots(
  { connection, handshake }: InitializedConnection,
  capabilities: Capabilities,
  owner: ConnectionOwner | undefined,
  clock: Clock,
): void {
  if (!owner || capabilities.roots === undefined || handshake.era === 'modern') return
  // Do not wait over HTTP, where we cannot tell when the server has had time to ask.
  if (connection.transport.kind === 'http') return
  owner.greeting = pingOnce(connection, clock).then(() => {
    owner.greeting = undefined
  })
}
