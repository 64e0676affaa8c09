import type { Config } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import type { SourceStatus } from '../../core/source-status.ts'

/** What a call shows about its server: it works, it fails, or nothing. */
export type BreakerOutcome = 'answered' | 'failed' | 'nothing'

export type BreakerState = SourceStatus['breaker']

export interface BreakerStatus {
  readonly state: BreakerState
  /** Since when, in milliseconds since the epoch. */
  readonly since: number
  /** Failures in a row. */
  readonly failures: number
  /** How long nothing is let through, while that is so. */
  readonly retryAfterMs?: number
  /** Why it opened, until it closes. */
  readonly reason?: string
}

/** Stands before one server: closed lets calls through, open lets none, half-open a few that try. */
export interface Breaker extends Disposable {
  readonly status: BreakerStatus
  /** Lets a call through, for which `leave` is due with what is given here; undefined if it must not go on. */
  enter(): number | undefined
  leave(ticket: number, outcome: BreakerOutcome): void
  /**
   * The server fails elsewhere: until it has answered here, or for as long as it would be left alone, one failure is
   * enough. Holds back nothing by itself. Tells whether that is news.
   */
  hint(): boolean
}

export interface BreakerOptions {
  /** As it is now: a configuration that is loaded anew counts from the next call on. */
  config(): BreakerConfig
  /** Since when it counts as closed. */
  readonly start: number
  readonly clock: Clock
  random(): number
  changed(state: BreakerState): void
}

/** However often it fails to come back, a server is tried again within two minutes, unless it is given longer anyway. */
const maxPauseMs = 120_000

/** Gateways that gave up together do not come back together. */
const jitter = 0.2

export function createBreaker({ config, start, clock, random, changed }: BreakerOptions): Breaker {
  const window = createWindow()
  let state: BreakerState = 'closed'
  let since = start
  let failures = 0
  let reason = ''
  /** Each change begins a new time: calls that were let through in an older one have no say any more. */
  let time = 0
  let probes = 0
  /** How often it has opened without having closed in between. */
  let openings = 0
  let until = 0
  let hintedUntil = 0
  let timer: Disposable | undefined

  const become = (next: BreakerState) => {
    time++
    state = next
    since = clock.now()
    changed(next)
  }

  const open = (because: string) => {
    const { openFor } = config()
    const longest = Math.max(openFor, maxPauseMs)
    const pause = Math.min(openFor * 2 ** openings, longest)
    const pauseMs = openings++ === 0 ? pause : Math.round(pause * (1 - jitter * random()))
    reason = because
    until = clock.monotonic() + pauseMs
    timer = clock.after(pauseMs, () => {
      probes = 0
      become('half-open')
    })
    become('open')
  }

  const close = () => {
    failures = 0
    openings = 0
    window.clear()
    become('closed')
  }

  const isHinted = () => clock.monotonic() < hintedUntil

  const failed = () => {
    const { failures: most, rate, minimumCalls, window: lengthMs } = config()
    failures++
    window.add(true, clock.monotonic(), lengthMs)
    if (state === 'half-open') open('it failed again when it was tried')
    else if (failures >= most) open(failures === 1 ? 'a call failed' : `${failures} calls in a row failed`)
    else if (isHinted()) open('a call failed, as calls of another replica did')
    else if (window.calls >= minimumCalls && window.failures >= window.calls * rate)
      open(`${window.failures} of its last ${window.calls} calls failed`)
  }

  const answered = () => {
    if (state === 'half-open') return close()
    failures = 0
    hintedUntil = 0
    window.add(false, clock.monotonic(), config().window)
  }

  return {
    get status() {
      if (state === 'closed') return { state, since, failures }
      if (state === 'half-open') return { state, since, failures, reason }
      return { state, since, failures, reason, retryAfterMs: Math.max(Math.ceil(until - clock.monotonic()), 1) }
    },
    enter() {
      if (state === 'closed') return time
      if (state === 'open' || probes >= config().halfOpenCalls) return undefined
      probes++
      return time
    },
    leave(ticket, outcome) {
      if (ticket !== time) return
      if (state === 'half-open') probes--
      if (outcome === 'failed') failed()
      else if (outcome === 'answered') answered()
    },
    hint() {
      if (state !== 'closed') return false
      const news = !isHinted()
      hintedUntil = clock.monotonic() + config().openFor
      return news
    },
    [Symbol.dispose]() {
      time++
      timer?.[Symbol.dispose]()
    },
  }
}

/** How finely the window moves: what is counted is up to a tenth of its length younger than the window says. */
const slices = 10

/** How many calls there were lately, and how many of them failed; as large with a million of them as with one. */
interface Window {
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

/** When the breaker of one server opens, and how it closes again. */
export type BreakerConfig = Config['breaker']

interface Written {
  readonly breaker: BreakerConfig
  readonly mcpServers: Readonly<Record<string, Pick<Config['mcpServers'][string], 'breaker'>>>
}

/** What holds for each server: its own words, and those of the section `breaker` where it is silent. */
export function breakerConfigs({ breaker, mcpServers }: Written): (server: string) => BreakerConfig | undefined {
  const configs = new Map(
    Object.entries(mcpServers).map(([server, own]) => [server, { ...breaker, ...own.breaker } as BreakerConfig]),
  )
  return (server) => configs.get(server)
}
