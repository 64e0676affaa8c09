/** Places for so many at once; whoever comes when all are taken waits in a row. */
export interface Seats {
  /** Settles with a seat, to be disposed of once. Rejects with the signal's reason. */
  take(signal: AbortSignal): Promise<Disposable>
}

export function createSeats(count: number): Seats {
  const waiting: (() => void)[] = []
  let free = count

  /** Hands the seat to the next in the row, so that nobody slips in between. */
  const leave = () => {
    const next = waiting.shift()
    if (next) next()
    else free++
  }

  const wait = async (signal: AbortSignal) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const giveUp = () => {
      const at = waiting.indexOf(resolve)
      if (at < 0) return
      waiting.splice(at, 1)
      reject(signal.reason)
    }
    waiting.push(resolve)
    signal.addEventListener('abort', giveUp, { once: true })
    await promise.finally(() => signal.removeEventListener('abort', giveUp))
  }

  return {
    async take(signal) {
      signal.throwIfAborted()
      if (free > 0) free--
      else await wait(signal)
      return { [Symbol.dispose]: leave }
    },
  }
}
