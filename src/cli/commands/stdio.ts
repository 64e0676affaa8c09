import { once } from 'node:events'
import { type ExitCode, exit } from '../exit.ts'
import { type CommonOptions, load } from '../load.ts'
import { openGateway } from '../open.ts'
import type { Shell } from '../shell.ts'

export interface StdioOptions extends CommonOptions {
  readonly agent?: string
}

/** Serves one client over stdin and stdout until it leaves. Nothing but protocol is written to stdout. */
export async function stdio(shell: Shell, options: StdioOptions): Promise<ExitCode> {
  await using gateway = await openGateway(shell, await load(shell, options), options)
  if (shell.interrupted.aborted) return exit.ok
  await Promise.race([gateway.stdio(shell.stdin, shell.stdout, options.agent), once(shell.interrupted, 'abort')])
  return exit.ok
}
