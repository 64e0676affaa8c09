/** Milliseconds per question. */
export interface Times {
  /** Of every question every time it was asked: what somebody waits, with all that the machine does beside it. */
  readonly p50Ms: number
  readonly p99Ms: number
  /** Of the best of several times for each question: what the search itself takes, where others use the machine. */
  readonly undisturbedP99Ms: number
}

/** `spent` has, for each question, how long it took each time. */
export function timesOf(spent: readonly (readonly number[])[]): Times {
  const every = percentiles(spent.flat())
  const best = percentiles(spent.map((times) => Math.min(...times)))
  return { p50Ms: every(0.5), p99Ms: every(0.99), undisturbedP99Ms: best(0.99) }
}

/** Asks the same several times. */
export async function timed<Answer>(
  ask: () => Promise<Answer>,
  times = 7,
): Promise<{ readonly ms: readonly number[]; readonly answer: Answer }> {
  const ms: number[] = []
  for (;;) {
    const start = performance.now()
    const answer = await ask()
    ms.push(performance.now() - start)
    if (ms.length >= times) return { ms, answer }
  }
}

function percentiles(all: readonly number[]): (share: number) => number {
  const sorted = all.toSorted((a, b) => a - b)
  return (share) => rounded(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0)
}

const rounded = (ms: number) => Math.round(ms * 1000) / 1000
