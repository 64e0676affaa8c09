/** The source of time; tests replace it. */
export interface Clock {
  /** Wall clock in milliseconds since the epoch, for timestamps. It can jump. */
  now(): number
  /** For durations and expiry: milliseconds since an origin that all processes on a machine share; not the epoch. */
  monotonic(): number
  /**
   * Runs `callback` once after `ms`, unless the timer is disposed of first. The timer does not keep the process alive.
   * If it fires late because the process was paused or busy, it waits a little longer, so that pending input is read
   * first and may dispose of the timer.
   */
  after(ms: number, callback: () => void, options?: AfterOptions): Timer
}

export interface Timer extends Disposable {
  /** How late the timer fired because the process could not run; set after firing. */
  readonly lateMs?: number
}

export interface AfterOptions {
  /** Whether to run a late callback immediately. For callbacks that draw no conclusions from the elapsed time. */
  readonly promptly?: boolean
}

/** A timer that is this late shows that the process or the machine was paused. A busy process is seldom this late. */
export const pausedMs = 250
/** A timer later than this may fire before input that has already arrived is read. */
const noticeableMs = 5
/** The longest time that a late timer waits for pending input. */
const maxGraceMs = 2_000
/** How many times a late timer may wait, so that a process that is paused repeatedly still fires its timers. */
const maxGraces = 3
/** The longest time that Node's timers support, almost 25 days. They fire at once if it is longer. */
const maxTimerMs = 2 ** 31 - 1

/** When this process started, in milliseconds on the `hrtime` clock, which all processes on the machine share. */
const processStart = Number(process.hrtime.bigint()) / 1e6 - performance.now()

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => Math.floor(processStart + performance.now()),
  after: (ms, callback, options) => new SystemTimer(ms, callback, options?.promptly ? maxGraces : 0),
}

class SystemTimer implements Timer {
  lateMs = 0
  readonly #callback: () => void
  #timeout: NodeJS.Timeout
  #due: number
  #graces: number

  constructor(ms: number, callback: () => void, graces: number) {
    this.#callback = callback
    const waitMs = Math.min(ms, maxTimerMs)
    this.#due = performance.now() + waitMs
    this.#graces = graces
    this.#timeout = setTimeout(SystemTimer.#fired, waitMs, this).unref()
  }

  /** Runs the callback; if late, waits first, because the event loop runs timers before it reads pending input. */
  static #fired(timer: SystemTimer): void {
    const behindMs = performance.now() - timer.#due
    timer.lateMs += Math.max(behindMs, 0)
    const tolerableMs = timer.#graces === 0 ? noticeableMs : pausedMs
    if (behindMs < tolerableMs || timer.#graces === maxGraces) {
      timer.#callback()
      return
    }
    const graceMs = Math.min(behindMs, maxGraceMs)
    timer.#graces++
    timer.#due += behindMs + graceMs
    timer.#timeout = setTimeout(SystemTimer.#fired, graceMs, timer).unref()
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timeout)
  }
}
