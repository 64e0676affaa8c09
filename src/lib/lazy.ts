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
