import type { Log } from './log.ts'

/**
 * What one replica tells all the others (B10). What is told while they cannot be reached is lost, so that nothing may
 * depend on it: whoever missed it finds out by itself, only later.
 */
export interface PubSub {
  /** Never waits, and never throws. Whoever tells does not hear it. */
  publish(topic: string, text: string): void
  /** Hears what others tell from now on. */
  subscribe(topic: string, listener: (text: string) => void): Disposable
}

/** Hands what has come in to those who listen for its topic. */
export interface TopicListeners extends Pick<PubSub, 'subscribe'> {
  deliver(topic: string, text: string): void
}

export function createTopicListeners(log: Log): TopicListeners {
  const listeners = new Map<string, Set<(text: string) => void>>()
  return {
    subscribe(topic, listener) {
      const those = listeners.get(topic) ?? new Set()
      listeners.set(topic, those)
      // Wrapped, so that one function registered twice is two listeners.
      const own = (text: string) => listener(text)
      those.add(own)
      return { [Symbol.dispose]: () => void those.delete(own) }
    },
    deliver(topic, text) {
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
