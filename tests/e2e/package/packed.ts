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

export const options = ['--no-audit', '--no-fund', '--prefer-offline']

/** Packs the built folder; returns the file that would be published. */
export async function pack(built: string, into: string): Promise<string> {
  const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', into], {
    cwd: built,
  })
  return join(into, JSON.parse(stdout)[0].filename)
}

/** Packs the built folder and installs the package where nothing else is, as a user does. */
export async function install(built: string, empty: string): Promise<Packed> {
  await mkdir(empty)
  // npm packs what it copies as `npm pack` does.
  await run('npm', ['install', '--install-links', '--ignore-scripts', ...options, built], { cwd: empty })
  const folder = join(empty, 'node_modules/toolway')
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return { folder, files: files.map(({ parentPath, name }) => relative(folder, join(parentPath, name))) }
}
