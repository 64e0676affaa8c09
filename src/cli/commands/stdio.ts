import { once } from 'node:events'
import { systemClock } from '../../core/clock.ts'
import { type ExitCode, exit } from '../exit.ts'
import { releaseWhenIdle } from '../idle-memory.ts'
import type { CommonOptions } from '../load.ts'
import { openWatching } from '../open.ts'
import { createOutput } from '../output.ts'
import { warnOfRoot } from '../root-warning.ts'
import type { Shell } from '../shell.ts'

export interface StdioOptions extends CommonOptions {
  readonly agent?: string
  readonly watch?: boolean
}

/** Serves one client over stdin and stdout until it leaves. Nothing but protocol is written to stdout. */
export async function stdio(shell: Shell, options: StdioOptions): Promise<ExitCode> {
  warnOfRoot(createOutput(shell, options.json))
  await using gateway = await openWatching(shell, options)
  using _releasing = releaseWhenIdle(systemClock)
  if (shell.interrupted.aborted) return exit.ok
  await Promise.race([gateway.stdio(shell.stdin, shell.stdout, options.agent), once(shell.interrupted, 'abort')])
  return exit.ok
}
