#!/usr/bin/env node
import { systemClock } from '../core/clock.ts'
import { exit } from './exit.ts'
import { createInterrupt } from './interrupt.ts'
import { run } from './run.ts'

const { stdin, stdout, stderr, env } = process
const interrupt = createInterrupt({ clock: systemClock, leave: () => process.exit(exit.interrupted) })
process.on('SIGINT', interrupt.receive)
process.on('SIGTERM', interrupt.receive)

// Whoever reads our output may leave before the end (`| head`): that is no failure of ours.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  interrupt.stop()
})
stderr.on('error', () => {})

// A bug must not leave child processes behind: stop as if asked to, and say so with the exit code.
let crashed = false
process.on('uncaughtException', (error) => {
  if (crashed) process.exit(exit.failed)
  crashed = true
  stderr.write(`error: ${error instanceof Error ? error.stack : error}\n`)
  interrupt.stop()
})

const code = await run(process.argv.slice(2), {
  stdin,
  stdout,
  stderr,
  env,
  cwd: process.cwd(),
  interrupted: interrupt.signal,
})
await new Promise<void>((resolve) => stdout.write('', () => resolve()))
process.exit(crashed ? exit.failed : code)
