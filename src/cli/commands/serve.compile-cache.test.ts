import { mkdir, mkdtempDisposable, readdir, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { removeOldCompiled } from './serve.ts'

test('B11: compile caches of other Node versions are removed after a month; others stay', async () => {
  await using made = await mkdtempDisposable(join(tmpdir(), 'toolway-cli-'))
  const long = new Date('2020-01-01')
  for (const owner of ['toolway', 'others']) {
    for (const name of ['v24.1', 'v24.2', 'v24.3'])
      await mkdir(join(made.path, owner, 'compiled', name), { recursive: true })
    for (const name of ['v24.1', 'v24.2']) await utimes(join(made.path, owner, 'compiled', name), long, long)
    await removeOldCompiled(join(made.path, owner, 'compiled', 'v24.2'))
  }
  expect((await readdir(join(made.path, 'toolway', 'compiled'))).sort()).toEqual(['v24.2', 'v24.3'])
  expect(await readdir(join(made.path, 'others', 'compiled'))).toHaveLength(3)
})
