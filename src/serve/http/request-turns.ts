/** Requests of one caller that begin in one iteration of the event loop, if other callers have sent some lately. */
const maxPerIteration = 4

/** How long after another caller's request the loop counts as shared. */
const sharedMs = 1_000

/**
 * Divides the event loop among callers (V6): a caller that sends requests at full speed, on however many connections,
 * would otherwise have hundreds of them begin in each iteration, and every response of another caller waits for several
 * iterations. Returns undefined if the caller's next request may begin at once. A caller's requests keep their order.
 */
export function createRequestTurns(time: { now(): number } = performance) {
  const begun = new Map<string, number>()
  const waiting = new Map<string, (() => void)[]>()
  let last: string | undefined
  let changedAt = Number.NEGATIVE_INFINITY
  let isScheduled = false

  const schedule = () => {
    if (isScheduled) return
    isScheduled = true
    setImmediate(next)
  }

  const next = () => {
    isScheduled = false
    begun.clear()
    for (const [caller, requests] of waiting) {
      const due = requests.splice(0, maxPerIteration)
      if (requests.length === 0) waiting.delete(caller)
      begun.set(caller, due.length)
      for (const begin of due) begin()
    }
    if (begun.size > 0) schedule()
  }

  return (caller: string): Promise<void> | undefined => {
    if (caller !== last) {
      if (last !== undefined) changedAt = time.now()
      last = caller
    }
    const requests = waiting.get(caller)
    if (requests === undefined) {
      const count = begun.get(caller) ?? 0
      if (count < maxPerIteration || time.now() - changedAt > sharedMs) {
        begun.set(caller, count + 1)
        schedule()
        return undefined
      }
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    if (requests) requests.push(resolve)
    else waiting.set(caller, [resolve])
    return promise
  }
}
