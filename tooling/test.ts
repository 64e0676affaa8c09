import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import buildPrograms from '../tests/programs.setup.ts'

/**
 * `npm test`: two runs of vitest and the checks, at the same time. Stories with real servers and browsers wait most of
 * their time, tests beside the code compute: two workers for the latter fill what three of the former leave free.
 * Vitest itself runs one project after the other. What the second run and the checks print comes at the end. Arguments
 * are those of vitest.
 */

const root = fileURLToPath(new URL('..', import.meta.url))
const waiting = { projects: ['browser', 'e2e', 'conformance'], workers: 3 }
const computing = { projects: ['programs', 'unit', 'web'], workers: 2 }

const check = spawn(process.execPath, [join(root, 'tooling/check.ts')], { stdio: ['ignore', 'ignore', 'pipe'] })
const checked = Promise.all([once(check, 'exit'), text(check.stderr)])

// Both runs need all of these, and either would provide them.
const parts = spawn(process.execPath, [join(root, 'tests/all-parts.ts')], { stdio: 'inherit' })
await Promise.all([buildPrograms(), once(parts, 'exit')])

const vitest = join(root, 'node_modules/.bin/vitest')
const wordsOf = ({ projects, workers }: typeof waiting): string[] => [
  ...['run', ...projects.flatMap((project) => ['--project', project]), `--maxWorkers=${workers}`],
  // Arguments may leave nothing for one of them.
  ...['--passWithNoTests', ...process.argv.slice(2)],
]
const first = spawn(vitest, wordsOf(waiting), { stdio: 'inherit' })
const second = spawn(vitest, wordsOf(computing), { stdio: ['ignore', 'pipe', 'pipe'] })
const [[firstCode], [secondCode], printed, complaint] = await Promise.all([
  once(first, 'exit'),
  once(second, 'exit'),
  text(second.stdout),
  text(second.stderr),
])
process.stdout.write(printed)
process.stderr.write(complaint)

const [[checks], found] = await checked
process.stderr.write(checks === 0 ? 'npm run check: passed\n' : `npm run check: failed\n${found}`)
process.exitCode = firstCode === 0 && secondCode === 0 && checks === 0 ? 0 : 1
