import type { Config } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import { deadline, settles } from '../core/deadline.ts'
import type { ExecutionOutcome, Executor, Program, Tier } from '../core/executor.ts'
import { Budget, type Budgets } from '../core/limits/budget.ts'
import { FairSemaphore } from '../core/limits/fair-semaphore.ts'
import type { Log } from '../core/log.ts'
import { createEnvironments, type Environments } from './environments.ts'
import { messageKinds } from './guest/protocol.ts'
import { type SandboxFetch, withSandboxCalls } from './host-calls.ts'
import { runInChild } from './run-in-child.ts'
import {
  defaultLimits,
  engineOf,
  type Limits,
  RunStopped,
  runRefused,
  type SandboxChild,
  taskLimits,
} from './runtime.ts'
import { createRuntimePool, type RuntimePool } from './runtime-pool.ts'

export interface ExecutorOptions {
  readonly config: Config['sandbox']
  /** The module that children run: `sandbox/guest/main`. */
  readonly child: URL
  readonly budgets?: Pick<Budgets, 'register'> | undefined
  readonly clock: Clock
  readonly log: Log
  /** Makes requests to the hosts in `allowNetwork` for JavaScript programs. Without it, they have no network access. */
  readonly fetch?: SandboxFetch
  readonly limits?: Partial<Limits>
  /** Restricts the isolation tiers, for tests and benchmarks. */
  readonly tiers?: readonly Tier[]
}

/** Runs untrusted programs, each in a disposable child. */
export function createExecutor(options: ExecutorOptions): Executor {
  const { config, clock, log } = options
  const limits: Limits = { ...defaultLimits, ...options.limits }
  const launch = {
    child: options.child,
    memory: config.memory,
    cpuMs: limits.cpuMs,
    folders: config.allowPaths,
    limit: maxMessageBytes(limits),
  }
  const runtimePool = createRuntimePool({ config, launch, tiers: options.tiers, limits, clock, log })
  const environments = createEnvironments({ limits, budgets: options.budgets, clock })
  const runProgram = createRunner({ runtimePool, environments, limits, clock, log })
  const environmentLocks = new FairSemaphore({ perCaller: 1 })
  // The last slot is left for other owners.
  const slots = new FairSemaphore({ slots: limits.runs, perCaller: Math.max(1, limits.runs - 1) })
  /** The running and waiting programs. One owner may fill at most half of the queue. */
  const programs = new Budget('programs', {
    what: 'programs',
    limit: limits.runs + limits.waiting,
    perCaller: limits.runs + Math.ceil(limits.waiting / 2),
  })
  const closing = new AbortController()
  const underWay = new Set<Promise<unknown>>()

  const during = async <T>(work: Promise<T>): Promise<T> => {
    underWay.add(work)
    return work.finally(() => underWay.delete(work))
  }

  const check = ({ code, language }: Program) => {
    if (!config.languages.includes(language)) throw runRefused(`${language} is not enabled in sandbox.languages.`)
    if (Buffer.byteLength(code) > limits.sourceBytes)
      throw runRefused(`The program is larger than ${limits.sourceBytes} bytes.`)
    if (closing.signal.aborted) throw runRefused('Toolway is shutting down.')
  }

  const run = async (program: Program, signal: AbortSignal): Promise<Omit<ExecutionOutcome, 'durationMs'>> => {
    check(program)
    if (programs.take(program.owner)) throw runRefused('Too many programs are waiting; try again in a moment.')
    using _ = { [Symbol.dispose]: () => programs.give(program.owner) }
    const held = new DisposableStack()
    try {
      using waiting = deadline(clock, limits.waitMs, () => runRefused(noSlot(limits)), signal)
      if (program.environment !== undefined) held.use(await environmentLocks.take(program.environment, waiting.signal))
      held.use(await slots.take(program.owner, waiting.signal))
      const host = withSandboxCalls({ host: program.host.bind(program), config, fetch: options.fetch, limits })
      const { outcome, cleared } = await runProgram({ ...program, host, signal }, waiting.signal)
      // The slot stays taken until the child is cleaned up; the caller need not wait for that.
      void during(cleared.finally(() => held.dispose()))
      return outcome
    } catch (error) {
      held.dispose()
      throw error
    }
  }

  return {
    async probe() {
      const engineNames = [...new Set(config.languages.map(engineOf))]
      const searches = await during(
        Promise.all(engineNames.map(async (engine) => ({ engine, ...(await runtimePool.find(engine)) }))),
      )
      const usable = searches.filter(({ runtime }) => runtime)
      return {
        tier: usable[0]?.runtime?.tier,
        languages: config.languages.filter((language) => usable.some(({ engine }) => engine === engineOf(language))),
        missing: [...new Set(searches.flatMap(({ missing }) => missing))],
      }
    },
    async run(program) {
      const started = clock.monotonic()
      const signal = AbortSignal.any([program.signal, closing.signal])
      const outcome = await during(run(program, signal).catch((thrown) => notRun(thrown, signal, log)))
      return { ...outcome, durationMs: clock.monotonic() - started }
    },
    async [Symbol.asyncDispose]() {
      closing.abort()
      while (underWay.size > 0) await Promise.allSettled(underWay)
      await Promise.all([runtimePool[Symbol.asyncDispose](), environments[Symbol.asyncDispose]()])
    },
  }
}

function notRun(thrown: unknown, signal: AbortSignal, log: Log): Omit<ExecutionOutcome, 'durationMs'> {
  const nothing = { logs: '', truncated: [], isolation: undefined }
  if (thrown instanceof RunStopped || signal.aborted) return { ...nothing, ...RunStopped.from(thrown).ending }
  log.error({ err: thrown }, 'could not run a program')
  return { ...nothing, ...runRefused("The sandbox failed to run this program; see Toolway's log.").ending }
}

const noSlot = ({ waitMs }: Limits) =>
  `No slot to run this program became free within ${waitMs / 1000} s (a fixed limit); try again.`

const maxMessageBytes = (limits: Limits) => {
  const bytes = new Map<number, number>([
    [messageKinds.ready, 0],
    [messageKinds.call, limits.callBytes + 257],
    [messageKinds.log, limits.logBytes],
    [messageKinds.value, limits.valueBytes],
    [messageKinds.done, 64 * 1024],
    [messageKinds.memory, limits.rememberedBytes / 4],
  ])
  return (kind: number) => bytes.get(kind)
}

/** Runs a program in a child. `waiting` limits the wait for the child; the program's timeout starts after that. */
type Runner = (program: Program, waiting: AbortSignal) => Promise<FinishedRun>

interface FinishedRun {
  readonly outcome: Omit<ExecutionOutcome, 'durationMs'>
  /** Resolves when the child is cleaned up and the environment is ready again. */
  readonly cleared: Promise<void>
}

function createRunner(options: {
  readonly runtimePool: RuntimePool
  readonly environments: Environments
  readonly limits: Limits
  readonly clock: Clock
  readonly log: Log
}): Runner {
  const { runtimePool, environments, limits, clock, log } = options

  return async (program, waiting) => {
    const engine = engineOf(program.language)
    const key = program.environment === undefined ? undefined : `${engine}\0${program.environment}`
    // Get a child before taking the environment's state, so that the state is not lost if no child becomes available.
    const fresh = key !== undefined && environments.hasChild(key) ? undefined : await runtimePool.take(engine, waiting)
    const { reset, memory, child: kept } = key === undefined ? {} : environments.take(key)
    kept?.thaw()
    const child = (kept ?? fresh?.child) as SandboxChild
    const { code, language, prelude = '', timeoutMs } = program
    const task = { code, language, prelude, keep: key !== undefined, ...taskLimits(limits) }
    using limit = deadline(clock, timeoutMs, () => new RunStopped('timeout', tooLong(timeoutMs)), program.signal)
    const childRun = runInChild({ child, task, memory, host: program.host, signal: limit.signal, limits, clock, log })
    const { broken, ...shown } = await childRun.ending
    return {
      outcome: { ...shown, isolation: fresh?.tier ?? 'bwrap', reset },
      cleared: clear().catch((error) => {
        log.error({ err: error }, 'could not clean up a sandbox')
      }),
    }

    async function clear(): Promise<void> {
      if (key === undefined || !(await isKept(key))) await child.kill()
    }

    /** Saves the environment's state. Returns true if the child itself is kept. */
    async function isKept(key: string): Promise<boolean> {
      if (broken !== undefined) environments.forget(key, `The last run failed. ${broken}`)
      else if (engine === 'javascript') {
        // Limit the wait, because a child may report its result and then stall.
        const isSaved = await settles(childRun.memory, limits.startMs, clock)
        const memory = isSaved ? await childRun.memory : undefined
        if (memory) environments.keep(key, program.owner, { memory })
        else environments.forget(key, 'The state could not be saved: it was too large, or saving it took too long.')
      } else if (child.freeze()) {
        // The child is frozen because the program may have left threads running.
        environments.keep(key, program.owner, { child })
        return true
      } else environments.forget(key, 'The interpreter could not be kept for the next run.')
      return false
    }
  }
}

const tooLong = (timeoutMs: number) =>
  `The program did not finish within ${timeoutMs / 1000} s (timeout_ms, or sandbox.timeout).`
