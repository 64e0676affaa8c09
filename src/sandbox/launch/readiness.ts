/** Whether a child has come up: told once, either way. */
export interface Readiness {
  readonly promise: Promise<void>
  ready(): void
  failed(reason: string): void
}

export function createReadiness(): Readiness {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  // Whoever takes the child hears of it; a spare that nobody takes concerns nobody.
  promise.catch(() => {})
  return { promise, ready: resolve, failed: (reason) => reject(new Error(reason)) }
}
