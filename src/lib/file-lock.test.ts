import { spawnSync } from 'node:child_process'
import { mkdtempDisposable, readdir, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lockFile } from './file-lock.ts'

const place = async () => {
  const folder = await mkdtempDisposable(join(tmpdir(), 'toolway-lock-'))
  return { ...folder, lock: join(folder.path, 'lock'), [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

test('B6: one at a time holds a lock, and nothing is left of it', async () => {
  await using at = await place()
  let holders = 0
  let most = 0
  const hold = async () => {
    await using _lock = await lockFile(at.lock)
    most = Math.max(most, ++holders)
    await new Promise((resolve) => setImmediate(resolve))
    holders--
  }
  await Promise.all(Array.from({ length: 10 }, hold))
  expect(most).toBe(1)
  expect(await readdir(at.path)).toEqual([])
})

test('B6: the lock of a process that died is taken over', async () => {
  await using at = await place()
  const { pid } = spawnSync(process.execPath, ['-e', ''])
  await writeFile(at.lock, `${pid} ${hostname()} abc\n`)
  await using _lock = await lockFile(at.lock)
  expect(await readdir(at.path)).toEqual(['lock'])
})

test('B6: the lock of somebody who may be alive is not taken away', async () => {
  await using at = await place()
  await writeFile(at.lock, `1 some-other-machine abc\n`)
  await expect(lockFile(at.lock, 50)).rejects.toThrow(/remove the file/)
  await writeFile(at.lock, `${process.pid} ${hostname()} abc\n`)
  await expect(lockFile(at.lock, 50)).rejects.toThrow(/is locked by/)
})
