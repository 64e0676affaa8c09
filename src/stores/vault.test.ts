import { copyFile, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../tests/fixtures/folders.ts'
import { fileVault } from './vault.ts'

test('B6: what is kept comes back, also after a restart, and can be forgotten', async () => {
  await using folder = await temporaryFolder()
  await fileVault(folder.path).write('a', 'first')
  await fileVault(folder.path).write('b', 'second')
  await fileVault(folder.path).write('a', 'third')
  const vault = fileVault(folder.path)
  expect(await vault.keys()).toEqual(['a', 'b'])
  expect(await vault.read('a')).toBe('third')
  await vault.remove('a')
  expect(await vault.read('a')).toBeUndefined()
  expect(await vault.keys()).toEqual(['b'])
  expect(await fileVault(join(folder.path, 'none')).keys()).toEqual([])
})

test('B6: on disk it is sealed, readable by its owner alone, and bound to its key', async () => {
  await using folder = await temporaryFolder()
  const vault = fileVault(folder.path)
  await vault.write('server one', 'a refresh token')
  await vault.write('server two', 'another token')
  const names = await readdir(join(folder.path, 'vault'))
  expect(names).toHaveLength(2)
  for (const path of [...names.map((name) => join('vault', name)), 'vault-key']) {
    expect((await stat(join(folder.path, path))).mode & 0o077).toBe(0)
    expect(await readFile(join(folder.path, path), 'utf8')).not.toMatch(/token|server/)
  }
  const [one = '', two = ''] = names.map((name) => join(folder.path, 'vault', name))
  await copyFile(one, two)
  expect(await vault.keys()).toHaveLength(1)
  await writeFile(one, 'damaged')
  expect(await vault.keys()).toEqual([])
  expect(await vault.read('server one')).toBeUndefined()
})
