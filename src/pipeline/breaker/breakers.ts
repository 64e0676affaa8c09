import type { Call, Interceptor } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { callAgain } from '../../lib/duration.ts'
import {
  type Breaker,
  type BreakerConfig,
  type BreakerOutcome,
  type BreakerState,
  type BreakerStatus,
  createBreaker,
} from './breaker.ts'

export interface BreakersOptions {
  /** The current settings; undefined for sources without a breaker, such as our own tools. */
  configOf(server: string): BreakerConfig | undefined
  readonly clock: Clock
  readonly log: Log
  random?(): number
}

/** One per server (J3). */
export interface Breakers extends Disposable {
  readonly interceptor: Interceptor
  stateOf(server: string): BreakerStatus
  onChange(listener: (server: string, state: BreakerState) => void): Disposable
  hint(server: string): void
  /** The server was removed, or its name now belongs to another one. */
  forget(server: string): void
}

/** Retry-After while another call probes the server. */
const triedMs = 1_000

/** Blocks calls to failing servers, so that callers do not wait and the servers can recover. */
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
      tell(log, server, state, breaker)
      for (const listener of listeners) listener(server, state)
    }
    const breaker = createBreaker({ config, start, clock, random, changed })
    breakers.set(server, breaker)
    return breaker
  }

  return {
    async interceptor(call, next) {
      const breaker = breakerOf(call.entry.server)
      if (!breaker) return next(call)
      const ticket = breaker.enter()
      if (ticket === undefined) throw heldBack(call, breaker)
      const began = clock.monotonic()
      try {
        const result = await next(call)
        breaker.leave(ticket, 'answered')
        return result
      } catch (thrown) {
        breaker.leave(ticket, outcomeOf(thrown, call, clock.monotonic() - began))
        throw thrown
      }
    },
    stateOf: (server) => breakers.get(server)?.status ?? { state: 'closed', since: start, failures: 0 },
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => listeners.delete(listener) }
    },
    hint(server) {
      if (breakerOf(server)?.hint())
        log.info({ server }, 'a server fails at another replica: the next failure here opens its breaker')
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
      ? `The server ${server} is left alone for now, because ${reason}`
      : `The server ${server} has failed, and another call is trying just now whether it works again`
  const sentence = `${what}. Nothing was sent: ${callAgain(retryAfterMs)}, or use another server.`
  return new ToolwayError('CIRCUIT_OPEN', sentence, { server, retryAfterMs })
}

function tell(log: Log, server: string, state: BreakerState, { status: { reason, retryAfterMs } }: Breaker): void {
  if (state === 'closed') log.info({ server }, 'a server works again: its breaker has closed')
  else if (state === 'half-open') log.info({ server }, 'a server is tried again: its breaker is half-open')
  else log.warn({ server, reason, forMs: retryAfterMs }, 'a server fails: its breaker has opened')
}

/** Timers can fire slightly early, and the call may have waited in a queue. */
const asGoodAsAll = 0.9

/** Classifies a thrown error. Only the server's own failures count (J3). */
function outcomeOf(thrown: unknown, call: Call, tookMs: number): BreakerOutcome {
  if (thrown instanceof ServerError) return 'answered'
  // After an abort, the error only reflects who aborted the call.
  if (call.signal.aborted) return timedOut(call, tookMs) ? 'failed' : 'nothing'
  if (!(thrown instanceof ToolwayError) || !thrown.kind.serverFault) return 'nothing'
  // A restarted server loses its sessions, and all calls in one session fail at the same time.
  return thrown.details.sessionEnded === 'established' ? 'nothing' : 'failed'
}

/** A timeout counts only if the server had the time that the operator allows it. */
function timedOut({ signal, timeoutMs, entry }: Call, tookMs: number): boolean {
  const own = entry.traits.timeoutMs
  const { reason } = signal
  const isTimeout = reason instanceof ToolwayError && reason.code === 'TIMEOUT' && !reason.details.late
  return isTimeout && (timeoutMs ?? own) >= own && tookMs >= own * asGoodAsAll
}
