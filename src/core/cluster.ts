import { listen } from '../lib/listen.ts'
import type { Log } from './log.ts'

export type Lease =
  | { readonly heldBy: string; readonly address: string }
  /** `lost`: the previous holder is gone, and so is the state that it held. */
  | { readonly ours: true; readonly lost: boolean }

/**
 * Finds a lease's holder, or takes the lease if it is free or its holder is gone. If the store is unavailable, each
 * replica works alone and the lease is ours. `unreachable` is a replica that just failed to respond. Never rejects.
 */
export async function acquireLease(membership: Membership, name: string, unreachable?: string): Promise<Lease> {
  let taken = await membership.takeOver(name, unreachable)
  // `keep` resolves with false if another replica took the lease first.
  if (taken === undefined && !(await membership.keep(name, membership.self))) taken = await membership.takeOver(name)
  if (taken === undefined) return { ours: true, lost: false }
  return 'heldBy' in taken ? taken : { ours: true, lost: taken.record !== membership.self }
}

export interface Leases extends Disposable {
  /** Acquires a lease and remembers it: `lost` is reported only once, and a lease that the store loses is restored. */
  acquire(name: string): Promise<Lease>
}

/** Maximum number of leases to remember, more than a replica holds at a time. The least recently used is dropped. */
const maxHeldLeases = 1_000

export function createLeases(membership: Membership): Leases {
  const held = new Set<string>()
  const hold = (name: string) => {
    held.delete(name)
    held.add(name)
    const [oldest] = held
    if (oldest !== undefined && held.size > maxHeldLeases) held.delete(oldest)
  }
  const returned = membership.onReturn?.(() => {
    for (const name of held) void membership.keep(name, membership.self).then((ours) => ours || held.delete(name))
  })
  return {
    async acquire(name) {
      const found = await acquireLease(membership, name)
      if ('heldBy' in found) held.delete(name)
      else hold(name)
      if ('ours' in found && found.lost) await membership.keep(name, membership.self)
      return found
    },
    [Symbol.dispose]: () => returned?.[Symbol.dispose](),
  }
}

/** The replicas that together serve one endpoint, as seen from this replica (B10). */
export interface Membership {
  /** This replica's name. It prefixes all ids given to clients, so that every replica can find the owner of an id. */
  readonly self: string
  /** The address at which another replica accepts requests; undefined if that replica is gone. Never waits. */
  addressOf(replica: string): string | undefined
  /** Whether a replica has stopped or hangs, so that it will not answer. Undefined where that cannot be determined. */
  isGone?(replica: string): boolean
  /** Marks a replica as unreachable until the next membership update names it again. */
  unreachable(replica: string): void
  /** Stores what other replicas need to continue our session; false if one has already taken it over. Never rejects. */
  keep(session: string, record: string): Promise<boolean>
  /** Calls the listener when stored sessions may have been lost, so that their holders store them again. */
  onReturn?(listener: () => void): Disposable
  /**
   * Takes over a session whose replica is gone. Returns the holder if it is not gone, and undefined if the session is
   * unknown. `unreachable` is a replica that just failed to respond and is treated as gone. Never rejects.
   */
  takeOver(session: string, unreachable?: string): Promise<TakenOver>
  forget(session: string): void
  /**
   * Hands a client's connection to another worker of this machine. Resolves with false if that worker has certainly not
   * taken it. Undefined if connections cannot be handed over.
   */
  transferConnection?(replica: string, connection: HandedConnection): Promise<boolean>
  /** Called with each connection that another worker hands over. `take` returns false to refuse it. */
  onConnection?(take: (connection: HandedConnection) => boolean): void
  /** Signs text for other replicas. Clients cannot forge the signature. */
  sign(text: string): string
  verify(signed: string): string | undefined
}

/** A TCP connection as Node's IPC channels transmit it, below `Socket`. */
export interface ConnectionHandle {
  close(): void
  readStart(): void
  readStop(): void
}

/** A client's connection, and the request that was read from it and not answered. */
export interface HandedConnection {
  readonly handle: ConnectionHandle
  readonly bytes: Buffer
}

export type TakenOver = { readonly record: string } | { readonly heldBy: string; readonly address: string } | undefined

/** The replica in a name of the form `replica.rest`; empty if the name has no dot. */
export const ownerOf = (name: string): string => name.slice(0, Math.max(name.indexOf('.'), 0))

/** Broadcast between replicas (B10). Messages can be lost: a replica that misses one only notices the change later. */
export interface PubSub {
  /** Sends a message to all other replicas. Never waits or throws. */
  publish(topic: string, text: string): void
  subscribe(topic: string, listener: (text: string) => void): Disposable
}

export interface TopicListeners extends Pick<PubSub, 'subscribe'> {
  deliver(topic: string, text: string): void
}

export function createTopicListeners(log: Log): TopicListeners {
  const listeners = new Map<string, Set<(text: string) => void>>()
  return {
    subscribe(topic, listener) {
      const those = listeners.get(topic) ?? new Set()
      listeners.set(topic, those)
      return listen(those, listener)
    },
    deliver(topic, text) {
      for (const listener of listeners.get(topic) ?? []) {
        try {
          listener(text)
        } catch (error) {
          log.error({ err: error, topic }, 'could not handle a message from another replica')
        }
      }
    },
  }
}
