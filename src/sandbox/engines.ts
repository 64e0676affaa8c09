import type { Tier } from '../core/executor.ts'
import type { Child } from './child.ts'
import type { Engine, Runtime, Search } from './runtime.ts'
import { type SearchOptions, search } from './search.ts'
import { createSpare, type Spare } from './spare.ts'
import { refused } from './stopped.ts'

/** The ways to run programs that were found here, with a child of each ready for the next one. */
export interface Engines extends AsyncDisposable {
  /** Looks once, by really running something. */
  find(engine: Engine): Promise<Search>
  /** A child that nobody has used. Rejects with a refusal, or with the signal's reason. */
  take(engine: Engine, signal: AbortSignal): Promise<{ readonly child: Child; readonly tier: Tier }>
}

export function createEngines(options: SearchOptions): Engines {
  const { limits, clock } = options
  const searches = new Map<Engine, Promise<Search>>()
  const spares = new Map<Runtime, Spare>()

  const find = (engine: Engine): Promise<Search> => {
    const found = searches.get(engine) ?? search(engine, options)
    searches.set(engine, found)
    return found
  }

  const spareOf = (runtime: Runtime): Spare => {
    const { startMs, idleMs } = limits
    const spare = spares.get(runtime) ?? createSpare({ start: runtime.start, startMs, idleMs, clock })
    spares.set(runtime, spare)
    return spare
  }

  return {
    find,
    async take(engine, signal) {
      const { runtime, missing } = await find(engine)
      if (!runtime) throw refused(`Programs in this language cannot be run here. ${missing.join(' ')}`)
      try {
        return { child: await spareOf(runtime).take(signal), tier: runtime.tier }
      } catch (error) {
        signal.throwIfAborted()
        // What worked once does no longer: look again next time.
        searches.delete(engine)
        throw refused(`The sandbox could not be started (${(error as Error).message}); try again.`)
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...spares.values()].map((spare) => spare[Symbol.asyncDispose]()))
    },
  }
}
