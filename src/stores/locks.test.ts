import { expect, test } from 'vitest'
import { temporaryFolder } from '../../tests/fixtures/folders.ts'
import { fileLocks, memoryLocks } from './locks.ts'

test('B10: only one holds a lock at a time, also across processes; other names do not wait', async () => {
  await using folder = await temporaryFolder()
  // Two sets of locks on one folder are as good as two processes.
  const sets = [fileLocks(folder.path), fileLocks(folder.path)]
  let inside = 0
  let most = 0
  const work = async (index: number) => {
    await using _ = await sets[index % 2]!.hold('grant')
    most = Math.max(most, ++inside)
    await new Promise(setImmediate)
    inside--
  }
  await Promise.all(Array.from({ length: 8 }, (_, index) => work(index)))
  expect(most).toBe(1)
  const locks = memoryLocks()
  await using _one = await locks.hold('one')
  await using _two = await locks.hold('two')
})
