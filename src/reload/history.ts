/** One attempt to put another configuration into force, as people read about it. */
export interface Reloaded {
  readonly at: number
  readonly ok: boolean
  /** Why nothing has changed; null where it has. */
  readonly error: string | null
  /** What is otherwise than before, in words. */
  readonly changes: readonly string[]
}

/** The latest attempts, for whoever wants to know what has happened to the configuration and when. */
export interface ReloadHistory {
  /** Newest first. */
  readonly events: readonly Reloaded[]
  add(event: Reloaded): void
  onEvent(listener: (event: Reloaded) => void): Disposable
}

const maxKept = 50

export function createHistory(most = maxKept): ReloadHistory {
  const listeners = new Set<(event: Reloaded) => void>()
  let events: readonly Reloaded[] = []
  return {
    get events() {
      return events
    },
    add(event) {
      events = [event, ...events].slice(0, most)
      for (const listener of listeners) listener(event)
    },
    onEvent(listener) {
      // Wrapped, so that one function registered twice is two listeners.
      const own = (event: Reloaded) => listener(event)
      listeners.add(own)
      return { [Symbol.dispose]: () => void listeners.delete(own) }
    },
  }
}
