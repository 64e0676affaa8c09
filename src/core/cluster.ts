import type { Log } from './log.ts'

export type Lease =
  | { readonly heldBy: string; readonly address: string }
  /** `lost`: the previous holder is gone, and its state with it. */
  | { readonly ours: true; readonly lost: boolean }

/**
 * Finds the holder of a lease, or takes it if there is none or the holder is gone. Also ours if the store is
 * unavailable: each replica then works alone. `unreachable`: a replica that just failed to respond. Never rejects.
 */
export async function acquireLease(membership: Membership, name: string, unreachable?: string): Promise<Lease> {
  let taken = await membership.takeOver(name, unreachable)
  // False if another replica was faster.
  if (taken === undefined && !(await membership.keep(name, membership.self))) taken = await membership.takeOver(name)
  if (taken === undefined) return { ours: true, lost: false }
  return 'heldBy' in taken ? taken : { ours: true, lost: taken.record !== membership.self }
}

export interface Leases extends Disposable {
  /** Remembers the lease: reports `lost` only once, and registers it again if the store lost it. */
  acquire(name: string): Promise<Lease>
}

/** More than a replica holds at a time; the most recently used are remembered. */
const maxHeld = 1_000

export function createLeases(membership: Membership): Leases {
  const held = new Set<string>()
  const hold = (name: string) => {
    held.delete(name)
    held.add(name)
    const [oldest] = held
    if (oldest !== undefined && held.size > maxHeld) held.delete(oldest)
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

/** The replicas that serve one endpoint together, as one of them sees it (B10). */
export interface Membership {
  /** The name of this replica. It prefixes all ids given to clients, so that every replica can find the owner. */
  readonly self: string
  /** Where another replica accepts requests; undefined if it is gone. Never waits. */
  addressOf(replica: string): string | undefined
  /** Marks a replica as unreachable until the next membership update names it again. */
  unreachable(replica: string): void
  /** Stores what others need to continue our session; false if one of them already does. Never rejects. */
  keep(session: string, record: string): Promise<boolean>
  /** Notifies when stored sessions may have been lost, so that their holders store them again. */
  onReturn?(listener: () => void): Disposable
  /**
   * Takes over the session of a replica that is gone; returns the holder if there is one, undefined if the session is
   * unknown. `unreachable`: a replica that just failed to respond, treated as gone. Never rejects.
   */
  takeOver(session: string, unreachable?: string): Promise<TakenOver>
  forget(session: string): void
  /** Signs text for other replicas, which clients cannot forge. */
  sign(text: string): string
  verify(signed: string): string | undefined
}

export type TakenOver = { readonly record: string } | { readonly heldBy: string; readonly address: string } | undefined

/** For names of the form `replica.rest`. */
export const ownerOf = (name: string): string => name.slice(0, Math.max(name.indexOf('.'), 0))

/**
 * Broadcast between replicas (B10). Messages are lost while the others cannot be reached, so nothing may depend on
 * them: without one, a replica notices a change later.
 */
export interface PubSub {
  /** Never waits or throws. The sender does not receive its own messages. */
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
      // Wrapped, so that one function registered twice is two listeners.
      const own = (text: string) => listener(text)
      those.add(own)
      return { [Symbol.dispose]: () => void those.delete(own) }
    },
    deliver(topic, text) {
      for (const listener of listeners.get(topic) ?? []) {
        try {
          listener(text)
        } catch (error) {
          log.error({ err: error, topic }, 'could not process a message from another replica')
        }
      }
    },
  }
}
