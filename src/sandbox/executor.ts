import type { Config } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import { deadline, settles } from '../core/deadline.ts'
import type { ExecutionOutcome, Executor, Isolation, Program, Tier } from '../core/executor.ts'
import { Budget, type Budgets } from '../core/limits/budget.ts'
import { FairSemaphore } from '../core/limits/fair-semaphore.ts'
import type { Log } from '../core/log.ts'
import { type EnvironmentState, Environments } from './environments.ts'
import { messageKinds } from './guest/protocol.ts'
import { type SandboxFetch, withSandboxCalls } from './host-calls.ts'
import { ChildRun } from './run-in-child.ts'
import { engineOf, type Limits, type ReadyChild, RunStopped, runRefused, sandboxLimits, taskLimits } from './runtime.ts'
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

type RunOutcome = Omit<ExecutionOutcome, 'durationMs'>

/** Runs untrusted programs, each in a disposable child. */
export class SandboxExecutor implements Executor {
  readonly #options: ExecutorOptions
  readonly #limits: Limits
  readonly #runtimePool: RuntimePool
  readonly #environments: Environments
  readonly #environmentLocks = new FairSemaphore({ perCaller: 1 })
  readonly #slots: FairSemaphore
  /** The running and waiting programs. One owner may fill at most half of the queue. */
  readonly #programs: Budget
  readonly #closing = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(options: ExecutorOptions) {
    const { child, config, tiers, budgets, clock, log } = options
    const limits: Limits = { ...sandboxLimits, ...options.limits }
    const { cpuMs, runs, waiting } = limits
    const { memory, allowPaths: folders } = config
    const launch = { child, memory, cpuMs, folders, limit: maxMessageBytes(limits) }
    this.#options = options
    this.#limits = limits
    this.#runtimePool = createRuntimePool({ config, launch, tiers, limits, budgets, clock, log })
    this.#environments = new Environments(limits, budgets, clock)
    // The last slot is left for other owners.
    this.#slots = new FairSemaphore({ slots: runs, perCaller: Math.max(1, runs - 1) })
    const perCaller = runs + Math.ceil(waiting / 2)
    this.#programs = new Budget('programs', { what: 'programs', limit: runs + waiting, perCaller })
  }

  async probe(): Promise<Isolation> {
    const { languages } = this.#options.config
    const engines = [...new Set(languages.map(engineOf))]
    const searches = await this.#during(
      Promise.all(engines.map(async (engine) => ({ engine, ...(await this.#runtimePool.find(engine)) }))),
    )
    const usable = searches.filter(({ runtime }) => runtime)
    return {
      tier: usable[0]?.runtime?.tier,
      languages: languages.filter((language) => usable.some(({ engine }) => engine === engineOf(language))),
      missing: [...new Set(searches.flatMap(({ missing }) => missing))],
    }
  }

  async run(program: Program): Promise<ExecutionOutcome> {
    const { clock, log } = this.#options
    const started = clock.monotonic()
    const signal = AbortSignal.any([program.signal, this.#closing.signal])
    const run = this.#runInTurn(program, signal).catch((thrown) => notRun(thrown, signal, log))
    return { ...(await this.#during(run)), durationMs: clock.monotonic() - started }
  }

  async #during<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work)
    return work.finally(() => this.#underWay.delete(work))
  }

  #check({ code, language }: Program): void {
    const { sourceBytes } = this.#limits
    if (!this.#options.config.languages.includes(language))
      throw runRefused(`${language} is not enabled in sandbox.languages.`)
    if (Buffer.byteLength(code) > sourceBytes) throw runRefused(`The program is larger than ${sourceBytes} bytes.`)
    if (this.#closing.signal.aborted) throw runRefused('Toolway is shutting down.')
  }

  async #runInTurn(program: Program, signal: AbortSignal): Promise<RunOutcome> {
    this.#check(program)
    const { owner, environment } = program
    const engine = engineOf(program.language)
    const key = environment === undefined ? undefined : `${engine}\0${environment}`
    if (this.#programs.take(owner)) throw runRefused('Too many programs are waiting; try again in a moment.')
    using _ = { [Symbol.dispose]: () => this.#programs.give(owner) }
    using held = new DisposableStack()
    const { config, fetch, clock } = this.#options
    const limits = this.#limits
    using waiting = deadline(clock, limits.waitMs, () => runRefused(noSlot(limits)), signal)
    if (environment !== undefined) held.use(await this.#environmentLocks.take(environment, waiting.signal))
    using expected = this.#hasChild(key) ? undefined : this.#runtimePool.expect(engine)
    held.use(await this.#slots.take(owner, waiting.signal))
    const host = withSandboxCalls({ host: program.host.bind(program), config, fetch, limits })
    // Get a child before taking the environment's state, so that the state is not lost if no child becomes available.
    const fresh = this.#hasChild(key) ? undefined : await this.#runtimePool.take(engine, waiting.signal)
    expected?.[Symbol.dispose]()
    return await this.#runInChild({ ...program, host, signal }, key, held, fresh)
  }

  #hasChild(key: string | undefined): boolean {
    return key !== undefined && this.#environments.hasChild(key)
  }

  /** Runs a program in a fresh child or in that of its environment. */
  async #runInChild(
    program: Program,
    key: string | undefined,
    held: DisposableStack,
    fresh?: ReadyChild,
  ): Promise<RunOutcome> {
    const { clock, log } = this.#options
    const { code, language, prelude = '', timeoutMs, host } = program
    const limits = this.#limits
    const state: EnvironmentState & { readonly reset?: string } = key === undefined ? {} : this.#environments.take(key)
    state.child?.thaw()
    const { child, tier } = (fresh ?? state) as ReadyChild
    const memory = fresh && state.memory
    const task = { code, language, prelude, keep: key !== undefined, ...taskLimits(limits) }
    using limit = deadline(clock, timeoutMs, () => new RunStopped('timeout', programTooSlow(timeoutMs)), program.signal)
    const run = new ChildRun({ child, task, memory, host, signal: limit.signal, limits, clock, log })
    const { broken, ...shown } = await run.ending
    // The slot stays taken until the child is cleaned up; the caller need not wait for that.
    const slots = held.move()
    const keeping = key === undefined ? Promise.resolve(false) : this.#keep(key, program, { child, tier }, run, broken)
    const cleared = keeping
      .then((isKept) => (isKept ? undefined : child.kill()))
      .catch((error) => log.error({ err: error }, 'could not clean up a sandbox'))
      .finally(() => slots.dispose())
    void this.#during(cleared)
    return { ...shown, isolation: tier, reset: state.reset }
  }

  /** Saves the environment's state. Returns true if the child itself is kept. */
  async #keep(
    key: string,
    { owner, language }: Program,
    { child, tier }: ReadyChild,
    run: ChildRun,
    broken?: string,
  ): Promise<boolean> {
    const environments = this.#environments
    if (broken !== undefined) environments.forget(key, `The last run failed. ${broken}`)
    else if (engineOf(language) === 'javascript') {
      // Limit the wait, because a child may report its result and then stall.
      const isSaved = await settles(run.memory, this.#limits.startMs, this.#options.clock)
      const memory = isSaved ? await run.memory : undefined
      // The kernel limits the CPU time of the process, so replace it while there is enough left for a run.
      const isWarm = memory !== undefined && (child.cpuMs() ?? 0) <= this.#limits.cpuMs / 2 && child.freeze()
      if (memory) environments.keep(key, owner, { memory, tier, child: isWarm ? child : undefined })
      else environments.forget(key, 'The state could not be saved: it was too large, or saving it took too long.')
      return isWarm
    } else if (child.freeze()) {
      // The child is frozen because the program may have left threads running.
      environments.keep(key, owner, { child, tier })
      return true
    } else environments.forget(key, 'The interpreter could not be kept for the next run.')
    return false
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay)
    await Promise.all([this.#runtimePool[Symbol.asyncDispose](), this.#environments[Symbol.asyncDispose]()])
  }
}

function notRun(thrown: unknown, signal: AbortSignal, log: Log): RunOutcome {
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

const programTooSlow = (timeoutMs: number) =>
  `The program did not finish within ${timeoutMs / 1000} s (timeout_ms, or sandbox.timeout).`
