import { readFileSync } from 'node:fs'
import { systemClock } from '../core/clock.ts'
import { invocationOf } from './invocation.ts'
import { exit } from './kit.ts'
import { createInterrupt, run } from './run.ts'

const { stdout, stderr, env } = process
const interrupt = createInterrupt({ clock: systemClock, leave: () => process.exit(exit.interrupted) })
process.on('SIGINT', interrupt.receive)
process.on('SIGTERM', interrupt.receive)
if (!isDeafToHangup()) process.on('SIGHUP', interrupt.receive)

let crashed = false
/** Whether nobody reads the output any more. */
let unread = false

/** Errors of plugins and libraries may quote a secret of the configuration, as soon as one is loaded. */
let conceal = (text: string): string => text
const textOf = (thrown: unknown): string => conceal(String(thrown instanceof Error ? thrown.stack : thrown))

stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The program that reads our output may close it early (`| head`); that is not an error.
  if (error.code === 'EPIPE') unread = true
  else if (!crashed) {
    crashed = true
    stderr.write(`error: The output cannot be written to stdout (${error.message}).\n`)
  }
  interrupt.stop()
})
stderr.on('error', () => {})

// A bug must not leave child processes behind: stop gracefully and exit with an error. The stop has a time limit,
// because the bug may also prevent it from finishing, and a process that hangs is never restarted.
const crashLimitMs = 30_000
process.on('uncaughtException', (error) => {
  if (crashed) process.exit(exit.failed)
  crashed = true
  stderr.write(`error: ${textOf(error)}\n`)
  interrupt.stop()
  setTimeout(() => process.exit(exit.failed), crashLimitMs)
})

// An unhandled rejection affects only one request, so a gateway keeps serving. Other commands stop, as after any bug.
if (['serve', 'stdio'].includes(process.argv[2] ?? '')) {
  process.on('unhandledRejection', (reason) => {
    stderr.write(`error: unhandled rejection: ${textOf(reason)}\n`)
  })
}

/** Whether SIGHUP is ignored (`nohup`); installing a handler would undo that. */
function isDeafToHangup(): boolean {
  try {
    const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'
    return (BigInt(`0x${ignored}`) & 1n) === 1n
  } catch {
    return false
  }
}

/** The current folder; empty if it was removed. */
function currentFolder(): string {
  try {
    return process.cwd()
  } catch {
    return ''
  }
}

// Keep the process alive: our own timers do not do so, and a command may be waiting for nothing but a timer.
setInterval(() => {}, 2 ** 30)

async function runToEnd(): Promise<never> {
  // npm runs scripts in the package's folder; use the folder where the user called npm.
  const cwd = env.npm_package_name === 'toolway' && env.INIT_CWD ? env.INIT_CWD : currentFolder()
  const code = await run(process.argv.slice(2), {
    ...invocationOf({ env, cwd }),
    // Opened on first use.
    get stdin() {
      return process.stdin
    },
    stdout,
    stderr,
    env,
    cwd,
    interrupted: interrupt.signal,
    secretsKnown: (by) => {
      conceal = by
    },
  })
  await new Promise<void>((resolve) => stdout.write('', () => resolve()))
  process.exit(crashed ? exit.failed : unread && code === exit.interrupted ? exit.ok : code)
}

// Exit without waiting: `run` never rejects, so no command is running.
runToEnd().catch((error: unknown) => stderr.write(`error: ${textOf(error)}\n`, () => process.exit(exit.failed)))
