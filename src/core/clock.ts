/** Time as logic sees it, so that tests can move it by hand. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Runs `callback` once after `ms`, unless disposed of first. Never keeps the process alive by itself. */
  after(ms: number, callback: () => void): Disposable
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms)
    timer.unref()
    return { [Symbol.dispose]: () => clearTimeout(timer) }
  },
}
