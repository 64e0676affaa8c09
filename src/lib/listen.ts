/** Adds a listener until the returned object is disposed of. A function that is added twice is called twice. */
export function listen<Event extends readonly unknown[]>(
  listeners: Set<(...event: Event) => void>,
  listener: (...event: Event) => void,
): Disposable {
  const own = (...event: Event) => listener(...event)
  listeners.add(own)
  return { [Symbol.dispose]: () => void listeners.delete(own) }
}

/** A set of listeners, each of which hears every event. */
export function createListeners<Event extends readonly unknown[]>() {
  const listeners = new Set<(...event: Event) => void>()
  return {
    emit(...event: Event) {
      for (const listener of listeners) listener(...event)
    },
    on: (listener: (...event: Event) => void): Disposable => listen(listeners, listener),
  }
}
