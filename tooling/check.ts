import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

/**
 * `npm run check`: type checks, format, lint and unused code, at the same time. It prints what the failed ones print.
 * The type checks and knip keep what they know about unchanged files in node_modules/.cache.
 */

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = join(root, 'node_modules/.cache/toolway/check')
mkdirSync(cache, { recursive: true })

const typeCheck = (name: string, ...more: string[]): string[] => [
  ...['tsc', '--noEmit', '--incremental', '--tsBuildInfoFile', join(cache, `${name}.tsbuildinfo`), ...more],
]

// Each checker of the compiler checks the types of libraries again, and the other commands use the other cores.
const commands = [
  // With declarations, as the build writes them: an exported function may use a type that cannot be named elsewhere.
  typeCheck('program', '--declaration', '--checkers', '1'),
  typeCheck('web', '-p', 'web', '--singleThreaded'),
  ['biome', 'check', '--error-on-warnings', '.'],
  ['knip', '--cache', '--cache-location', join(cache, 'knip')],
]

// A third of the compiler's CPU time is garbage collection, and it ends before its garbage matters.
const env = { ...process.env, GOGC: 'off', GOMEMLIMIT: '3GiB' }

async function run([program = '', ...words]: readonly string[]): Promise<boolean> {
  const file = join(root, 'node_modules/.bin', program)
  const child = spawn(file, words, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const exit = once(child, 'exit')
  const [printed, complaint] = await Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = await exit
  if (code !== 0) process.stderr.write(`${[program, ...words].join(' ')}\n${printed}${complaint}\n`)
  return code === 0
}

const results = await Promise.all(commands.map(run))
process.exitCode = results.every(Boolean) ? 0 : 1
