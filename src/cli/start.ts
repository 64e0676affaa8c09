import { readFileSync } from 'node:fs'
import { systemClock } from '../core/clock.ts'
import { exit } from './kit.ts'
import { createInterrupt, run } from './run.ts'

const { stdout, stderr, env } = process
const interrupt = createInterrupt({ clock: systemClock, leave: () => process.exit(exit.interrupted) })
process.on('SIGINT', interrupt.receive)
process.on('SIGTERM', interrupt.receive)
if (!isDeafToHangup()) process.on('SIGHUP', interrupt.receive)

// Whoever reads our output may leave before the end (`| head`): that is no failure of ours.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  interrupt.stop()
})
stderr.on('error', () => {})

// A bug must not leave child processes behind: stop as if asked to, and say so with the exit code. It may also be what
// keeps the stop from finishing, and a process that no longer listens but stays is never restarted.
const crashLimitMs = 30_000
let crashed = false
process.on('uncaughtException', (error) => {
  if (crashed) process.exit(exit.failed)
  crashed = true
  stderr.write(`error: ${error instanceof Error ? error.stack : error}\n`)
  interrupt.stop()
  setTimeout(() => process.exit(exit.failed), crashLimitMs)
})

// A promise that was rejected and not handled failed one piece of work, not the process: a server keeps serving. A
// command that may be waiting for that work stops, as after any other bug.
if (['serve', 'stdio'].includes(process.argv[2] ?? '')) {
  process.on('unhandledRejection', (reason) => {
    stderr.write(`error: unhandled rejection: ${reason instanceof Error ? reason.stack : reason}\n`)
  })
}

/** Whether we were started to outlive the terminal (`nohup`), which a handler of ours would undo. */
function isDeafToHangup(): boolean {
  try {
    const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'
    return (BigInt(`0x${ignored}`) & 1n) === 1n
  } catch {
    return false
  }
}

// Our timers keep no process alive, and there are moments when a command waits for nothing else.
setInterval(() => {}, 2 ** 30)

const code = await run(process.argv.slice(2), {
  // Opened by whoever reads it.
  get stdin() {
    return process.stdin
  },
  stdout,
  stderr,
  env,
  // npm runs its scripts in the package's folder; the user means the one where npm was called.
  cwd: env.npm_package_name === 'toolway' && env.INIT_CWD ? env.INIT_CWD : process.cwd(),
  interrupted: interrupt.signal,
})
await new Promise<void>((resolve) => stdout.write('', () => resolve()))
process.exit(crashed ? exit.failed : code)
