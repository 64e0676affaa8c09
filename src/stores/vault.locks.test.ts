import { hash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { locksContract } from '../../tests/contract/locks.ts'
import { temporaryFolder } from '../../tests/fixtures/folders.ts'
import { fileLocks, memoryLocks } from './vault.ts'

const open = new AsyncDisposableStack()
afterAll(() => open.disposeAsync())
const folder = async () => open.use(await temporaryFolder()).path

locksContract('memory', async () => {
  const locks = memoryLocks()
  return [locks, locks]
})

locksContract('files', async () => {
  const path = await folder()
  return [fileLocks(path), fileLocks(path)]
})

test('B10: a wait for the lock of a process that may be alive ends with an error that names the file', async () => {
  const path = await folder()
  await mkdir(join(path, 'locks'))
  await writeFile(join(path, 'locks', hash('sha256', 'grant')), '1 another-machine abc\n')
  await expect(fileLocks(path, 30).hold('grant')).rejects.toMatchObject({
    code: 'OVERLOADED',
    message: expect.stringMatching(/remove the file/),
  })
})
