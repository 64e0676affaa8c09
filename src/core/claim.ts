import type { Fleet } from './fleet.ts'

/** Who has something that only one of a fleet can have. */
export type Claim =
  | { readonly heldBy: string; readonly address: string }
  /** `lost`: one that is gone had it, and whatever was in it is gone as well. */
  | { readonly ours: true; readonly lost: boolean }

/**
 * Finds out who has it; what nobody has, or one that is gone, is ours from now on. Where nobody can be asked it is ours,
 * too: each goes on alone. `unreachable` is one that has just been tried in vain. Never rejects.
 */
export async function claim(fleet: Fleet, name: string, unreachable?: string): Promise<Claim> {
  let taken = await fleet.takeOver(name, unreachable)
  // False where somebody was quicker.
  if (taken === undefined && !(await fleet.keep(name, fleet.self))) taken = await fleet.takeOver(name)
  if (taken === undefined) return { ours: true, lost: false }
  return 'heldBy' in taken ? taken : { ours: true, lost: taken.record !== fleet.self }
}

/** What this replica holds. */
export interface Claims extends Disposable {
  /** As above, by who will fill it: that it was lost is told once, and that it is ours is told again if it is forgotten. */
  claim(name: string): Promise<Claim>
}

/** More than one replica keeps open at a time; those that were used last. */
const mostHeld = 1_000

export function createClaims(fleet: Fleet): Claims {
  const held = new Set<string>()
  const hold = (name: string) => {
    held.delete(name)
    held.add(name)
    const [oldest] = held
    if (oldest !== undefined && held.size > mostHeld) held.delete(oldest)
  }
  const returned = fleet.onReturn?.(() => {
    for (const name of held) void fleet.keep(name, fleet.self).then((ours) => ours || held.delete(name))
  })
  return {
    async claim(name) {
      const found = await claim(fleet, name)
      if ('heldBy' in found) held.delete(name)
      else hold(name)
      if ('ours' in found && found.lost) await fleet.keep(name, fleet.self)
      return found
    },
    [Symbol.dispose]: () => returned?.[Symbol.dispose](),
  }
}
