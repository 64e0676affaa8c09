import type { Log } from './log.ts'

/**
 * What one replica tells all the others (B10). What is told while they cannot be reached is lost, so that nothing may
 * depend on it: whoever missed it finds out by itself, only later.
 */
export interface Bulletin {
  /** Never waits, and never throws. Whoever tells does not hear it. */
  tell(topic: string, text: string): void
  /** Hears what others tell from now on. */
  on(topic: string, listener: (text: string) => void): Disposable
}

/** Hands what has come in to those who listen for its topic. */
export interface Board extends Pick<Bulletin, 'on'> {
  hear(topic: string, text: string): void
}

export function createBoard(log: Log): Board {
  const listeners = new Map<string, Set<(text: string) => void>>()
  return {
    on(topic, listener) {
      const those = listeners.get(topic) ?? new Set()
      listeners.set(topic, those)
      // Wrapped, so that one function registered twice is two listeners.
      const own = (text: string) => listener(text)
      those.add(own)
      return { [Symbol.dispose]: () => void those.delete(own) }
    },
    hear(topic, text) {
      for (const listener of listeners.get(topic) ?? []) {
        try {
          listener(text)
        } catch (error) {
          log.error({ err: error, topic }, 'what another replica told could not be dealt with')
        }
      }
    },
  }
}
