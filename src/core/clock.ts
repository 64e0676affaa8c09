/** Time as logic sees it, so that tests can move it by hand. */
export interface Clock {
  /** Wall clock: milliseconds since the epoch, for timestamps that are shown, stored or compared with such. It can jump. */
  now(): number
  /**
   * Whole milliseconds that only ever grow, for durations and expiry. They count from an arbitrary moment, the same one
   * for all processes of this machine; never compare them with `now()`.
   */
  monotonic(): number
  /**
   * Runs `callback` once after `ms`, unless disposed of first. Never keeps the process alive by itself. One that is late,
   * because the process was paused or busy, waits a little longer: what has arrived meanwhile is read first, and may
   * dispose of it.
   */
  after(ms: number, callback: () => void, options?: AfterOptions): Timer
}

export interface Timer extends Disposable {
  /** When it has fired: for how long the process did not run although it was due. */
  readonly lateMs?: number
}

export interface AfterOptions {
  /** Run it at once however late it is: it concludes nothing from the time that has passed. */
  readonly promptly?: boolean
}

/** From this on a timer that is late tells of a pause, of the process or the machine; a busy process is seldom later. */
export const pausedMs = 250
/** A timer that is later than this may have been overtaken by what waits to be read. */
const noticeableMs = 5
/** The longest that a late timer waits for what has arrived to be read. */
const maxGraceMs = 2_000
/** A process that is paused again and again must still come to conclusions. */
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

  /** Timers run before anything is read in a turn of the event loop. */
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
