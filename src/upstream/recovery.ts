import type { Clock } from '../core/clock.ts'

/** Tries a server that is down again in the background, so that it comes back by itself (T5). */
export interface Recovery extends Disposable {
  /** It could not be reached. */
  failed(): void
}

export interface RecoveryOptions {
  /** Whether the server is still down. */
  down(): boolean
  /** How long it is to be left alone. */
  pauseMs(): number
  /** Whether anybody would be glad if it came back: a process is not started again and again for nobody. */
  wanted(): boolean
  /** Tries once; whether that failed is told by `failed`. */
  attempt(): Promise<unknown>
  readonly clock: Clock
}

/** Jitter may leave no pause at all; that is too eager for an attempt that nobody waits for. */
const shortestPauseMs = 500

export function createRecovery({ down, pauseMs, wanted, attempt, clock }: RecoveryOptions): Recovery {
  let timer: Disposable | undefined
  let over = false

  const probe = (): void => {
    timer = undefined
    // Somebody else was quicker, or nobody cares: the next call tries it again.
    if (over || !down() || !wanted()) return
    if (pauseMs() > 0) schedule()
    // One that was refused because another is under way is followed by its outcome.
    else
      attempt().catch(() => {
        if (!timer && down()) schedule()
      })
  }

  const schedule = (): void => {
    timer?.[Symbol.dispose]()
    timer = over ? undefined : clock.after(Math.max(pauseMs(), shortestPauseMs), probe)
  }

  return {
    failed: schedule,
    [Symbol.dispose]() {
      over = true
      timer?.[Symbol.dispose]()
    },
  }
}
