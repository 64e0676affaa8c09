import type { Config } from '../config/schema.ts'
import type { Call } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { SourceStatus } from '../core/source-status.ts'
import { callAgain } from '../lib/duration.ts'
import { listen } from '../lib/listen.ts'
import { setBounded } from '../lib/memoize.ts'
import type { AttemptStep } from './attempt.ts'
import { slotTimeOf } from './bulkhead.ts'

export type BreakerState = SourceStatus['breaker']

export interface BreakerStatus {
  readonly state: BreakerState
  /** Milliseconds since the epoch. */
  readonly since: number
  readonly failures: number
  readonly retryAfterMs?: number
  /** Why the breaker opened; kept until it closes. */
  readonly reason?: string
}

export type BreakerConfig = Config['breaker']

interface BreakerSettings {
  readonly breaker: BreakerConfig
  readonly mcpServers: Readonly<Record<string, Pick<Config['mcpServers'][string], 'breaker'>>>
}

/** Each server's settings: its own, with defaults from the `breaker` section. */
export function breakerConfigs({ breaker, mcpServers }: BreakerSettings): BreakersOptions['configOf'] {
  const configs = new Map(
    Object.entries(mcpServers).map(([server, own]) => [server, { ...breaker, ...own.breaker } as BreakerConfig]),
  )
  return (server) => configs.get(server)
}

export interface BreakersOptions {
  /** The current settings; undefined for sources without a breaker, such as our own tools. */
  configOf(server: string): BreakerConfig | undefined
  readonly clock: Clock
  readonly log: Log
  random?(): number
}

/** The circuit breakers, one per server (J3). */
export interface Breakers extends Disposable {
  /** Refuses calls to failing servers, and learns how the others end. */
  readonly step: AttemptStep
  stateOf(server: string): BreakerStatus
  onChange(listener: (server: string, state: BreakerState) => void): Disposable
  hint(server: string): void
  /** Drops a server's breaker, because the server was removed or its name now belongs to another server. */
  forget(server: string): void
}

/** The Retry-After value while another call is probing the server. */
const triedMs = 1_000

/** Blocks calls to failing servers, so that callers fail fast and the servers can recover. */
export function createBreakers({ configOf, clock, log, random = Math.random }: BreakersOptions): Breakers {
  const breakers = new Map<string, Breaker>()
  const listeners = new Set<(server: string, state: BreakerState) => void>()
  const start = clock.now()

  const breakerOf = (server: string): Breaker | undefined => {
    const known = breakers.get(server)
    if (known) return known
    const first = configOf(server)
    if (!first) return undefined
    const config = () => configOf(server) ?? first
    const changed = (state: BreakerState) => {
      logChange(log, server, state, breaker)
      for (const listener of listeners) listener(server, state)
    }
    const breaker: Breaker = new Breaker({ config, start, clock, random, changed })
    breakers.set(server, breaker)
    return breaker
  }

  return {
    step(call) {
      const breaker = breakerOf(call.entry.server)
      if (!breaker) return undefined
      const ticket = breaker.enter(call.caller.principal)
      if (ticket === undefined) throw heldBack(call, breaker)
      const began = clock.monotonic()
      return (failure) => {
        if (failure === undefined) {
          breaker.leave(ticket, 'answered')
          return
        }
        const now = clock.monotonic()
        const outcome = outcomeOf(failure.thrown, call, now - began)
        // A call that spent most of its time in the queue, because the server was starting, says nothing about it.
        const wasQueued = now - (slotTimeOf(call) ?? began) < (now - began) / 2
        breaker.leave(ticket, outcome === 'timed-out' && wasQueued ? 'nothing' : outcome)
      }
    },
    stateOf: (server) => breakers.get(server)?.status ?? { state: 'closed', since: start, failures: 0 },
    onChange: (listener) => listen(listeners, listener),
    hint(server) {
      const sentence = 'calls to the server are failing on another replica; the next failure here opens the breaker'
      if (breakerOf(server)?.hint()) log.info({ server }, sentence)
    },
    forget(server) {
      breakers.get(server)?.[Symbol.dispose]()
      breakers.delete(server)
    },
    [Symbol.dispose]() {
      for (const breaker of breakers.values()) breaker[Symbol.dispose]()
      breakers.clear()
    },
  }
}

function heldBack({ entry: { server } }: Call, { status }: Breaker): ToolwayError {
  const { reason, retryAfterMs = triedMs } = status
  const what =
    status.state === 'open'
      ? `The circuit breaker for server ${server} is open because ${reason}`
      : `Server ${server} failed recently, and another call is testing whether it has recovered`
  const sentence = `${what}. Nothing was sent: ${callAgain(retryAfterMs)}, or use another server.`
  return new ToolwayError('CIRCUIT_OPEN', sentence, { server, retryAfterMs })
}

function logChange(log: Log, server: string, state: BreakerState, { status: { reason, retryAfterMs } }: Breaker): void {
  if (state === 'closed') log.info({ server }, 'breaker closed: the server is working again')
  else if (state === 'half-open') log.info({ server }, 'breaker half-open: trying the server again')
  else log.warn({ server, reason, forMs: retryAfterMs }, 'breaker opened: the server is failing')
}

/**
 * A timeout counts as a failure if the server had at least this share of the timeout. The share is below 1 because
 * timers can fire slightly early and the call may have waited in a queue.
 */
const fullTimeShare = 0.9

/** Classifies a thrown error. Only the server's own failures count (J3). */
function outcomeOf(thrown: unknown, call: Call, tookMs: number): BreakerOutcome {
  if (thrown instanceof ServerError) return 'answered'
  // After an abort, the thrown error says nothing about the server; the abort reason does.
  if (call.signal.aborted) return timedOut(call, tookMs) ? 'timed-out' : 'nothing'
  if (!(thrown instanceof ToolwayError) || !thrown.kind.serverFault) return 'nothing'
  const { sessionEnded, requestOnly } = thrown.details
  // Do not count calls whose session ended: when a server restarts, all calls in a session fail at once. Do not
  // count failures that a caller's arguments can cause either: one caller could make the server unavailable to all.
  return sessionEnded === 'established' || requestOnly ? 'nothing' : 'failed'
}

/** A timeout counts as a failure only if the server had as much time as the operator allows. */
function timedOut({ signal, timeoutMs, entry, earlierMs = 0 }: Call, tookMs: number): boolean {
  const own = entry.traits.timeoutMs
  const { reason } = signal
  const isTimeout = reason instanceof ToolwayError && reason.code === 'TIMEOUT' && !reason.details.late
  return isTimeout && (timeoutMs ?? own) >= own && tookMs + earlierMs >= own * fullTimeShare
}

/**
 * What a call shows about its server. `nothing` means that the call does not count. `timed-out` counts as a failure
 * unless the server has answered another call since this one began: then only this call, or its tool, is slow.
 */
type BreakerOutcome = 'answered' | 'failed' | 'timed-out' | 'nothing'

/** A call, and the breaker as it was when the call began. */
interface BreakerTicket {
  readonly principal: string
  readonly isProbe: boolean
  readonly time: number
  readonly answers: number
}

/** Maximum number of callers whose latest call is remembered as answered. */
const maxAnswered = 100

/** The open time doubles with each failed probe, up to this limit (or `openFor`, if that is longer). */
const maxPauseMs = 120_000

/** Maximum random reduction of the open time, so that breakers that opened together do not probe together. */
const jitter = 0.2

interface BreakerOptions extends Required<Pick<BreakersOptions, 'clock' | 'random'>> {
  /** Returns the settings. They are read on each use, so that a reload applies from the next call on. */
  config(): BreakerConfig
  readonly start: number
  changed(state: BreakerState): void
}

/**
 * A server's circuit breaker: lets all calls through when closed, none when open, and a few probes when half-open. One
 * caller, whose own arguments may be why its calls fail, must not cut off the others (V6): its failures do not count
 * while the server answers others, and as long as only its calls have failed, others are let through in any state.
 */
class Breaker implements Disposable {
  readonly #options: BreakerOptions
  readonly #window = new CallWindow()
  #state: BreakerState = 'closed'
  #since: number
  #failures = 0
  #reason = ''
  /** Incremented with each state change; tickets from an earlier state are ignored. */
  #time = 0
  /**
   * How many calls the server has answered, in any state. Health checks do not count, because a server whose calls all
   * hang may still answer them.
   */
  #answers = 0
  /** When the server last answered a caller whose latest call did not fail; the latest is last. */
  readonly #answered = new Map<string, number>()
  /** Callers whose failures have counted since the last answer or the last failed probe. Two are enough to know. */
  #failing: readonly string[] = []
  #probes = 0
  #openings = 0
  #until = 0
  #hintedUntil = 0
  #timer: Disposable | undefined

  constructor(options: BreakerOptions) {
    this.#options = options
    this.#since = options.start
  }

  get status(): BreakerStatus {
    const base = { state: this.#state, since: this.#since, failures: this.#failures }
    if (this.#state === 'closed') return base
    if (this.#state === 'half-open') return { ...base, reason: this.#reason }
    const retryAfterMs = Math.max(Math.ceil(this.#until - this.#options.clock.monotonic()), 1)
    return { ...base, reason: this.#reason, retryAfterMs }
  }

  /** Returns a ticket to pass to `leave`, or undefined if the call must not proceed. */
  enter(principal: string): BreakerTicket | undefined {
    const isProbe = this.#state !== 'closed' && !(this.#failing.length === 1 && this.#failing[0] !== principal)
    if (isProbe) {
      if (this.#state === 'open' || this.#probes >= this.#options.config().halfOpenCalls) return undefined
      this.#probes++
    }
    return { principal, isProbe, time: this.#time, answers: this.#answers }
  }

  leave(ticket: BreakerTicket, outcome: BreakerOutcome): void {
    const { principal, isProbe } = ticket
    // Also count answers to calls that began in an earlier state: they show that the server is alive.
    if (outcome === 'answered') {
      this.#answers++
      setBounded(this.#answered, principal, this.#options.clock.monotonic(), maxAnswered)
    } else if (outcome !== 'nothing') this.#answered.delete(principal)
    const hasAnsweredSince = ticket.answers !== this.#answers
    if (ticket.time !== this.#time) {
      // Calls may take longer than the breaker stays open. Without this, such calls would never be held back.
      if (this.#state !== 'closed' && outcome !== 'nothing' && !hasAnsweredSince) this.#noteFailing(principal)
      return
    }
    if (isProbe) this.#probes--
    if (outcome === 'answered') this.#succeeded()
    // A probe that fails has shown no recovery, whatever else the server answered.
    else if (outcome === 'failed' && (isProbe || !this.#answersOthers(principal))) this.#failed(ticket)
    else if (outcome === 'timed-out' && (isProbe || !hasAnsweredSince)) this.#failed(ticket)
  }

  /**
   * Reports that the server is failing on another replica: for the next `openFor`, a single failure opens this
   * breaker. Returns whether the report is new: true if this breaker is closed and no earlier report is in effect.
   */
  hint(): boolean {
    if (this.#state !== 'closed') return false
    const now = this.#options.clock.monotonic()
    const isNew = now >= this.#hintedUntil
    this.#hintedUntil = now + this.#options.config().openFor
    return isNew
  }

  [Symbol.dispose](): void {
    this.#time++
    this.#timer?.[Symbol.dispose]()
  }

  #become(next: BreakerState): void {
    this.#time++
    this.#state = next
    this.#since = this.#options.clock.now()
    this.#options.changed(next)
  }

  #open(reason: string): void {
    const { clock, random, config } = this.#options
    const { openFor } = config()
    const pause = Math.min(openFor * 2 ** this.#openings, Math.max(openFor, maxPauseMs))
    const pauseMs = this.#openings++ === 0 ? pause : Math.round(pause * (1 - jitter * random()))
    this.#reason = reason
    this.#until = clock.monotonic() + pauseMs
    this.#timer = clock.after(pauseMs, () => {
      this.#probes = 0
      this.#become('half-open')
    })
    this.#become('open')
  }

  #close(): void {
    this.#timer?.[Symbol.dispose]()
    this.#failures = 0
    this.#openings = 0
    this.#window.clear()
    this.#become('closed')
  }

  /** Whether the server has recently answered another caller, none of whose calls has failed since. */
  #answersOthers(principal: string): boolean {
    const oldest = this.#options.clock.monotonic() - this.#options.config().window
    for (const [other, at] of this.#answered) if (other !== principal && at > oldest) return true
    return false
  }

  #noteFailing(principal: string): void {
    if (this.#failing.length < 2 && this.#failing[0] !== principal) this.#failing = [...this.#failing, principal]
  }

  #failed({ principal, isProbe }: BreakerTicket): void {
    const { failures: maxFailures, rate, minimumCalls, window: lengthMs } = this.#options.config()
    if (isProbe) this.#failing = [principal]
    else this.#noteFailing(principal)
    if (this.#state === 'open' || (this.#state === 'half-open' && !isProbe)) return
    const failures = ++this.#failures
    const window = this.#window
    const now = this.#options.clock.monotonic()
    window.add(true, now, lengthMs)
    if (isProbe) this.#open('it failed again when it was tested')
    else if (failures >= maxFailures) this.#open(failures === 1 ? 'a call failed' : `${failures} calls in a row failed`)
    else if (now < this.#hintedUntil) this.#open('a call failed here and on another replica')
    else if (window.calls >= minimumCalls && window.failures >= window.calls * rate)
      this.#open(`${window.failures} of its last ${window.calls} calls failed`)
  }

  #succeeded(): void {
    this.#failing = []
    if (this.#state !== 'closed') {
      this.#close()
      return
    }
    this.#failures = 0
    this.#hintedUntil = 0
    this.#window.add(false, this.#options.clock.monotonic(), this.#options.config().window)
  }
}

/** Number of slices in the window, which moves by whole slices, so it can be up to a tenth shorter than configured. */
const slices = 10

/** Counts recent calls and failures in constant memory. */
export class CallWindow {
  calls = 0
  failures = 0
  readonly #callsIn = new Array<number>(slices).fill(0)
  readonly #failuresIn = new Array<number>(slices).fill(0)
  #lengthMs = 0
  /** Number of the newest slice, counted from the clock's zero. */
  #latest = 0

  add(failed: boolean, now: number, lengthMs: number): void {
    if (lengthMs !== this.#lengthMs) this.clear()
    this.#lengthMs = lengthMs
    const slice = Math.floor(now / Math.ceil(lengthMs / slices))
    if (slice !== this.#latest) this.#moveTo(slice)
    const place = slice % slices
    this.#callsIn[place] = (this.#callsIn[place] as number) + 1
    this.calls++
    if (!failed) return
    this.#failuresIn[place] = (this.#failuresIn[place] as number) + 1
    this.failures++
  }

  clear(): void {
    this.#callsIn.fill(0)
    this.#failuresIn.fill(0)
    this.calls = 0
    this.failures = 0
  }

  #moveTo(slice: number): void {
    // Also start over if the clock was set back: otherwise old counts would stay until it catches up.
    if (slice < this.#latest || slice - this.#latest >= slices) this.clear()
    else {
      for (let next = this.#latest + 1; next <= slice; next++) {
        const place = next % slices
        this.calls -= this.#callsIn[place] as number
        this.failures -= this.#failuresIn[place] as number
        this.#callsIn[place] = 0
        this.#failuresIn[place] = 0
      }
    }
    this.#latest = slice
  }
}
