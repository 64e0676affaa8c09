import type { Config } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import { deadline } from '../core/deadline.ts'
import type { ExecutionOutcome, Executor, Program, Tier } from '../core/executor.ts'
import { Budget } from '../core/limits/budget.ts'
import type { Budgets } from '../core/limits/budgets.ts'
import { FairSemaphore } from '../core/limits/fair-semaphore.ts'
import type { Log } from '../core/log.ts'
import { createEnvironments } from './environments.ts'
import { messageKinds } from './guest/protocol.ts'
import { type SandboxFetch, withSandboxCalls } from './host-calls.ts'
import { defaultLimits, type Limits } from './limits.ts'
import { createRunner } from './runner.ts'
import { engineOf, RunStopped, runRefused } from './runtime.ts'
import { createRuntimePool } from './runtime-pool.ts'

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
