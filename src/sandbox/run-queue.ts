import { waitFor } from '../core/deadline.ts'

interface Waiting {
  readonly owner: string
  resolve(): void
}

/** Slots for concurrent runs. With several slots, no owner can take all of them: the last one is left for others. */
export function createRunSlots(count: number) {
  const maxPerOwner = Math.max(1, count - 1)
  const waiting = new Set<Waiting>()
  const taken = new Map<string, number>()
  let free = count

  const has = (owner: string) => taken.get(owner) ?? 0
  const fewestFirst = (one: Waiting, other: Waiting) => has(one.owner) - has(other.owner)

  /** Serves owners with the fewest slots first, then in order of arrival. */
  const fill = () => {
    while (free > 0) {
      const [next] = [...waiting].filter(({ owner }) => has(owner) < maxPerOwner).sort(fewestFirst)
      if (!next) return
      waiting.delete(next)
      free--
      taken.set(next.owner, has(next.owner) + 1)
      next.resolve()
    }
  }

  const leave = (owner: string) => {
    free++
    if (has(owner) > 1) taken.set(owner, has(owner) - 1)
    else taken.delete(owner)
    fill()
  }

  return {
    /** Waits for a slot. Rejects with the signal's reason if the signal aborts first. */
    async take(owner: string, signal: AbortSignal): Promise<Disposable> {
      signal.throwIfAborted()
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const one = { owner, resolve }
      const giveUp = () => {
        if (waiting.delete(one)) reject(signal.reason)
      }
      waiting.add(one)
      signal.addEventListener('abort', giveUp, { once: true })
      fill()
      await promise.finally(() => signal.removeEventListener('abort', giveUp))
      return { [Symbol.dispose]: () => leave(owner) }
    },
  }
}

export function createKeyedLock() {
  const last = new Map<string, Promise<void>>()
  return {
    /** Waits for the lock; dispose of it when done. Rejects with the signal's reason if the signal aborts first. */
    async take(key: string, signal: AbortSignal): Promise<Disposable> {
      const before = last.get(key) ?? Promise.resolve()
      const { promise: done, resolve } = Promise.withResolvers<void>()
      // A cancelled request keeps its place until the requests before it are done, so that the requests after it also
      // wait for them.
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
