import type { Config } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import { type Deadline, deadline, endWith } from '../core/deadline.ts'
import type { Tier } from '../core/executor.ts'
import type { Log } from '../core/log.ts'
import { findProgram } from '../process/programs.ts'
import { javascriptInBwrap, javascriptProcess, javascriptWorker } from './launch/javascript.ts'
import { type LaunchOptions, UnmappedUser } from './launch/process-child.ts'
import { findInterpreters, pythonInBwrap } from './launch/python.ts'
import { ChildRun } from './run-in-child.ts'
import { type Engine, type Limits, type Runtime, type RuntimeSearch, runRefused, taskLimits, tiers } from './runtime.ts'

export interface FindRuntimeOptions {
  readonly config: Pick<Config['sandbox'], 'minIsolation'>
  readonly launch: LaunchOptions
  readonly tiers?: readonly Tier[]
  readonly limits: Limits
  readonly clock: Clock
  readonly log: Log
}

/** Finds the strongest isolation tier that satisfies `minIsolation` and can run a test program in this engine. */
export async function findRuntime(engine: Engine, options: FindRuntimeOptions): Promise<RuntimeSearch> {
  const { config, launch } = options
  const missing: string[] = []
  const works = async (make: () => Runtime | Promise<Runtime>): Promise<Runtime | Error> => {
    try {
      const runtime = await make()
      await runTestProgram(runtime, engine, options)
      return runtime
    } catch (error) {
      return error as Error
    }
  }
  const report = (error: Error, sentence: string) => {
    const why = error instanceof UnmappedUser ? error.message : sentence
    if (!missing.includes(why)) missing.push(why)
  }
  const isEnabled = (tier: Tier) => options.tiers?.includes(tier) ?? true

  for (const make of isEnabled('bwrap') ? await wraps(engine, launch, missing) : []) {
    const found = await works(make)
    if (!(found instanceof Error)) return { runtime: found, missing: [] }
    report(found, `bwrap cannot run ${title[engine]} here (${found.message}); ${bwrapAdvice}`)
  }
  if (engine === 'python') {
    missing.push('Python requires bwrap: without it, programs would have the same permissions as Toolway.')
    return { missing }
  }
  for (const [tier, make] of weaker) {
    if (!isEnabled(tier)) continue
    if (tiers.indexOf(tier) > tiers.indexOf(config.minIsolation)) {
      missing.push(`The isolation tier ${tier} is weaker than sandbox.minIsolation (${config.minIsolation}).`)
      break
    }
    const found = await works(() => make(launch))
    if (!(found instanceof Error)) return { runtime: found, missing }
    report(found, `JavaScript cannot run in the isolation tier ${tier} here (${found.message}).`)
  }
  return { missing }
}

const weaker = [
  ['process', javascriptProcess],
  ['worker', javascriptWorker],
] as const

const title = { javascript: 'JavaScript', python: 'Python' } as const
const bwrapAdvice = 'it needs user namespaces, which the container or kernel may not allow (docs/sandbox.md).'

/** Ways to start an engine in `bwrap`, in the order in which to try them. */
async function wraps(engine: Engine, launch: LaunchOptions, missing: string[]) {
  const bwrap = process.platform === 'linux' ? findProgram('bwrap') : undefined
  if (!bwrap) {
    missing.push('bwrap is not installed: install bubblewrap (on Debian and Ubuntu: apt-get install bubblewrap).')
    return []
  }
  // Prefer the user `nobody`. Fall back to root, because some systems do not let `nobody` create namespaces.
  const users = process.getuid?.() === 0 ? [{ user: 65_534 }, {}] : [{}]
  if (engine === 'javascript') return users.map((user) => () => javascriptInBwrap({ ...launch, ...user, bwrap }))
  const found = await findInterpreters()
  if (found.length === 0) missing.push('python3 is not installed: install Python 3.')
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

export const startDeadline = (clock: Clock, ms: number, parent?: AbortSignal): Deadline =>
  deadline(clock, ms, () => runRefused(`it did not start within ${ms / 1000} s (a fixed limit)`), parent)
