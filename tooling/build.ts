import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { keepReachable } from './build/declarations.ts'
import { noticesFor } from './build/notices.ts'
import { bundleProgram } from './build/program.ts'

/** `npm run build`: builds the program as it is published, in dist or in the folder that is named. */

const root = fileURLToPath(new URL('..', import.meta.url))
const out = process.argv[2] ?? join(root, 'dist')

writeFileSync(join(out, 'THIRD-PARTY-NOTICES.md'), noticesFor(await bundleProgram(out)))

const compiler = join(root, 'node_modules/.bin/tsc')
// Only written: `npm run check` has the types checked, which takes three times as long.
const words = ['-p', join(root, 'tsconfig.build.json'), '--outDir', out, '--noCheck', '--singleThreaded']
// Half the work of the compiler would be threads that wait for one another, and garbage that matters to nobody.
const types = spawnSync(compiler, words, { stdio: 'inherit', env: { ...process.env, GOGC: 'off' } })
process.exitCode = types.status ?? 1
keepReachable(out)
