/** The source of time; tests replace it. */
export interface Clock {
  /** Wall clock in milliseconds since the epoch, for timestamps. It can jump. */
  now(): number
  /** For durations and expiry. The origin is the same for all processes of a machine; never compare it with `now()`. */
  monotonic(): number
  /**
   * Runs `callback` once after `ms`, unless disposed of first; does not keep the process alive. A late timer (the
   * process was paused or busy) waits a little longer, so that pending input is read first and may dispose of it.
   */
  after(ms: number, callback: () => void, options?: AfterOptions): Timer
}

export interface Timer extends Disposable {
  /** After firing: how long the process was unable to run it although it was due. */
  readonly lateMs?: number
}

export interface AfterOptions {
  /** Run it immediately even if late, because it draws no conclusion from the elapsed time. */
  readonly promptly?: boolean
}

/** A timer this late means that the process or the machine was paused; a busy process is seldom this late. */
export const pausedMs = 250
/** A timer later than this may fire before input that has already arrived is read. */
const noticeableMs = 5
/** How long a late timer waits at most for pending input. */
const maxGraceMs = 2_000
/** Bounds the extra waits, so that a process that is paused repeatedly still fires its timers. */
const maxGraces = 3

/** `performance.now()` counts from the start of the process, `hrtime` from the start of the machine. */
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
    this.#due = performance.now() + ms
    this.#graces = graces
    this.#timeout = setTimeout(SystemTimer.#fired, ms, this).unref()
  }

  /** The event loop runs timers before it reads input. */
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
