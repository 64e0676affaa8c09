import type { Clock } from '../../core/clock.ts'
import type { SourceStatus } from '../../core/source-status.ts'
import type { BreakerConfig } from './config.ts'
import type { Outcome } from './outcome.ts'
import { createWindow } from './window.ts'

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
  leave(ticket: number, outcome: Outcome): void
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
