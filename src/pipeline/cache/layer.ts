import type { CacheStore, Mark } from '../../core/cache.ts'
import type { Call, Handler } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import type { Result } from '../../core/result.ts'
import { timeout } from '../timeout.ts'
import { createFlight, type Flight } from './flight.ts'
import type { Members } from './hints.ts'
import { keyOf, mayBeAsked } from './key.ts'
import { learn } from './lesson.ts'
import type { Plan } from './rules.ts'

export interface LayerOptions {
  readonly store: CacheStore
  readonly members: Members
  readonly clock: Clock
  readonly counts: Counts
  /** Changes when something does that servers can ask callers for. */
  callers(): string
}

export interface Counts {
  hits: number
  misses: number
  /** Calls that waited for the answer to another one. */
  joined: number
}

interface Started {
  readonly flight: Flight
  readonly mark: Mark
}

/** Where an answer belongs, as things were when it was asked for. */
interface Place {
  readonly key: string
  readonly mark: Mark
  readonly asCallersAre: string
}

/** What a caller may say in `_meta`: anything but `refresh` keeps its call out of the cache altogether. */
const wishKey = 'dev.toolway/cache'

/** Answers calls whose results may be kept, as their plans say. */
export function cacheLayer(options: LayerOptions): (call: Call, next: Handler, plan: Plan) => Promise<Result> {
  const { store, members, clock, counts, callers } = options
  const flights = new Map<string, Started>()
  const limited = timeout(clock)

  return (call, next, plan) => {
    const wish = call.input.meta[wishKey]
    if (call.input.rest !== undefined || (wish !== undefined && wish !== 'refresh')) return next(call)
    return answer(call, next, plan, wish !== undefined)
  }

  /** `due` is when the call's time is up, where it runs already. */
  async function answer(call: Call, next: Handler, plan: Plan, refresh: boolean, due?: number): Promise<Result> {
    const { learnt } = plan
    const asCallersAre = callers()
    const key = learnt.asks && mayBeAsked(call.caller.capabilities) ? undefined : keyOf(call, plan, asCallersAre)
    if (key === undefined) return next(call)
    const now = clock.monotonic()
    const asked = store.get(call.entry.server, key, now)
    const found = asked instanceof Promise ? await asked : asked
    if (found.bytes !== undefined && !refresh) {
      counts.hits++
      if (call.trail) call.trail.cache = 'hit'
      return { body: Json.raw(found.bytes), isError: false, cached: true }
    }
    const started = learnt.joins && !refresh ? flights.get(key) : undefined
    if (started?.mark !== found.mark) return begin(call, next, plan, { key, mark: found.mark, asCallersAre })
    counts.joined++
    if (call.trail) call.trail.cache = 'joined'
    const { flight } = started
    if (due !== undefined) return join(flight, call, next, plan, due)
    // Whoever begins a call is timed further on; who only waits for one must be timed here.
    return limited(call, (mine) => join(flight, mine, next, plan, now + timeOf(call)))
  }

  function begin(call: Call, next: Handler, plan: Plan, { key, mark, asCallersAre }: Place): Promise<Result> {
    // Nothing is begun for somebody who has gone already.
    call.signal.throwIfAborted()
    counts.misses++
    if (call.trail) call.trail.cache = 'miss'
    const wasPrivate = plan.learnt.private
    const over = () => {
      if (flights.get(key) === started) flights.delete(key)
    }
    const flight = createFlight(call, {
      landed(result) {
        const { keepMs, joins } = learn(result, plan, members)
        // It is the one under way no longer where its caller was asked something, or one that knows better has begun.
        if (keepMs > 0 && flights.get(key) === started) keep(result, keepMs)
        return joins
      },
      asked() {
        plan.learnt.asks = true
        over()
      },
      over,
    })
    const started = { flight, mark }
    flights.set(key, started)
    return flight.start(next)

    function keep({ body }: Result, ttlMs: number): void {
      // It may have become clear only now for whom it is.
      const under = plan.learnt.private === wasPrivate ? key : (keyOf(call, plan, asCallersAre) ?? key)
      void store.put(call.entry.server, under, { bytes: body.bytes, mark, ttlMs }, clock.monotonic())
    }
  }

  async function join(flight: Flight, call: Call, next: Handler, plan: Plan, due: number): Promise<Result> {
    const outcome = await flight.join(call)
    const again = () => answer(call, next, plan, false, due)
    if (outcome === undefined) return again()
    if ('error' in outcome) {
      if (isForAll(outcome.error, due - clock.monotonic(), timeOf(flight.lead))) throw outcome.error
      return again()
    }
    const isTheirs = plan.learnt.private && flight.lead.caller.principal !== call.caller.principal
    return isTheirs ? again() : { ...outcome.result, cached: true }
  }
}

const timeOf = ({ timeoutMs, entry }: Call): number => timeoutMs ?? entry.traits.timeoutMs

/** The error of a server that wants the caller to open an address first: it is made for that caller. */
const addressNeeded = -32042

/**
 * Whether a failure is that of all who waited. Its caller may have called it off; and where its time was up, those who
 * have more left than was not enough may try.
 */
function isForAll(error: unknown, leftMs: number, triedMs: number): boolean {
  if (error instanceof ServerError) return error.error.value.code !== addressNeeded
  if (!(error instanceof ToolwayError)) return true
  return error.code === 'TIMEOUT' ? leftMs <= triedMs : error.code !== 'CANCELLED'
}
