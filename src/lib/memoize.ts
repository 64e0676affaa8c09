/** Caches results by their input text. A full cache is cleared; input longer than `maxLength` is not cached. */
export function memoize<T>(compute: (text: string) => T, maxEntries = 4096, maxLength = 512): Memoized<T> {
  const known = new Map<string, T>()
  const get = (text: string) => {
    const before = known.get(text)
    if (before !== undefined) return before
    const result = compute(text)
    if (text.length > maxLength) return result
    if (known.size >= maxEntries) known.clear()
    known.set(text, result)
    return result
  }
  return Object.assign(get, { clear: () => known.clear() })
}

export interface Memoized<T> {
  (text: string): T
  /** Forgets all results, because what they were computed with has changed. */
  clear(): void
}

/** Caches results by their input object, for as long as that is in use. */
export function memoizeByObject<K extends object, T>(compute: (object: K) => T): (object: K) => T {
  const known = new WeakMap<K, T>()
  return (object) => {
    const before = known.get(object)
    if (before !== undefined) return before
    const result = compute(object)
    known.set(object, result)
    return result
  }
}

/** Sets an entry of a map and moves it to the end. If there are more than `max` entries, removes the first one. */
export function setBounded<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, max: number): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > max) map.delete(map.keys().next().value as Key)
}

export interface Lazy<T> {
  /** Loads the value on first use. All uses share it; after a failure, the next use tries again. */
  get(): Promise<T>
  /** The value if it has been requested; undefined if it has not, or if it could not be loaded. Never rejects. */
  loaded(): Promise<T | undefined>
}

export function createLazy<T>(load: () => Promise<T>): Lazy<T> {
  let loading: Promise<T> | undefined
  return {
    get() {
      if (loading) return loading
      const attempt = load()
      loading = attempt
      attempt.catch(() => {
        loading = undefined
      })
      return attempt
    },
    loaded: async () => loading?.catch(() => undefined),
  }
}
