import type { Call, Interceptor } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { callAgain } from '../call-again.ts'
import { type Breaker, type BreakerState, type BreakerStatus, createBreaker } from './breaker.ts'
import type { BreakerConfig } from './config.ts'
import { outcomeOf } from './outcome.ts'

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
