import { availableParallelism } from 'node:os'
import type { Config } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import { endWith } from '../core/deadline.ts'
import type { Tier } from '../core/executor.ts'
import { Budget, type Budgets } from '../core/limits/budget.ts'
import type { Log } from '../core/log.ts'
import { findProgram } from '../process/programs.ts'
import { javascriptInBwrap, javascriptProcess, javascriptWorker } from './launch/javascript.ts'
import { type LaunchOptions, UnmappedUser } from './launch/process-child.ts'
import { findInterpreters, pythonInBwrap } from './launch/python.ts'
import { ChildRun } from './run-in-child.ts'
import {
  type Engine,
  type Limits,
  type ReadyChild,
  type Runtime,
  type RuntimeSearch,
  runRefused,
  taskLimits,
  tiers,
} from './runtime.ts'
import { ChildDemand, startDeadline, WarmChildren } from './warm-children.ts'

export type RuntimePool = ReturnType<typeof createRuntimePool>

/** A search, and how long its result stays valid. */
interface CachedSearch {
  found: Promise<RuntimeSearch>
  result?: RuntimeSearch | undefined
  until: number
}

/** How many children may wait for programs, per core that starts them. */
const sparesPerCore = 8

/** The runtimes that work here, each with warm children. */
export function createRuntimePool(options: FindRuntimeOptions, look: typeof findRuntime = findRuntime) {
  const { limits, budgets, clock, log } = options
  const startsAtOnce = availableParallelism()
  const maximum = Math.min(limits.spares, sparesPerCore * startsAtOnce)
  const budget = new Budget('code_spares', { what: 'waiting children', limit: maximum, perCaller: maximum })
  budgets?.register(budget.name, () => budget.use())
  const searches = new Map<Engine, CachedSearch>()
  const underWay = new Set<Promise<RuntimeSearch>>()
  const demands = { javascript: new ChildDemand(), python: new ChildDemand() }
  const pools = new Map<Engine, { readonly runtime: Runtime; readonly children: WarmChildren }>()

  /** Finds a runtime by running a test program. Caches the result; if anything was missing, searches again later. */
  const find = (engine: Engine): Promise<RuntimeSearch> => {
    const before = searches.get(engine)
    if (before && clock.monotonic() < before.until) return before.found
    const search = look(engine, options).then((result) => stronger(before?.result, result))
    underWay.add(search)
    // Keep using a working runtime while searching for a better one.
    const found = before?.result?.runtime ? before.found : search
    const cached: CachedSearch = { found, result: before?.result, until: Number.POSITIVE_INFINITY }
    searches.set(engine, cached)
    void search.then((result) => {
      underWay.delete(search)
      cached.found = search
      cached.result = result
      if (result.missing.length === 0) return
      // Search again later: the machine may have been busy, or the missing packages may have been installed by then.
      cached.until = clock.monotonic() + limits.againMs
      if (before) return
      const how = result.runtime ? `run only with isolation tier ${result.runtime.tier}` : 'cannot run'
      log.warn({ missing: result.missing }, `${engine} programs ${how}`)
    })
    return found
  }

  const poolOf = (engine: Engine, runtime: Runtime): WarmChildren => {
    const before = pools.get(engine)
    if (before?.runtime === runtime) return before.children
    void before?.children[Symbol.asyncDispose]()
    const { start } = runtime
    const children = new WarmChildren({ start, demand: demands[engine], budget, startsAtOnce, limits, clock })
    pools.set(engine, { runtime, children })
    return children
  }

  return {
    find,
    /** Counts a program that will take a child, so that enough are started in advance. Dispose of it when it has one. */
    expect: (engine: Engine): Disposable => demands[engine].expect(),
    /** Takes an unused child. Rejects with a refusal or, if the signal aborts, with the signal's reason. */
    async take(engine: Engine, signal: AbortSignal): Promise<ReadyChild> {
      const { runtime, missing } = await find(engine)
      if (!runtime) throw runRefused(`Programs in this language cannot run here. ${missing.join(' ')}`)
      try {
        return { child: await poolOf(engine, runtime).take(signal), tier: runtime.tier }
      } catch (error) {
        signal.throwIfAborted()
        // The runtime no longer works: search again next time.
        searches.delete(engine)
        throw runRefused(`The sandbox could not be started (${(error as Error).message}); try again.`)
      }
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all(underWay)
      await Promise.all([...pools.values()].map(({ children }) => children[Symbol.asyncDispose]()))
    },
  }
}

/** The new search result, with the previous runtime unless the new runtime is stronger. */
function stronger(before: RuntimeSearch | undefined, now: RuntimeSearch): RuntimeSearch {
  const rank = ({ runtime }: RuntimeSearch) => (runtime ? tiers.indexOf(runtime.tier) : tiers.length)
  return before?.runtime && rank(now) >= rank(before) ? { ...now, runtime: before.runtime } : now
}

export interface FindRuntimeOptions {
  readonly config: Pick<Config['sandbox'], 'minIsolation'>
  readonly launch: LaunchOptions
  readonly tiers?: readonly Tier[]
  readonly limits: Limits
  readonly budgets?: Pick<Budgets, 'register'> | undefined
  readonly clock: Clock
  readonly log: Log
}

/** Finds the strongest isolation tier that satisfies `minIsolation` and can run a test program in this engine. */
async function findRuntime(engine: Engine, options: FindRuntimeOptions): Promise<RuntimeSearch> {
  const { config, launch } = options
  const missing = new Set<string>()
  const isEnabled = (tier: Tier) => options.tiers?.includes(tier) ?? true
  const attempt = async (make: () => Runtime | Promise<Runtime>, problem: (why: string) => string) => {
    try {
      const runtime = await make()
      await runTestProgram(runtime, engine, options)
      return runtime
    } catch (thrown) {
      const { message } = thrown as Error
      missing.add(thrown instanceof UnmappedUser ? message : problem(message))
      return undefined
    }
  }

  for (const make of isEnabled('bwrap') ? await wraps(engine, launch, missing) : []) {
    const runtime = await attempt(make, (why) => `bwrap cannot run ${title[engine]} here (${why}); ${bwrapAdvice}`)
    if (runtime) return { runtime, missing: [] }
  }
  if (engine === 'python')
    missing.add('Python requires bwrap: without it, programs would have the same permissions as Toolway.')
  for (const [tier, make] of engine === 'python' ? [] : weaker) {
    if (!isEnabled(tier)) continue
    if (tiers.indexOf(tier) > tiers.indexOf(config.minIsolation)) {
      missing.add(`The isolation tier ${tier} is weaker than sandbox.minIsolation (${config.minIsolation}).`)
      break
    }
    const problem = (why: string) => `JavaScript cannot run in the isolation tier ${tier} here (${why}).`
    const runtime = await attempt(() => make(launch), problem)
    if (runtime) return { runtime, missing: [...missing] }
  }
  return { missing: [...missing] }
}

const weaker = [
  ['process', javascriptProcess],
  ['worker', javascriptWorker],
] as const

const title = { javascript: 'JavaScript', python: 'Python' } as const
const bwrapAdvice = 'it needs user namespaces, which the container or kernel may not allow (docs/sandbox.md).'

/** Ways to start an engine in `bwrap`, in the order in which to try them. */
async function wraps(engine: Engine, launch: LaunchOptions, missing: Set<string>) {
  const bwrap = process.platform === 'linux' ? findProgram('bwrap') : undefined
  if (!bwrap) {
    missing.add('bwrap is not installed: install bubblewrap (on Debian and Ubuntu: apt-get install bubblewrap).')
    return []
  }
  // Prefer the user `nobody`. Fall back to root, because some systems do not let `nobody` create namespaces.
  const users = process.getuid?.() === 0 ? [{ user: 65_534 }, {}] : [{}]
  if (engine === 'javascript') return users.map((user) => () => javascriptInBwrap({ ...launch, ...user, bwrap }))
  const found = await findInterpreters()
  if (found.length === 0) missing.add('python3 is not installed: install Python 3.')
  return users.flatMap((user) => found.map((one) => () => pythonInBwrap({ ...launch, ...user, bwrap }, one)))
}

/** Runs a test program with a known result. */
async function runTestProgram({ start }: Runtime, engine: Engine, options: FindRuntimeOptions): Promise<void> {
  const { limits, clock, log } = options
  const child = start()
  using limit = startDeadline(clock, limits.startMs)
  const { signal } = limit
  try {
    await endWith(signal, child.ready)
    const task = { code: '6 * 7', language: engine, prelude: '', keep: false, ...taskLimits(limits) }
    const host = () => Promise.reject(new Error('host functions are not available'))
    const { value, error } = await new ChildRun({ child, task, host, signal, limits, clock, log }).ending
    if (value !== '42') throw new Error(error?.message ?? `the test program returned ${value} instead of 42`)
  } finally {
    await child.kill()
  }
}
