import type { Clock } from '../core/clock.ts'
import { waitFor } from '../core/deadline.ts'
import type { Tier } from '../core/executor.ts'
import { type FindRuntimeOptions, findRuntime } from './find-runtime.ts'
import { type Engine, type Runtime, type RuntimeSearch, runRefused, type SandboxChild, tiers } from './runtime.ts'

/** The ways to run programs that were found here, with a child of each ready for the next one. */
export interface RuntimePool extends AsyncDisposable {
  /** Looks by really running something: once, and again after a while where something was missing. */
  find(engine: Engine): Promise<RuntimeSearch>
  /** A child that nobody has used. Rejects with a refusal, or with the signal's reason. */
  take(engine: Engine, signal: AbortSignal): Promise<{ readonly child: SandboxChild; readonly tier: Tier }>
}

/** One search, and until when what it has come to holds. */
interface CachedSearch {
  readonly found: Promise<RuntimeSearch>
  result?: RuntimeSearch
  until: number
}

export function createRuntimePool(options: FindRuntimeOptions, look: typeof findRuntime = findRuntime): RuntimePool {
  const { limits, clock, log } = options
  const searches = new Map<Engine, CachedSearch>()
  const underWay = new Set<Promise<RuntimeSearch>>()
  const warmChildren = new Map<Engine, { readonly runtime: Runtime; readonly spare: WarmChild }>()

  const find = (engine: Engine): Promise<RuntimeSearch> => {
    const before = searches.get(engine)
    if (before && clock.monotonic() < before.until) return before.found
    const found = look(engine, options).then((result) => stronger(before?.result, result))
    underWay.add(found)
    const now: CachedSearch = { found, until: Number.POSITIVE_INFINITY }
    // Where there is a way, nobody waits for a better one.
    const goesOn = before?.result?.runtime ? before : undefined
    if (goesOn) goesOn.until = now.until
    searches.set(engine, goesOn ?? now)
    void found.then((result) => {
      underWay.delete(found)
      now.result = result
      if (goesOn && searches.get(engine) === goesOn) searches.set(engine, now)
      if (result.missing.length === 0) return
      // A machine may have been too busy only for a moment, and packages can be installed.
      now.until = clock.monotonic() + limits.againMs
      if (before) return
      const how = result.runtime ? `are held only by tier ${result.runtime.tier}` : 'cannot be run'
      log.warn({ missing: result.missing }, `programs for the engine of ${engine} ${how}`)
    })
    return (goesOn ?? now).found
  }

  const spareOf = (engine: Engine, runtime: Runtime): WarmChild => {
    const { startMs, idleMs } = limits
    const before = warmChildren.get(engine)
    if (before?.runtime === runtime) return before.spare
    void before?.spare[Symbol.asyncDispose]()
    const spare = createWarmChild({ start: runtime.start, startMs, idleMs, clock })
    warmChildren.set(engine, { runtime, spare })
    return spare
  }

  return {
    find,
    async take(engine, signal) {
      const { runtime, missing } = await find(engine)
      if (!runtime) throw runRefused(`Programs in this language cannot be run here. ${missing.join(' ')}`)
      try {
        return { child: await spareOf(engine, runtime).take(signal), tier: runtime.tier }
      } catch (error) {
        signal.throwIfAborted()
        // What worked once does no longer: look again next time.
        searches.delete(engine)
        throw runRefused(`The sandbox could not be started (${(error as Error).message}); try again.`)
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(underWay)
      await Promise.all([...warmChildren.values()].map(({ spare }) => spare[Symbol.asyncDispose]()))
    },
  }
}

/** What works goes on, with a child that is ready, unless there is something stronger. */
function stronger(before: RuntimeSearch | undefined, now: RuntimeSearch): RuntimeSearch {
  const rank = ({ runtime }: RuntimeSearch) => (runtime ? tiers.indexOf(runtime.tier) : tiers.length)
  return before?.runtime && rank(now) >= rank(before) ? { ...now, runtime: before.runtime } : now
}

/** A child that has come up before anybody needs it. Each is used once, and by one program or environment alone. */
interface WarmChild extends AsyncDisposable {
  /** A child that is ready; rejects where none can be had, or when the signal aborts. */
  take(signal: AbortSignal): Promise<SandboxChild>
}

export function createWarmChild(options: {
  start(): SandboxChild
  readonly startMs: number
  readonly idleMs: number
  readonly clock: Clock
}): WarmChild {
  const { start, startMs, idleMs, clock } = options
  let waiting: SandboxChild | undefined
  let idle: Disposable | undefined
  let over = false

  const drop = async () => {
    idle?.[Symbol.dispose]()
    const dropped = waiting
    waiting = undefined
    await dropped?.kill()
  }

  const refill = () => {
    if (over || waiting) return
    const child = start()
    waiting = child
    idle = clock.after(idleMs, () => void drop())
    void child.ended.then(() => {
      if (waiting === child) void drop()
    })
  }

  return {
    async take(signal) {
      idle?.[Symbol.dispose]()
      const child = waiting ?? start()
      waiting = undefined
      await up(child, startMs, clock, signal)
      // After the program has been handed over: starting a process takes a moment.
      setImmediate(refill)
      return child
    },
    [Symbol.asyncDispose]() {
      over = true
      return drop()
    },
  }
}

/** Waits until a child is ready, but not for ever. */
async function up(child: SandboxChild, startMs: number, clock: Clock, signal: AbortSignal): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = clock.after(startMs, () =>
    reject(new Error(`it did not come up within ${startMs / 1000} s (a fixed limit)`)),
  )
  try {
    await waitFor(Promise.race([child.ready, promise]), signal)
  } catch (error) {
    void child.kill()
    throw error
  } finally {
    timer[Symbol.dispose]()
  }
}
