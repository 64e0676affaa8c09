import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import buildPrograms from '../tests/programs.setup.ts'

/**
 * `npm test`: all tests and the checks, at the same time. What the checks print comes at the end. Arguments are those of
 * vitest.
 */

const root = fileURLToPath(new URL('..', import.meta.url))

const check = spawn(process.execPath, [join(root, 'tooling/check.ts')], { stdio: ['ignore', 'ignore', 'pipe'] })
const checked = Promise.all([once(check, 'exit'), text(check.stderr)])
// The checks are for the moments in which all tests wait: nothing waits for them.
if (check.pid !== undefined) setPriority(check.pid, 5)

// Vitest would do one after the other.
const parts = spawn(process.execPath, [join(root, 'tests/all-parts.ts')], { stdio: 'inherit' })
await Promise.all([buildPrograms(), once(parts, 'exit')])

// Most tests with servers or a browser wait most of their time: five keep two cores busy.
const vitest = spawn(
  join(root, 'node_modules/.bin/vitest'),
  ['run', '--project', 'all', '--maxWorkers=5', ...process.argv.slice(2)],
  { stdio: 'inherit', env: { ...process.env, TOOLWAY_TEST_TOGETHER: 'yes' } },
)
const [code] = await once(vitest, 'exit')

const [[checks], found] = await checked
process.stderr.write(checks === 0 ? 'npm run check: passed\n' : `npm run check: failed\n${found}`)
process.exitCode = code === 0 && checks === 0 ? 0 : 1
