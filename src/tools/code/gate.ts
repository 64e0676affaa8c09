/** Lets a few in at a time; the others wait in the order in which they came. */
export interface Gate {
  /** A place, to be given back by disposing of it. Rejects with the signal's reason where that aborts first. */
  enter(signal: AbortSignal): Promise<Disposable>
}

export function createGate(places: number): Gate {
  let free = places
  const waiting = new Set<() => void>()

  const leave = () => {
    const [next] = waiting
    if (next === undefined) free++
    else next()
  }

  return {
    async enter(signal) {
      signal.throwIfAborted()
      if (free > 0) free--
      else await turn(signal)
      return { [Symbol.dispose]: leave }
    },
  }

  function turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = () => {
        waiting.delete(admit)
        reject(signal.reason)
      }
      const admit = () => {
        waiting.delete(admit)
        signal.removeEventListener('abort', stop)
        resolve()
      }
      signal.addEventListener('abort', stop, { once: true })
      waiting.add(admit)
    })
  }
}
