/** One after the other, in the order of asking. */
export interface Turns {
  /** Waits for its turn, which lasts until it is given back. Rejects when the signal aborts first. */
  take(signal: AbortSignal): Promise<{ giveBack(): void }>
}

/** Turns with so many waiting at most; whoever comes after them gets `full()`. */
export function createTurns(most: number, full: () => Error): Turns {
  const waiting = new Set<() => void>()
  let taken = false

  const turn = (): { giveBack(): void } => {
    let isGivenBack = false
    return {
      giveBack() {
        if (isGivenBack) return
        isGivenBack = true
        const [next] = waiting
        if (next) next()
        else taken = false
      },
    }
  }

  return {
    async take(signal) {
      signal.throwIfAborted()
      if (!taken) {
        taken = true
        return turn()
      }
      if (waiting.size >= most) throw full()
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const begin = () => {
        waiting.delete(begin)
        signal.removeEventListener('abort', leave)
        resolve()
      }
      const leave = () => {
        waiting.delete(begin)
        reject(signal.reason)
      }
      waiting.add(begin)
      signal.addEventListener('abort', leave, { once: true })
      await promise
      return turn()
    },
  }
}
