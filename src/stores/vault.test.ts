import { writeFileSync } from 'node:fs'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { vaultContract } from '../../tests/contract/vault.ts'
import { temporaryFolder } from '../../tests/fixtures/folders.ts'
import { fileVault } from './vault.ts'

const open = new AsyncDisposableStack()
afterAll(() => open.disposeAsync())

vaultContract('files', async () => {
  const { path } = open.use(await temporaryFolder())
  const place = join(path, 'vault')
  const names = () => readdir(place)
  return {
    vault: fileVault(path),
    again(key) {
      if (key !== undefined) writeFileSync(join(path, 'vault-key'), key.padEnd(43, '-'))
      return fileVault(path)
    },
    records: async () =>
      new Map(
        await Promise.all(
          (await names()).map(async (name) => [name, (await readFile(join(place, name), 'utf8')).trim()] as const),
        ),
      ),
    plant: (name, record) => writeFile(join(place, name), record),
  }
})

test('B6: only the owner can read the files of a vault', async () => {
  await using folder = await temporaryFolder()
  await fileVault(folder.path).write('server one', 'a refresh token')
  const names = await readdir(join(folder.path, 'vault'))
  for (const path of [...names.map((name) => join('vault', name)), 'vault-key']) {
    expect((await stat(join(folder.path, path))).mode & 0o077).toBe(0)
  }
  expect(await fileVault(join(folder.path, 'none')).keys()).toEqual([])
})
