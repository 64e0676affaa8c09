import { execFile } from 'node:child_process'
import { cp, mkdir, readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const run = promisify(execFile)

export const root = fileURLToPath(new URL('../../..', import.meta.url))

export interface Packed {
  /** The package where it is installed. */
  readonly folder: string
  readonly files: readonly string[]
}

/** Builds what would be published, in a folder of its own: others use the sources meanwhile. */
export async function build(folder: string): Promise<void> {
  await mkdir(folder)
  await run(process.execPath, [join(root, 'tooling/build.ts'), join(folder, 'dist')], { cwd: root })
  const others = ['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md', 'server.json', 'deploy']
  for (const file of [...others, 'toolway.schema.json', 'toolway.example.yaml', 'web/dist']) {
    await cp(join(root, file), join(folder, file), { recursive: true })
  }
}

/** Packs the built folder and installs the package where nothing else is, as a user does. */
export async function install(built: string, empty: string): Promise<Packed> {
  await mkdir(empty)
  // npm packs what it copies as `npm pack` does.
  const options = ['--install-links', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  await run('npm', ['install', ...options, built], { cwd: empty })
  const folder = join(empty, 'node_modules/toolway')
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return { folder, files: files.map(({ parentPath, name }) => relative(folder, join(parentPath, name))) }
}
