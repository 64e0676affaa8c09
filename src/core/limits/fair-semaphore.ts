import { never } from '../deadline.ts'

interface SemaphoreLimits {
  /** How much may run at a time; unlimited by default. */
  readonly slots?: number
  /** How many of the slots one caller may hold; all by default. With one for each, this is a lock per caller. */
  readonly perCaller?: number
}

interface WaitingCaller {
  readonly caller: string
  goOn(): void
}

/** Slots for work that runs at the same time. The callers with the fewest slots come first, then those who came first. */
export class FairSemaphore {
  readonly #perCaller: number
  readonly #held = new Map<string, number>()
  readonly #waiting = new Set<WaitingCaller>()
  #free: number

  constructor({ slots = Number.POSITIVE_INFINITY, perCaller = slots }: SemaphoreLimits) {
    this.#free = slots
    this.#perCaller = perCaller
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Waits for a slot; dispose of it when done. Rejects with the signal's reason if the signal aborts first. */
  async take(caller = '', signal = never): Promise<Disposable> {
    signal.throwIfAborted()
    if (this.#free > 0 && this.#heldBy(caller) < this.#perCaller) this.#hold(caller, 1)
    else await this.#turnOf(caller, signal)
    return { [Symbol.dispose]: () => this.#leave(caller) }
  }

  #turnOf(caller: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        this.#waiting.delete(place)
        signal.removeEventListener('abort', giveUp)
      }
      const giveUp = () => {
        end()
        reject(signal.reason)
      }
      const goOn = () => {
        end()
        resolve()
      }
      const place: WaitingCaller = { caller, goOn }
      this.#waiting.add(place)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  #heldBy(caller: string): number {
    return this.#held.get(caller) ?? 0
  }

  #hold(caller: string, by: 1 | -1): void {
    this.#free -= by
    const held = this.#heldBy(caller) + by
    if (held > 0) this.#held.set(caller, held)
    else this.#held.delete(caller)
  }

  #leave(caller: string): void {
    this.#hold(caller, -1)
    const next = this.#next()
    if (!next) return
    this.#hold(next.caller, 1)
    next.goOn()
  }

  #next(): WaitingCaller | undefined {
    let next: WaitingCaller | undefined
    let fewest = this.#perCaller
    for (const waiting of this.#waiting) {
      const held = this.#heldBy(waiting.caller)
      if (held >= fewest) continue
      next = waiting
      fewest = held
      if (held === 0) break
    }
    return next
  }
}
