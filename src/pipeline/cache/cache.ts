import { randomUUID } from 'node:crypto'
import { type Call, type Handler, hasShare, type Interceptor, ownerKey, wrapPeer } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { endWith } from '../../core/deadline.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Result } from '../../core/result.ts'
import type { CacheStore, CacheUsage, Mark } from '../../core/stores.ts'
import { Json } from '../../json/json.ts'
import { timeOf, timeout } from '../timeout.ts'
import { keyOf, mayBeAsked } from './key.ts'
import { type CacheRules, type FindMembers, learn, type Plan } from './rules.ts'

export interface CacheOptions {
  readonly store: CacheStore
  readonly members: FindMembers
  readonly clock: Clock
}

/** The result cache (F13). It outlives configurations; each configuration has its own interceptor. */
export interface Cache {
  /** Undefined without rules: then nothing is cached. */
  interceptor(rules: CacheRules | undefined): Interceptor | undefined
  stats(): CacheStats
  invalidate(server: string): void
  clear(): void
  /** Must be called when data that servers can request from callers, such as their roots, has changed. */
  callersChanged(): void
}

export interface CacheStats extends CacheUsage, Readonly<CacheCounts> {}

export function cache({ store, members, clock }: CacheOptions): Cache {
  const counts: CacheCounts = { hits: 0, misses: 0, joined: 0 }
  // Part of every session's keys, so that they never match those from another process or an earlier run.
  const run = randomUUID()
  let callers = run
  let changes = 0

  /** Makes a call that writes, then drops the server's cached results: a caller must see its own changes. */
  const thenForget = async (call: Call, next: Handler): Promise<Result> => {
    try {
      const result = await next(call)
      await store.drop(call.entry.server)
      return result
    } catch (thrown) {
      if (mayHaveRun(thrown)) await store.drop(call.entry.server)
      throw thrown
    }
  }

  return {
    interceptor(rules) {
      if (rules === undefined) return undefined
      const layer = new CacheLayer({ store, members, clock, counts, callers: () => callers })
      return (call, next) => {
        const plan = rules(call.entry)
        if (plan === undefined) return next(call)
        return plan === 'writes' ? thenForget(call, next) : layer.handle(call, next, plan)
      }
    },
    stats: () => ({ ...counts, ...store.usage() }),
    invalidate: (server) => void store.drop(server),
    clear: () => void store.clear(),
    callersChanged() {
      callers = `${run}.${++changes}`
    },
  }
}

/** Whether a failed call may have changed something. Calls stopped by the breaker or the bulkhead cannot have. */
function mayHaveRun(thrown: unknown): boolean {
  if (!(thrown instanceof ToolwayError)) return true
  return thrown.details.unsent !== true && thrown.code !== 'CIRCUIT_OPEN' && thrown.code !== 'OVERLOADED'
}

interface LayerOptions extends CacheOptions {
  readonly counts: CacheCounts
  /** A value that changes whenever data that servers can request from callers changes. */
  callers(): string
}

interface CacheCounts {
  hits: number
  misses: number
  joined: number
}

interface CacheSlot {
  readonly key: string
  readonly mark: Mark
  /** The value of `callers` when the key was built. */
  readonly callersNow: string
}

/** The `_meta` key that controls the cache: `refresh` skips the lookup, any other value bypasses the cache. */
const wishKey = 'dev.toolway/cache'

/** Answers what a plan allows from the cache or from identical calls in flight. Belongs to one configuration. */
class CacheLayer {
  readonly #options: LayerOptions
  readonly #flights = new Map<string, { readonly flight: Flight; readonly mark: Mark }>()
  readonly #limited: Interceptor

  constructor(options: LayerOptions) {
    this.#options = options
    this.#limited = timeout(options.clock)
  }

  handle(call: Call, next: Handler, plan: Plan): Promise<Result> {
    const wish = call.input.meta[wishKey]
    if (call.input.rest !== undefined || (wish !== undefined && wish !== 'refresh')) return next(call)
    return this.#answer(call, next, plan, wish !== undefined)
  }

  /** Answers from the cache, a call in flight or the server. `due` is when the call times out, if it is being timed. */
  async #answer(call: Call, next: Handler, plan: Plan, refresh: boolean, due?: number): Promise<Result> {
    const { store, clock, counts } = this.#options
    const { learnt } = plan
    const callersNow = this.#options.callers()
    const key = learnt.asks && mayBeAsked(call.caller.capabilities) ? undefined : keyOf(call, plan, callersNow)
    if (key === undefined) return next(call)
    const now = clock.monotonic()
    const start = call.trail ? performance.now() : 0
    const lookup = store.get(call.entry.server, key, now)
    const found = lookup instanceof Promise ? await lookup : lookup
    if (call.trail) call.trail.lookup ??= { start, end: performance.now() }
    if (found.bytes !== undefined && !refresh) {
      counts.hits++
      if (call.trail) call.trail.cache = 'hit'
      return { body: Json.raw(found.bytes), isError: false, cached: true }
    }
    const started = learnt.joins && !refresh ? this.#flights.get(key) : undefined
    if (started?.mark !== found.mark) return this.#begin(call, next, plan, { key, mark: found.mark, callersNow })
    counts.joined++
    if (call.trail) call.trail.cache = 'joined'
    // The call that started the flight may have been sent, for this call too.
    call.starting?.()
    const { flight } = started
    if (due !== undefined) return this.#join(flight, call, next, plan, due)
    // The call that starts a flight is timed by a later interceptor; a joining call must be timed here.
    return this.#limited(call, (mine) => this.#join(flight, mine, next, plan, now + timeOf(call)))
  }

  #begin(call: Call, next: Handler, plan: Plan, slot: CacheSlot): Promise<Result> {
    // Do not start the call if its caller has already stopped waiting.
    call.signal.throwIfAborted()
    this.#options.counts.misses++
    if (call.trail) call.trail.cache = 'miss'
    const { key, mark } = slot
    const wasPrivate = plan.learnt.private
    const over = () => {
      if (this.#flights.get(key) === started) this.#flights.delete(key)
    }
    const flight = createFlight(call, {
      landed: (result) => {
        const { keepMs, joins } = learn(result, plan, this.#options.members)
        // Do not store the result if the server sent the caller a request or a newer flight has started.
        if (keepMs > 0 && this.#flights.get(key) === started) {
          // Build the key again if this result was the first to show that the results are private.
          const under = plan.learnt.private === wasPrivate ? key : (keyOf(call, plan, slot.callersNow) ?? key)
          this.#store(call, result, under, mark, keepMs)
        }
        return joins
      },
      asked() {
        plan.learnt.asks = true
        over()
      },
      over,
    })
    const started = { flight, mark }
    this.#flights.set(key, started)
    return flight.start(next)
  }

  #store({ caller, entry }: Call, { body }: Result, key: string, mark: Mark, ttlMs: number): void {
    const owner = hasShare(caller) ? caller.principal : undefined
    void this.#options.store.put(
      entry.server,
      key,
      { bytes: body.bytes, mark, ttlMs, owner },
      this.#options.clock.monotonic(),
    )
  }

  async #join(flight: Flight, call: Call, next: Handler, plan: Plan, due: number): Promise<Result> {
    const outcome = await flight.join(call)
    const again = () => this.#answer(call, next, plan, false, due)
    if (outcome === undefined) return again()
    if ('error' in outcome) {
      const leftMs = due - this.#options.clock.monotonic()
      if (isForAll(outcome.error, leftMs, timeOf(flight.lead))) throw outcome.error
      return again()
    }
    const isForeign = plan.learnt.private && ownerKey(flight.lead.caller) !== ownerKey(call.caller)
    return isForeign ? again() : { ...outcome.result, cached: true }
  }
}

/** Error code "URL elicitation required". The URL in such an error is meant for one caller only. */
const addressNeeded = -32042

/**
 * Whether a failure applies to all joined calls. It does not apply if it contains a URL for one caller, if the leading
 * caller cancelled, or if the leading call timed out and a joined call has more time left than the leading call had.
 */
function isForAll(error: unknown, leftMs: number, triedMs: number): boolean {
  if (error instanceof ServerError) return error.error.value.code !== addressNeeded
  if (!(error instanceof ToolwayError)) return true
  return error.code === 'TIMEOUT' ? leftMs <= triedMs : error.code !== 'CANCELLED'
}

/** What joined calls receive: a result, an error, or undefined if they have to make the call themselves. */
type Outcome = { readonly result: Result } | { readonly error: unknown } | undefined

type Flight = ReturnType<typeof createFlight>

interface FlightOptions {
  /** Receives the flight's result; returns whether joined calls may use it. */
  landed(result: Result): boolean
  /** Called when the server sent the lead's caller a request: the flight is now private to the lead. */
  asked(): void
  over(): void
}

/**
 * One call in flight, shared by all identical calls made at the same time (F13). Each of these calls waits with its own
 * signal; the flight is cancelled when none is waiting any more.
 */
function createFlight(lead: Call, options: FlightOptions) {
  const controller = new AbortController()
  const waiting = new Set<Call>()
  const { promise: outcome, resolve } = Promise.withResolvers<Outcome>()
  let landed = false

  const abandon = (reason: unknown) => {
    landed = true
    options.over()
    controller.abort(reason)
  }

  const wait = async <T>(call: Call, work: () => Promise<T>): Promise<T> => {
    waiting.add(call)
    try {
      return await endWith(call.signal, work())
    } finally {
      waiting.delete(call)
      if (waiting.size === 0 && !landed) abandon(call.signal.reason)
    }
  }

  const fly = async (next: Handler): Promise<Result> => {
    try {
      const result = await next({ ...lead, peer, signal: controller.signal })
      resolve(options.landed(result) ? { result } : undefined)
      return result
    } catch (error) {
      resolve({ error })
      throw error
    } finally {
      landed = true
      options.over()
    }
  }

  const peer = wrapPeer(lead.peer, {
    notify(method, params) {
      // Send progress to every waiting call, everything else only to the lead.
      const receivers = method === 'notifications/progress' ? [...waiting] : waiting.has(lead) ? [lead] : []
      for (const call of receivers) call.peer.notify(method, params)
    },
    ask(...params) {
      options.asked()
      resolve(undefined)
      if (waiting.has(lead)) return lead.peer.ask(...params)
      // The lead's caller has stopped waiting. Never pass the server's request on to another caller.
      const gone = new ToolwayError('CANCELLED', 'The caller of this request has disconnected.')
      if (!landed) abandon(gone)
      return Promise.reject(gone)
    },
  })

  return {
    lead,
    start: (next: Handler): Promise<Result> => wait(lead, () => fly(next)),
    join: (call: Call): Promise<Outcome> => wait(call, () => outcome),
  }
}
