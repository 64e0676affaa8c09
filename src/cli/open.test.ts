import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { folder } from './folder.fixture.ts'
import { recordedShell } from './kit.fixture.ts'
import { load } from './load.ts'
import { openWatching } from './open.ts'

test('B6: a gateway without a file and commands use the same state after a file is created', async () => {
  await using at = await folder()
  const { shell } = recordedShell(at)
  await using gateway = await openWatching(shell, { watch: false })
  const { path } = gateway.loaded.config.stores
  const file = join(at.cwd, 'toolway.yaml')
  await writeFile(file, 'version: 1\n')
  await gateway.reload()
  expect(await readFile(join(path, 'configuration'), 'utf8')).toBe(`${file}\n`)
  expect((await load(shell, {})).config.stores.path).toBe(path)
})
