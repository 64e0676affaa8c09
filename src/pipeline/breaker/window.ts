/** How finely the window moves: what is counted is up to a tenth of its length younger than the window says. */
const slices = 10

/** How many calls there were lately, and how many of them failed; as large with a million of them as with one. */
export interface Window {
  readonly calls: number
  readonly failures: number
  /** Counts a call that ended now; whatever is older than the window is forgotten. */
  add(failed: boolean, now: number, lengthMs: number): void
  clear(): void
}

export function createWindow(): Window {
  const callsIn = new Array<number>(slices).fill(0)
  const failuresIn = new Array<number>(slices).fill(0)
  let calls = 0
  let failures = 0
  let length = 0
  /** The number of the youngest slice, counted from the epoch. */
  let latest = 0

  const clear = () => {
    callsIn.fill(0)
    failuresIn.fill(0)
    calls = 0
    failures = 0
  }

  const moveTo = (slice: number) => {
    // A clock that was set back would keep what is counted for as long as it was wrong.
    if (slice < latest || slice - latest >= slices) clear()
    else {
      for (let next = latest + 1; next <= slice; next++) {
        const place = next % slices
        calls -= callsIn[place] as number
        failures -= failuresIn[place] as number
        callsIn[place] = 0
        failuresIn[place] = 0
      }
    }
    latest = slice
  }

  return {
    get calls() {
      return calls
    },
    get failures() {
      return failures
    },
    add(failed, now, lengthMs) {
      if (lengthMs !== length) clear()
      length = lengthMs
      const slice = Math.floor(now / Math.ceil(lengthMs / slices))
      if (slice !== latest) moveTo(slice)
      const place = slice % slices
      callsIn[place] = (callsIn[place] as number) + 1
      calls++
      if (!failed) return
      failuresIn[place] = (failuresIn[place] as number) + 1
      failures++
    },
    clear,
  }
}
