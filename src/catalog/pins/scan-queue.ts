/** As much as a listing may be held up by looking at definitions nobody has looked at before. */
const nowMs = 100
const sliceMs = 10

/** Does small pieces of work at once as long as they cost little, and the rest between other things. */
export interface ScanQueue extends AsyncDisposable {
  /** Runs `work` now, or soon if much has been done just now. */
  add(work: () => void): void
  /** Settles when nothing is left. */
  done(): Promise<void>
}

export function createScanQueue(): ScanQueue {
  const waiting: (() => void)[] = []
  let spent = 0
  let resetting = false
  let running: Promise<void> | undefined

  const timed = (work: () => void) => {
    const start = performance.now()
    work()
    spent += performance.now() - start
  }

  const rest = async () => {
    while (waiting.length > 0) {
      await new Promise<void>((resolve) => setImmediate(resolve))
      for (const until = performance.now() + sliceMs; waiting.length > 0 && performance.now() < until; )
        waiting.shift()?.()
    }
    running = undefined
  }

  return {
    add(work) {
      if (!resetting) {
        resetting = true
        setImmediate(() => {
          spent = 0
          resetting = false
        })
      }
      if (spent < nowMs && waiting.length === 0) return timed(work)
      waiting.push(work)
      running ??= rest()
    },
    done: async () => running,
    async [Symbol.asyncDispose]() {
      waiting.length = 0
      await running
    },
  }
}
