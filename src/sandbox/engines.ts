import type { Tier } from '../core/executor.ts'
import type { Child } from './child.ts'
import type { Engine, Runtime, Search } from './runtime.ts'
import { type SearchOptions, search } from './search.ts'
import { createSpare, type Spare } from './spare.ts'
import { refused } from './stopped.ts'

/** The ways to run programs that were found here, with a child of each ready for the next one. */
export interface Engines extends AsyncDisposable {
  /** Looks by really running something: once, or again after a while where something was missing. */
  find(engine: Engine): Promise<Search>
  /** A child that nobody has used. Rejects with a refusal, or with the signal's reason. */
  take(engine: Engine, signal: AbortSignal): Promise<{ readonly child: Child; readonly tier: Tier }>
}

export function createEngines(options: SearchOptions): Engines {
  const { limits, clock, log } = options
  const searches = new Map<Engine, { readonly found: Promise<Search>; until: number }>()
  const spares = new Map<Engine, { readonly runtime: Runtime; readonly spare: Spare }>()

  const find = (engine: Engine): Promise<Search> => {
    const before = searches.get(engine)
    if (before && clock.now() < before.until) return before.found
    const now = { found: search(engine, options), until: Number.POSITIVE_INFINITY }
    searches.set(engine, now)
    void now.found.then(({ runtime, missing }) => {
      if (missing.length === 0) return
      // A machine may have been too busy only for a moment, and packages can be installed.
      now.until = clock.now() + limits.againMs
      if (before) return
      const how = runtime ? `are held only by tier ${runtime.tier}` : 'cannot be run'
      log.warn({ missing }, `programs for the engine of ${engine} ${how}`)
    })
    return now.found
  }

  const spareOf = (engine: Engine, runtime: Runtime): Spare => {
    const { startMs, idleMs } = limits
    const before = spares.get(engine)
    if (before?.runtime === runtime) return before.spare
    void before?.spare[Symbol.asyncDispose]()
    const spare = createSpare({ start: runtime.start, startMs, idleMs, clock })
    spares.set(engine, { runtime, spare })
    return spare
  }

  return {
    find,
    async take(engine, signal) {
      const { runtime, missing } = await find(engine)
      if (!runtime) throw refused(`Programs in this language cannot be run here. ${missing.join(' ')}`)
      try {
        return { child: await spareOf(engine, runtime).take(signal), tier: runtime.tier }
      } catch (error) {
        signal.throwIfAborted()
        // What worked once does no longer: look again next time.
        searches.delete(engine)
        throw refused(`The sandbox could not be started (${(error as Error).message}); try again.`)
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...spares.values()].map(({ spare }) => spare[Symbol.asyncDispose]()))
    },
  }
}
