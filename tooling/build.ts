import { spawnSync } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

/**
 * `npm run build`: puts the program together as it is published, into dist or the folder that is named. Few large files
 * start in half the time that hundreds of small ones need, and the parts of dependencies that nobody uses stay out
 * (docs/decisions/0019).
 */

const root = fileURLToPath(new URL('..', import.meta.url))
const out = process.argv[2] ?? join(root, 'dist')

/** What is started by itself: others know these files by their names. */
const entries = ['index', 'cli/main', 'admin/audit-worker', 'tools/plugins/library', 'tools/plugins/isolated/child']

/** These read files of their own package, or load parts of it by names that only they know. */
const apart = ['pino', 'jsonc-parser', /^libpg-query/]

rmSync(out, { recursive: true, force: true })
const bundle = await rolldown({
  cwd: root,
  input: Object.fromEntries(entries.map((name) => [name, `src/${name}.ts`])),
  platform: 'node',
  external: [/^node:/, ...apart],
})
await bundle.write({
  dir: out,
  format: 'esm',
  sourcemap: true,
  entryFileNames: '[name].js',
  // One folder below the package, as the sources are: see src/here.ts.
  chunkFileNames: '[name]-[hash].js',
})

// Children of the sandbox see one folder and nothing else of the package.
const child = await rolldown({
  cwd: root,
  input: { 'sandbox/guest/main': 'src/sandbox/guest/main.ts' },
  platform: 'node',
  external: [/^node:/],
})
await child.write({ dir: out, format: 'esm', entryFileNames: '[name].js' })
for (const file of ['package.json', 'python.py']) {
  cpSync(join(root, 'src/sandbox/guest', file), join(out, 'sandbox/guest', file))
}

const compiler = join(root, 'node_modules/.bin/tsc')
const types = spawnSync(compiler, ['-p', join(root, 'tsconfig.build.json'), '--outDir', out], { stdio: 'inherit' })
process.exitCode = types.status ?? 1
