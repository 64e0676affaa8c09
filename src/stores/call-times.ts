/** The window in which calls are counted. */
export const windowMs = 60_000

/**
 * Up to so many calls a minute each is counted at its own millisecond. Above it, calls of a quarter of a second are
 * counted together, at the time of the last of them: never too early, and so never more than the limit in any window.
 */
export const maxExact = 240
export const groupMs = windowMs / maxExact

/** When the calls of the last minute were, in groups: a sliding window that needs at most 500 numbers. */
export interface CallTimes {
  /** How many calls the window that ends now holds. */
  count(now: number): number
  /** Milliseconds until the window holds fewer than `limit` calls; zero if it does now. */
  waitMs(limit: number, now: number): number
  add(limit: number, now: number): void
}

export function createCallTimes(): CallTimes {
  /** Pairs: the time of the last call of a group, and how many it has. Those before `head` have left the window. */
  let groups: number[] = []
  let head = 0
  let total = 0
  /** When the last group began. */
  let begun = 0

  const leave = (now: number) => {
    while (head < groups.length && (groups[head] as number) <= now - windowMs) {
      total -= groups[head + 1] as number
      head += 2
    }
    if (head === groups.length) groups.length = head = 0
    else if (head > 64 && head > groups.length / 2) {
      groups = groups.slice(head)
      head = 0
    }
  }

  return {
    count(now) {
      leave(now)
      return total
    },
    waitMs(limit, now) {
      leave(now)
      let left = total
      for (let at = head; left >= limit; at += 2) {
        left -= groups[at + 1] as number
        if (left < limit) return (groups[at] as number) + windowMs - now
      }
      return 0
    },
    add(limit, now) {
      total++
      const last = groups.length - 2
      if (last >= head && now - begun < (limit > maxExact ? groupMs : 1)) {
        groups[last] = now
        ;(groups[last + 1] as number)++
        return
      }
      begun = now
      groups.push(now, 1)
    },
  }
}
