import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, utimesSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { mallocVariables } from '../src/cli/malloc.ts'
import { fingerprint } from '../tooling/build/fingerprint.ts'
import { bundleProgram, isExternal, readWhatIsUsed } from '../tooling/build/program.ts'
import { serverSources } from './fixtures/programs.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const sources = [
  'src/**/*.{ts,py,json}',
  'tests/{fixtures,conformance}/**/*.ts',
  'tests/programs.setup.ts',
  'tooling/build/program.ts',
]
const cache = join(root, 'node_modules/.cache/toolway/programs')

/** Bundles the programs that tests start (tests/fixtures/programs.ts), unless they exist for these sources. */
export default async function setup(): Promise<void> {
  const folder = join(cache, fingerprint(sources))
  if (!existsSync(folder)) await build(folder)
  const now = new Date()
  utimesSync(folder, now, now)
  removeOld(now)
  process.env.TOOLWAY_TEST_PROGRAMS = folder
  process.env.NODE_COMPILE_CACHE = join(folder, 'compiled')
  Object.assign(process.env, mallocVariables)
}

/** Builds next to the folder and renames at the end: several runs may want it at the same time. */
async function build(folder: string): Promise<void> {
  const unfinished = `${folder}.${process.pid}`
  mkdirSync(unfinished, { recursive: true })
  // One process can run many command lines (tests/fixtures/commands/).
  await bundleProgram(join(unfinished, 'dist'), ['cli/run'])
  // Files of the package that the program reads, by their place next to dist.
  for (const file of ['package.json', 'web']) symlinkSync(join(root, file), join(unfinished, file))

  const servers = await rolldown({
    cwd: root,
    input: serverSources,
    platform: 'node',
    external: isExternal,
    plugins: [readWhatIsUsed],
  })
  await servers.write({ dir: join(unfinished, 'servers/bin'), format: 'esm', entryFileNames: '[name].js' })
  await servers.close()
  // Files that programs read, by their place next to their own.
  symlinkSync(join(dirname(serverSources.everything), 'docs'), join(unfinished, 'servers/docs'))
  const suite = join(serverSources['conformance-suite'], '../..')
  symlinkSync(join(suite, 'requirements'), join(unfinished, 'servers/requirements'))

  try {
    renameSync(unfinished, folder)
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
}

const dayMs = 86_400_000

function removeOld(now: Date): void {
  for (const name of readdirSync(cache)) {
    const other = join(cache, name)
    // Another run may have removed it.
    const { mtimeMs = 0 } = statSync(other, { throwIfNoEntry: false }) ?? {}
    if (now.getTime() - mtimeMs > dayMs) rmSync(other, { recursive: true, force: true })
  }
}
