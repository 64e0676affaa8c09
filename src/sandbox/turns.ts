import { waitFor } from '../core/deadline.ts'

/** Lets those who share a key go one after the other. */
export interface Turns {
  /** Settles when it is this one's turn; dispose of it when done. Rejects with the signal's reason. */
  take(key: string, signal: AbortSignal): Promise<Disposable>
}

export function createTurns(): Turns {
  const last = new Map<string, Promise<void>>()
  return {
    async take(key, signal) {
      const before = last.get(key) ?? Promise.resolve()
      const { promise: done, resolve } = Promise.withResolvers<void>()
      // Who gives up waiting still stands in the row until those before it are done.
      const after = before.then(() => done)
      last.set(key, after)
      void after.then(() => {
        if (last.get(key) === after) last.delete(key)
      })
      try {
        await waitFor(before, signal)
      } catch (error) {
        resolve()
        throw error
      }
      return { [Symbol.dispose]: resolve }
    },
  }
}
