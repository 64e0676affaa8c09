/** Time as logic sees it, so that tests can move it by hand. */
export interface Clock {
  /** Wall clock: milliseconds since the epoch, for timestamps that are shown, stored or compared with such. It can jump. */
  now(): number
  /**
   * Whole milliseconds that only ever grow, for durations and expiry. They count from an arbitrary moment, the same one
   * for all processes of this machine; never compare them with `now()`.
   */
  monotonic(): number
  /** Runs `callback` once after `ms`, unless disposed of first. Never keeps the process alive by itself. */
  after(ms: number, callback: () => void): Disposable
}

/** `performance.now()` counts from the start of the process, `hrtime` from the start of the machine. */
const processStart = Number(process.hrtime.bigint()) / 1e6 - performance.now()

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => Math.floor(processStart + performance.now()),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms)
    timer.unref()
    return { [Symbol.dispose]: () => clearTimeout(timer) }
  },
}
