import { execFile } from 'node:child_process'
import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const run = promisify(execFile)

export const root = fileURLToPath(new URL('../../..', import.meta.url))

export interface Packed {
  /** What goes into the package, before it is packed. */
  readonly folder: string
  readonly tarball: string
  readonly files: readonly string[]
}

/** Builds and packs what would be published, in a folder of its own: others use the sources meanwhile. */
export async function pack(place: string): Promise<Packed> {
  const folder = join(place, 'package')
  await mkdir(folder)
  await run(process.execPath, [join(root, 'tooling/build.ts'), join(folder, 'dist')], { cwd: root })
  const others = ['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md', 'server.json', 'deploy']
  for (const file of [...others, 'toolway.schema.json', 'toolway.example.yaml', 'web/dist']) {
    await cp(join(root, file), join(folder, file), { recursive: true })
  }
  const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', place], {
    cwd: folder,
    maxBuffer: 16 * 1024 * 1024,
  })
  const [{ filename, files }] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }]
  return { folder, tarball: join(place, filename), files: files.map(({ path }) => path) }
}

/** Installs the tarball where nothing else is, as a user does; where to start it. */
export async function install(tarball: string, folder: string): Promise<string> {
  await mkdir(folder)
  await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', tarball], { cwd: folder })
  return join(folder, 'node_modules/toolway/dist/cli/main.js')
}
