import { setImmediate as nextIteration, setTimeout as sleep } from 'node:timers/promises'

/** Maximum number of one caller's requests that start in one iteration of an event loop that is shared. */
const maxPerIteration = 4

/** How long after another caller's request the loop counts as shared. */
const sharedLoopMs = 1_000

/** Requests that keep the loop busy for longer are followed by a rest of their caller, so many times as long. */
const longMs = 10
const restFactor = 4
const maxRestMs = 1_000

/** Time for turns. It depends on the speed of the machine, so it is real even if tests control the clock. */
const requestTime = {
  now: () => performance.now(),
  /** How long this thread has been busy, without the time in which other processes ran. */
  busy() {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1_000
  },
  after: (ms: number, run: () => void): void => void setTimeout(run, ms).unref(),
}

/**
 * Shares the event loop fairly among callers (V6). Otherwise, hundreds of a fast caller's requests would start in each
 * iteration, and delay the responses to other callers, which take several iterations. A caller whose requests take long
 * gets a fifth of the loop's time. A caller's requests keep their order.
 */
export class RequestTurns {
  readonly #time: typeof requestTime
  /** How many requests of each caller have started in this iteration. */
  readonly #started = new Map<string, number>()
  readonly #waiting = new Map<string, (() => void)[]>()
  /** Callers whose requests are measured, and until when; `restsUntil` is set if one of them took long. */
  readonly #slow = new Map<string, { readonly until: number; readonly restsUntil?: number }>()
  #last: string | undefined
  #changedAt = Number.NEGATIVE_INFINITY
  #isScheduled = false
  /** The latest request of this iteration that did not wait. */
  #latest: { readonly caller: string; readonly at: number } | undefined

  constructor(time = requestTime) {
    this.#time = time
  }

  /** Waits for the turn of a caller's next request; undefined if it may start immediately. */
  take(caller: string): Promise<void> | undefined {
    const now = this.#time.now()
    this.#suspect(now)
    const requests = this.#waiting.get(caller)
    const othersWait = this.#waiting.size > (requests ? 1 : 0)
    if (othersWait || (this.#last !== undefined && caller !== this.#last)) this.#changedAt = now
    this.#last = caller
    this.#schedule()
    if (requests === undefined) {
      const started = this.#started.get(caller) ?? 0
      if (!this.#isShared(now) || (started < maxPerIteration && !this.#isSlow(caller, now))) {
        this.#started.set(caller, started + 1)
        this.#latest = { caller, at: now }
        return undefined
      }
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    if (requests) requests.push(resolve)
    else this.#waiting.set(caller, [resolve])
    return promise
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#iterate)
  }

  readonly #iterate = (): void => {
    this.#isScheduled = false
    const now = this.#time.now()
    this.#suspect(now)
    this.#started.clear()
    for (const caller of this.#waiting.keys()) {
      if ((this.#slow.get(caller)?.restsUntil ?? 0) > now) continue
      let start = 0
      // Node runs both in one phase of the loop, so only what these requests do without waiting is measured.
      setImmediate(() => {
        start = this.#time.busy()
        this.#start(caller, this.#slow.get(caller)?.restsUntil === undefined ? maxPerIteration : 1)
      })
      setImmediate(() => this.#rest(caller, this.#time.busy() - start))
      this.#schedule()
    }
  }

  #start(caller: string, count: number): void {
    const requests = this.#waiting.get(caller) ?? []
    const due = requests.splice(0, count)
    if (requests.length === 0) this.#waiting.delete(caller)
    for (const start of due) start()
  }

  #rest(caller: string, tookMs: number): void {
    const now = this.#time.now()
    if (tookMs <= longMs || !this.#isShared(now)) return
    const ms = Math.min(tookMs * restFactor, maxRestMs)
    this.#measure(caller, { until: now + ms + sharedLoopMs, restsUntil: now + ms }, now)
    // Timers may end a fraction of a millisecond early, and nothing else would start the requests that wait.
    this.#time.after(Math.ceil(ms) + 1, () => this.#schedule())
  }

  /** The time since a request includes other work, so it is only a reason to measure the caller's next ones. */
  #suspect(now: number): void {
    const { caller, at } = this.#latest ?? { caller: '', at: now }
    if (now - at > longMs && !this.#slow.has(caller)) this.#measure(caller, { until: now + sharedLoopMs }, now)
    this.#latest = undefined
  }

  #measure(caller: string, how: { readonly until: number; readonly restsUntil?: number }, now: number): void {
    for (const known of this.#slow.keys()) this.#isSlow(known, now)
    this.#slow.set(caller, how)
  }

  #isSlow(caller: string, now: number): boolean {
    const known = this.#slow.get(caller)
    if (known === undefined || known.until > now) return known !== undefined
    this.#slow.delete(caller)
    return false
  }

  #isShared(now: number): boolean {
    return now - this.#changedAt <= sharedLoopMs
  }
}

/** Upper bound for the time of one long piece of work, which is also the length of the pauses after it. */
const maxWorkTurnMs = 250

/** Maximum number of pauses between two long pieces of work of one caller. */
const maxTurnPauses = 9

/** A pause in which the event loop was active for a smaller share of the time shows that it has time to spare. */
const busyShare = 0.5

const workTime = {
  now: () => performance.now(),
  /** Resolves with the share of the pause in which the event loop was active. */
  async pause(ms: number): Promise<number> {
    const before = performance.eventLoopUtilization()
    await sleep(ms)
    return performance.eventLoopUtilization(before).utilization
  },
}

/**
 * Turns for work that keeps the event loop busy for milliseconds, such as a large body. Each turn is in an iteration of
 * the loop of its own, and is followed by a pause of the same length.
 */
export class WorkTurns {
  readonly #time: typeof workTime
  readonly #lastOf = new Map<string, Promise<void>>()
  #last: Promise<unknown> = Promise.resolve()

  constructor(time = workTime) {
    this.#time = time
  }

  /**
   * Waits for a caller's turn. While `isContended` and the loop is busy, the caller's next turn comes only after several
   * pauses: most of the cost of a large body, such as its result and garbage collection, follows after its turn.
   */
  take(caller: string, isContended: () => boolean): Promise<void> {
    const turn = (this.#lastOf.get(caller) ?? Promise.resolve()).then(() => this.#begin())
    const rest = async (): Promise<void> => {
      const ms = await (await turn).tookMs
      for (let left = maxTurnPauses; left > 0 && isContended(); left--)
        if ((await this.#time.pause(ms)) < busyShare) break
      if (this.#lastOf.get(caller) === rested) this.#lastOf.delete(caller)
    }
    const rested = rest()
    this.#lastOf.set(caller, rested)
    return turn.then(({ begun }) => begun)
  }

  #begin() {
    const begun = this.#last.then(() => nextIteration())
    const tookMs = begun.then(async () => {
      const start = this.#time.now()
      await nextIteration()
      return Math.min(this.#time.now() - start, maxWorkTurnMs)
    })
    this.#last = tookMs.then((ms) => this.#time.pause(ms))
    return { begun, tookMs }
  }
}
