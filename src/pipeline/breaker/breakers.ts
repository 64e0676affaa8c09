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
  /** As it is now; undefined for what has no breaker, such as our own tools. */
  configOf(server: string): BreakerConfig | undefined
  readonly clock: Clock
  readonly log: Log
  random?(): number
}

/** The breakers of all servers (J3). */
export interface Breakers extends Disposable {
  readonly interceptor: Interceptor
  stateOf(server: string): BreakerStatus
  onChange(listener: (server: string, state: BreakerState) => void): Disposable
  /** The server fails at another replica: one failure here is enough to open its breaker, for a while. */
  hint(server: string): void
  /** The server is gone, or another one has its name now. */
  forget(server: string): void
}

/** How soon to come back while another call tries whether the server has recovered. */
const triedMs = 1_000

/** Holds calls back from servers that fail, so that nobody waits for them and they can recover. */
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

/** A timer may be early by a hair, and a place was perhaps waited for. */
const asGoodAsAll = 0.9

/** What it says about a server that a call to it ended with something thrown. Only its own failures count (J3). */
function outcomeOf(thrown: unknown, call: Call, tookMs: number): BreakerOutcome {
  if (thrown instanceof ServerError) return 'answered'
  // Once the call is over, whatever comes of it is the doing of whoever ended it.
  if (call.signal.aborted) return timedOut(call, tookMs) ? 'failed' : 'nothing'
  if (!(thrown instanceof ToolwayError) || !thrown.kind.serverFault) return 'nothing'
  // A server that was restarted forgets sessions, and all calls in one learn of it at the same time.
  return thrown.details.sessionEnded === 'established' ? 'nothing' : 'failed'
}

/** A server that had less time than the operator gives it may have been about to answer. */
function timedOut({ signal, timeoutMs, entry }: Call, tookMs: number): boolean {
  const own = entry.traits.timeoutMs
  const { reason } = signal
  const isTimeout = reason instanceof ToolwayError && reason.code === 'TIMEOUT' && !reason.details.late
  return isTimeout && (timeoutMs ?? own) >= own && tookMs >= own * asGoodAsAll
}
