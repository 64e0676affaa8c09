import type { Clock } from '../core/clock.ts'
import { deadline, settles } from '../core/deadline.ts'
import type { ExecutionOutcome, Program } from '../core/executor.ts'
import type { Log } from '../core/log.ts'
import type { Environments } from './environments.ts'
import { type Limits, taskLimits } from './limits.ts'
import { runInChild } from './run-in-child.ts'
import { engineOf, RunStopped, type SandboxChild } from './runtime.ts'
import type { RuntimePool } from './runtime-pool.ts'

/** Runs a program in a child. `waiting` limits the wait for the child; the program's timeout starts after that. */
type Runner = (program: Program, waiting: AbortSignal) => Promise<FinishedRun>

interface FinishedRun {
  readonly outcome: Omit<ExecutionOutcome, 'durationMs'>
  /** Resolves when the child is cleaned up and the environment is ready again. */
  readonly cleared: Promise<void>
}

export function createRunner(options: {
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
