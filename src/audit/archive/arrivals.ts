import type { Archive, ArchiveArrival, ArrivalQuery } from '../../core/audit-archive.ts'
import type { Clock } from '../../core/clock.ts'
import { delay } from '../search/tail.ts'

type Wanted = Omit<ArrivalQuery, 'after' | 'which' | 'limit'>

const atOnce = 2_000

export async function* readAllArrivals(
  archive: Pick<Archive, 'arrivals'>,
  wanted: Wanted,
): AsyncGenerator<readonly ArchiveArrival[]> {
  for (let after = 0; ; ) {
    const arrived = await archive.arrivals({ ...wanted, after, which: 'first', limit: atOnce })
    const last = arrived.at(-1)
    if (!last) return
    yield arrived
    after = last.position
  }
}

export interface FollowArrivals {
  readonly archive: Pick<Archive, 'arrivals'>
  readonly wanted: Wanted
  /** `from` is the last position that was read; `known` holds later records that the caller already has. */
  readonly from: number
  readonly known: readonly ArchiveArrival[]
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** How long a replica may take to commit a record after it has reserved the record's position. */
const settledMs = 5_000
const arrivalsEveryMs = 1_000

/** Yields new records. Rereads recent positions, because a record with an earlier position may become visible later. */
export async function* followArrivals(options: FollowArrivals): AsyncGenerator<readonly ArchiveArrival[]> {
  const { archive, wanted, clock, signal } = options
  let settled = options.from
  let recent = new Map(options.known.map(({ position }) => [position, clock.monotonic()]))
  while (!signal.aborted) {
    const arrived: ArchiveArrival[] = []
    for (let after = settled; ; ) {
      const page = await archive.arrivals({ ...wanted, after, which: 'first', limit: atOnce })
      arrived.push(...page.filter(({ position }) => !recent.has(position)))
      const last = page.at(-1)
      if (!last || page.length < atOnce) break
      after = last.position
    }
    const now = clock.monotonic()
    for (const { position } of arrived) recent.set(position, now)
    if (arrived.length > 0) yield arrived
    const old = [...recent].filter(([, at]) => now - at >= settledMs).map(([position]) => position)
    settled = Math.max(settled, ...old)
    recent = new Map([...recent].filter(([position]) => position > settled))
    await delay(arrivalsEveryMs, clock, signal)
  }
}
