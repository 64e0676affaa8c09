/** Milliseconds per question. */
export interface Times {
  readonly p50Ms: number
  readonly p99Ms: number
}

export function timesOf(spent: readonly number[]): Times {
  const sorted = spent.toSorted((a, b) => a - b)
  const at = (share: number) => rounded(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0)
  return { p50Ms: at(0.5), p99Ms: at(0.99) }
}

/** What a question costs: the best of a few times, since whatever else the machine does only ever adds. */
export function bestOf<Answer>(ask: () => Answer, times = 7): { readonly ms: number; readonly answer: Answer } {
  const rounds = Array.from({ length: times }, () => {
    const start = performance.now()
    const answer = ask()
    return { ms: performance.now() - start, answer }
  })
  return rounds.reduce((best, round) => (round.ms < best.ms ? round : best))
}

const rounded = (ms: number) => Math.round(ms * 1000) / 1000
