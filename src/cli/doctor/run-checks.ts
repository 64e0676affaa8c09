import type { Progress } from '../progress.ts'
import { type Check, type Checked, type Finding, problem } from './finding.ts'

/** Servers are processes: more of them starting at once would only make each other slow. */
const atOnce = 8

export interface RunOptions {
  readonly progress: Progress
  readonly signal: AbortSignal
  /** How the user spells the command line. */
  readonly command: string
}

/** Runs checks beside one another, begun in their order; answers in that order, whichever ends first. */
export async function runChecks(checks: readonly Check[], options: RunOptions): Promise<Checked[]> {
  const { progress, signal } = options
  const found: Checked[][] = checks.map(() => [])
  const pending = new Set<string>()
  const waiting = checks.entries()

  const work = async (): Promise<void> => {
    for (const [index, check] of waiting) {
      signal.throwIfAborted()
      pending.add(check.name)
      progress.show(`Checking ${[...pending].join(', ')} …`)
      found[index] = await timed(check, options)
      pending.delete(check.name)
      progress.show(`Checking ${[...pending].join(', ')} …`)
    }
  }
  // All of them, also where one fails: what has been started is to be ended first.
  const ends = await Promise.allSettled(Array.from({ length: atOnce }, work))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  return found.flat()
}

async function timed(check: Check, { signal, command }: RunOptions): Promise<Checked[]> {
  const begun = performance.now()
  const findings = await check.run(signal).catch((thrown: unknown): Finding => {
    signal.throwIfAborted()
    const why = thrown instanceof Error ? thrown.message : String(thrown)
    return problem(`could not be checked: ${why}`, `${command} doctor --log debug`)
  })
  const ms = Math.round(performance.now() - begun)
  return [findings].flat().map((finding) => ({ name: check.name, ...finding, ms }))
}
