import type { Log } from './log.ts'

/** Who has something that only one of a fleet can have. */
export type Lease =
  | { readonly heldBy: string; readonly address: string }
  /** `lost`: one that is gone had it, and whatever was in it is gone as well. */
  | { readonly ours: true; readonly lost: boolean }

/**
 * Finds out who has it; what nobody has, or one that is gone, is ours from now on. Where nobody can be asked it is ours,
 * too: each goes on alone. `unreachable` is one that has just been tried in vain. Never rejects.
 */
export async function acquireLease(membership: Membership, name: string, unreachable?: string): Promise<Lease> {
  let taken = await membership.takeOver(name, unreachable)
  // False where somebody was quicker.
  if (taken === undefined && !(await membership.keep(name, membership.self))) taken = await membership.takeOver(name)
  if (taken === undefined) return { ours: true, lost: false }
  return 'heldBy' in taken ? taken : { ours: true, lost: taken.record !== membership.self }
}

/** What this replica holds. */
export interface Leases extends Disposable {
  /** As above, by who will fill it: that it was lost is told once, and that it is ours is told again if it is forgotten. */
  acquire(name: string): Promise<Lease>
}

/** More than one replica keeps open at a time; those that were used last. */
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
  /** The name of this one. Whatever it hands to clients and holds for them begins with it, so that all know whose it is. */
  readonly self: string
  /** Where another one takes requests; undefined where it is gone. Never waits. */
  addressOf(replica: string): string | undefined
  /** Another one that could not be reached: while there is news of replicas, it is not asked again before it is in it. */
  unreachable(replica: string): void
  /** Keeps what another one would need to go on with a session of ours; false where one has done so already. Never rejects. */
  keep(session: string, record: string): Promise<boolean>
  /** Hears when what was kept may have been forgotten: whoever holds sessions tells of them again. */
  onReturn?(listener: () => void): Disposable
  /**
   * The session of one that is gone becomes ours; or somebody else holds it; or nobody knows it. `unreachable` is one
   * that has just been tried in vain, and is as good as gone. Never rejects.
   */
  takeOver(session: string, unreachable?: string): Promise<TakenOver>
  forget(session: string): void
  /** What only replicas of this fleet can have written: to tell one another what no client may claim. */
  sign(text: string): string
  /** The text, where one of the fleet has signed it. */
  verify(signed: string): string | undefined
}

export type TakenOver = { readonly record: string } | { readonly heldBy: string; readonly address: string } | undefined

/** A name as replicas give it to what they hand out: `replica.rest`. */
export const ownerOf = (name: string): string => name.slice(0, Math.max(name.indexOf('.'), 0))

/**
 * What one replica tells all the others (B10). What is told while they cannot be reached is lost, so that nothing may
 * depend on it: whoever missed it finds out by itself, only later.
 */
export interface PubSub {
  /** Never waits, and never throws. Whoever tells does not hear it. */
  publish(topic: string, text: string): void
  /** Hears what others tell from now on. */
  subscribe(topic: string, listener: (text: string) => void): Disposable
}

/** Hands what has come in to those who listen for its topic. */
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
          log.error({ err: error, topic }, 'what another replica told could not be dealt with')
        }
      }
    },
  }
}
