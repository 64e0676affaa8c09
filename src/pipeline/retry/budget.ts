import type { Clock } from '../../core/clock.ts'

/** How many retries there may be: a share of the calls, so that retries never multiply an outage (F12). */
export interface Budget {
  /** A call begins, and brings its share. */
  earn(): void
  /** Whether one more retry may be made; it is counted if so. */
  spend(): boolean
}

/** What a server has without having earned it, so that one who is seldom called can be called again, too. */
const reserve = 3
/** How long it takes until one of the reserve is there again. */
const regainMs = 10_000
/** What can be saved up: when a line breaks, all calls that were under way on it fail at once. */
const most = 20

export function createBudget(share: number, clock: Clock): Budget {
  // Who wants no retries at all gets none from the reserve either.
  const free = share > 0 ? reserve : 0
  let left = free
  let spentAt = clock.monotonic()

  /** Brings back what time has brought of the reserve. */
  const regain = () => {
    const now = clock.monotonic()
    if (left < free) left = Math.min(left + Math.max(now - spentAt, 0) / regainMs, free)
    spentAt = now
  }

  return {
    earn() {
      left = Math.min(left + share, most)
    },
    spend() {
      regain()
      if (left < 1) return false
      left--
      return true
    },
  }
}
