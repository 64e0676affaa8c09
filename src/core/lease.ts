import type { Membership } from './membership.ts'

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
