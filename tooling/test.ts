import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

/**
 * `npm test`: the checks beside the tests, which wait for processes often enough to leave time for them. It prints what
 * the checks found after what the tests print, and fails if either does. Arguments are those of vitest.
 */

const root = fileURLToPath(new URL('..', import.meta.url))
const projects = ['unit', 'web', 'programs', 'e2e', 'conformance', 'browser']

const check = spawn(process.execPath, [join(root, 'tooling/check.ts')], { stdio: ['ignore', 'ignore', 'pipe'] })
const checked = Promise.all([once(check, 'exit'), text(check.stderr)])

const words = ['run', ...projects.flatMap((project) => ['--project', project]), ...process.argv.slice(2)]
const [tests] = await once(spawn(join(root, 'node_modules/.bin/vitest'), words, { stdio: 'inherit' }), 'exit')

const [[checks], complaint] = await checked
process.stderr.write(checks === 0 ? 'npm run check: passed\n' : `npm run check: failed\n${complaint}`)
process.exitCode = tests === 0 && checks === 0 ? 0 : 1
