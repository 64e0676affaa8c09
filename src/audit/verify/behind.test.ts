import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { compareWithArchive } from './verify-archive.ts'

const chain = (lane: string, seq: number, epoch = 1, replica = 'here') => ({
  ...{ id: 1, replica, host: 'h', lane, epoch, seq },
  ...{ hash: '', removedTo: 0 },
})
const ends = (lane: string, seq: number) => ({ lane, last: { seq, time: '' } })

test('F11: a log that lacks what PostgreSQL has a copy of was cut off, deleted or rolled back', async () => {
  await using folder = await temporaryFolder()
  await writeFile(join(folder.path, 'replica'), 'here\n')
  const problems = (...chains: ReturnType<typeof chain>[]) =>
    compareWithArchive(folder.path, [ends('1', 10), ends('2', 5)], chains).map(({ kind, lane, seq }) => [
      kind,
      lane,
      seq,
    ])
  expect(problems(chain('1', 10), chain('2', 4))).toEqual([])
  expect(problems(chain('1', 11), chain('2', 5), chain('3', 7))).toEqual([
    ['rolled_back', '1', 11],
    ['rolled_back', '3', 7],
  ])
  // Ignores another replica's writers, and records from before a writer was restarted with a new chain.
  expect(problems(chain('1', 99, 1, 'elsewhere'), chain('2', 99, 1), chain('2', 5, 2))).toEqual([])
})
