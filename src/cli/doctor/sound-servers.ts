import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readServers } from '../../config/import/read-servers.ts'
import { locate } from '../../config/locate.ts'
import { homeOf } from '../../core/home.ts'
import type { CommonOptions } from '../load.ts'
import type { Shell } from '../shell.ts'

/**
 * Reads a configuration that has nothing but the servers that are sound by themselves, of one that cannot be used as a
 * whole; undefined where there are none. It stands in a file of its own only while it is read.
 */
export async function withSoundServers<T>(
  { env, cwd }: Shell,
  { config = [] }: CommonOptions,
  read: (paths: readonly string[]) => Promise<T>,
): Promise<T | undefined> {
  const home = homeOf(env)
  const { paths } = await locate(config, env, cwd, home)
  const files = await Promise.all(paths.map((path) => readServers(path, home)))
  const sound = files.flatMap(({ servers }) => servers).filter(({ problems }) => problems.length === 0)
  if (sound.length === 0) return undefined
  const mcpServers = Object.fromEntries(
    sound.map(({ name, definition, impliedFolder: folder }) => [
      name,
      folder ? { cwd: folder, ...definition } : definition,
    ]),
  )
  await using folder = await mkdtempDisposable(join(tmpdir(), 'toolway-doctor-'))
  const path = join(folder.path, 'toolway.json')
  await writeFile(path, JSON.stringify({ mcpServers }), { mode: 0o600 })
  return await read([path])
}
