import type { Clock } from '../core/clock.ts'
import { endWith } from '../core/deadline.ts'
import type { Tier } from '../core/executor.ts'
import { type FindRuntimeOptions, findRuntime, startDeadline } from './find-runtime.ts'
import { type Engine, type Runtime, type RuntimeSearch, runRefused, type SandboxChild, tiers } from './runtime.ts'

/** The runtimes that work here, each with a warm child. */
export interface RuntimePool extends AsyncDisposable {
  /** Finds a runtime by running a test program. Caches the result; if anything was missing, searches again later. */
  find(engine: Engine): Promise<RuntimeSearch>
  /** Takes an unused child. Rejects with a refusal or, if the signal aborts, with the signal's reason. */
  take(engine: Engine, signal: AbortSignal): Promise<{ readonly child: SandboxChild; readonly tier: Tier }>
}

/** A search, and how long its result stays valid. */
interface CachedSearch {
  readonly found: Promise<RuntimeSearch>
  result?: RuntimeSearch
  until: number
}

export function createRuntimePool(options: FindRuntimeOptions, look: typeof findRuntime = findRuntime): RuntimePool {
  const { limits, clock, log } = options
  const searches = new Map<Engine, CachedSearch>()
  const underWay = new Set<Promise<RuntimeSearch>>()
  const warmChildren = new Map<Engine, { runtime: Runtime; spare: ReturnType<typeof createWarmChild> }>()

  const find = (engine: Engine): Promise<RuntimeSearch> => {
    const before = searches.get(engine)
    if (before && clock.monotonic() < before.until) return before.found
    const found = look(engine, options).then((result) => stronger(before?.result, result))
    underWay.add(found)
    const now: CachedSearch = { found, until: Number.POSITIVE_INFINITY }
    // Keep using a working runtime while searching for a better one.
    const goesOn = before?.result?.runtime ? before : undefined
    if (goesOn) goesOn.until = now.until
    searches.set(engine, goesOn ?? now)
    void found.then((result) => {
      underWay.delete(found)
      now.result = result
      if (goesOn && searches.get(engine) === goesOn) searches.set(engine, now)
      if (result.missing.length === 0) return
      // Search again later: the machine may have been busy, or the missing packages may have been installed by then.
      now.until = clock.monotonic() + limits.againMs
      if (before) return
      const how = result.runtime ? `run only with isolation tier ${result.runtime.tier}` : 'cannot run'
      log.warn({ missing: result.missing }, `${engine} programs ${how}`)
    })
    return (goesOn ?? now).found
  }

  const spareOf = (engine: Engine, runtime: Runtime) => {
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
      if (!runtime) throw runRefused(`Programs in this language cannot run here. ${missing.join(' ')}`)
      try {
        return { child: await spareOf(engine, runtime).take(signal), tier: runtime.tier }
      } catch (error) {
        signal.throwIfAborted()
        // The runtime no longer works: search again next time.
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

/** The new search result, with the previous runtime unless the new runtime is stronger. */
function stronger(before: RuntimeSearch | undefined, now: RuntimeSearch): RuntimeSearch {
  const rank = ({ runtime }: RuntimeSearch) => (runtime ? tiers.indexOf(runtime.tier) : tiers.length)
  return before?.runtime && rank(now) >= rank(before) ? { ...now, runtime: before.runtime } : now
}

/** Keeps one child ready in advance. Each child is used once. */
export function createWarmChild(options: {
  start(): SandboxChild
  readonly startMs: number
  readonly idleMs: number
  readonly clock: Clock
}) {
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
    /** A ready child. Rejects if none can be started or the signal aborts. */
    async take(signal: AbortSignal): Promise<SandboxChild> {
      idle?.[Symbol.dispose]()
      const child = waiting ?? start()
      waiting = undefined
      await up(child, startMs, clock, signal)
      // Start the next child later, so that the caller does not have to wait while a process starts.
      setImmediate(refill)
      return child
    },
    [Symbol.asyncDispose](): Promise<void> {
      over = true
      return drop()
    },
  }
}

/** Waits until a child is ready, with a time limit. */
async function up(child: SandboxChild, startMs: number, clock: Clock, signal: AbortSignal): Promise<void> {
  using limit = startDeadline(clock, startMs, signal)
  try {
    await endWith(limit.signal, child.ready)
  } catch (error) {
    void child.kill()
    throw error
  }
}
