import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { toolwayMain } from '../../tests/fixtures/programs.ts'
import { folder } from './folder.fixture.ts'

const posix = test.skipIf(process.platform === 'win32')

const versionIn = async (home: string, umask = '022') => {
  const env = { HOME: home, PATH: process.env.PATH }
  const words = ['-c', `umask ${umask}; exec "$0" "$1" --version`, process.execPath, toolwayMain]
  const [code] = await once(spawn('sh', words, { env, stdio: 'ignore' }), 'exit')
  expect(code).toBe(0)
}

const foldersIn = async (home: string) => {
  const all = await readdir(home, { recursive: true, withFileTypes: true })
  return all.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name))
}

/** A cache of an earlier start, with the mode that it had. */
const cacheIn = async (
  home: string,
  modes: Readonly<Partial<Record<'.cache' | 'toolway' | 'compiled' | 'v', number>>>,
) => {
  let path = home
  for (const name of ['.cache', 'toolway', 'compiled', 'v'] as const) {
    path = join(path, name)
    await mkdir(path)
    await chmod(path, modes[name] ?? 0o755)
  }
  await writeFile(join(path, 'entry'), '')
  return join(home, '.cache/toolway/compiled')
}

posix('B11: the compile cache is private with any umask', async () => {
  await using home = await folder()
  await versionIn(home.cwd, '000')
  const folders = await foldersIn(home.cwd)
  expect(folders).toHaveLength(4)
  for (const path of folders) expect((await stat(path)).mode & 0o777).toBe(0o700)
})

posix('B11: a compile cache that only its owner could write to is kept', async () => {
  await using home = await folder()
  const cache = await cacheIn(home.cwd, {})
  await versionIn(home.cwd)
  expect(await readdir(cache)).toEqual(['v', expect.stringMatching(/^v2/)])
})

posix.each([{ compiled: 0o777 }, { compiled: 0o775 }, { v: 0o777 }, { toolway: 0o777, compiled: 0o777 }])(
  'B11: a compile cache that others could have written to is replaced: %o',
  async (modes) => {
    await using home = await folder()
    const cache = await cacheIn(home.cwd, modes)
    await versionIn(home.cwd)
    expect(await readdir(cache)).toEqual([expect.stringMatching(/^v2/)])
    for (const path of [join(cache, '..'), cache]) expect((await stat(path)).mode & 0o022).toBe(0)
  },
)

posix('B11: no compile cache is used in a folder where others could replace it', async () => {
  await using home = await folder()
  const cache = await cacheIn(home.cwd, { '.cache': 0o777 })
  await versionIn(home.cwd)
  expect(await readdir(cache)).toEqual(['v'])
})

posix.each(['toolway', 'toolway/compiled'])(
  'B11: no compile cache is used behind a symbolic link: %s',
  async (name) => {
    await using home = await folder()
    const [link, target] = [join(home.cwd, '.cache', name), join(home.cwd, 'target')]
    await mkdir(join(link, '..'), { recursive: true })
    await mkdir(target)
    await symlink(target, link)
    await versionIn(home.cwd)
    const files = await readdir(target, { recursive: true, withFileTypes: true })
    expect(files.filter((entry) => entry.isFile())).toEqual([])
  },
)

test.skipIf(process.getuid?.() !== 0)('B11: a compile cache of another user is not used', async () => {
  await using home = await folder()
  const cache = await cacheIn(home.cwd, {})
  await chown(cache, 65_534, 65_534)
  await versionIn(home.cwd)
  expect(await readdir(cache)).toEqual(['v'])
})

test.skipIf(process.platform !== 'linux')('B11: Toolway starts without a cache where no folder can be created', () =>
  versionIn('/proc'),
)
