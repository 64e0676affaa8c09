import type { Approval, Origin, Pin, ServerPins, Sight } from './record.ts'

/** An operator's decisions that are remembered for one name: variants for other clients, and versions to go back to. */
const maxApproved = 8
/** What waits for a decision; a server that changes all the time pushes its own older changes out. */
const maxPending = 4
const maxOrigins = 4

/** What two processes know together: neither loses an approval, whoever merges first. Of several first sights one is kept. */
export function mergeRecords(a: ServerPins, b: ServerPins): ServerPins {
  const pins = new Map(a.pins)
  for (const [key, pin] of b.pins) {
    const mine = pins.get(key)
    pins.set(key, mine ? mergePins(mine, pin) : pin)
  }
  return {
    server: a.server,
    origins: mergeOrigins(a.origins, b.origins),
    acknowledged: Math.max(a.acknowledged, b.acknowledged),
    distrusted: Math.max(a.distrusted, b.distrusted),
    pins,
  }
}

export function mergePins(a: Pin, b: Pin): Pin {
  if (a === b) return a
  const { approved, demoted } = mergeApproved([...a.approved, ...b.approved])
  const hashes = new Set(approved.map(({ hash }) => hash))
  const pending = unique([...a.pending, ...b.pending, ...demoted], earlier).filter(({ hash }) => !hashes.has(hash))
  return {
    kind: a.kind,
    name: a.name,
    approved,
    pending: pending.sort(byTime).slice(-maxPending),
    seen: byTime(a.seen, b.seen) > 0 ? a.seen : b.seen,
  }
}

/** There is one first sight, the earliest: what another process took for one at the same time is a change. */
function mergeApproved(all: readonly Approval[]): { approved: Approval[]; demoted: Sight[] } {
  const approvals = unique(all, stronger)
  const byOperator = approvals.filter(({ by }) => by === 'operator').sort(byTime)
  const [first, ...others] = approvals.filter(({ by }) => by === 'first sight').sort(byTime)
  return {
    approved: [...(first ? [first] : []), ...byOperator.slice(-maxApproved)],
    demoted: others.map(({ by: _, ...sight }) => sight),
  }
}

function mergeOrigins(a: readonly Origin[], b: readonly Origin[]): readonly Origin[] {
  return unique([...a, ...b], (one, other) => (byTime(one, other) <= 0 ? one : other))
    .sort(byTime)
    .slice(-maxOrigins)
}

interface Dated {
  readonly hash: string
  readonly at: number
}

const byTime = (a: Dated, b: Dated): number => a.at - b.at || (a.hash < b.hash ? -1 : a.hash > b.hash ? 1 : 0)

/** One of each hash; of two, the one that `choose` prefers, whichever comes first. */
function unique<T extends Dated>(all: readonly T[], choose: (a: T, b: T) => T): T[] {
  const found = new Map<string, T>()
  for (const item of all) {
    const known = found.get(item.hash)
    found.set(item.hash, known ? choose(known, item) : item)
  }
  return [...found.values()]
}

/** When it was first seen, as for a first sight: a demoted one is among them, and the order must not matter. */
const earlier = (a: Sight, b: Sight): Sight => ({ ...fuller(a, b), at: Math.min(a.at, b.at) })

/** An operator's word counts more than a first sight; of two alike, the earlier. */
function stronger(a: Approval, b: Approval): Approval {
  if (a.by === b.by) return { ...fuller(a, b), at: Math.min(a.at, b.at) }
  const { by, at } = a.by === 'operator' ? a : b
  return { ...fuller(a, b), by, at }
}

/** Two accounts of one definition differ in the scanner that looked at it and in whether a copy was kept. */
function fuller<T extends Sight>(a: T, b: T): T {
  if (a.scanner !== b.scanner) return a.scanner > b.scanner ? a : b
  return a.definition === undefined && b.definition !== undefined ? b : a
}
