/** Deterministic pseudo-random numbers. */
export function createChance(seed = 1) {
  let state = seed
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    of: <T>(all: readonly T[]): T => all[Math.floor(next() * all.length)] as T,
    /** Long-tailed, like durations. */
    duration: (usual: number): number => usual * Math.exp((next() + next() + next() - 1.5) * 1.6),
  }
}

export type Chance = ReturnType<typeof createChance>
