import { expect, test } from 'vitest'
import { runs, seed } from '../../../../tests/fixtures/runs.ts'
import { compareReaders } from './compare.fixture.ts'

test('B6: no response is accepted that undici or node:http rejects or reads differently, however it is split', async () => {
  const { numRuns } = runs(300, 30_000)
  const { taken, refused, wrong } = await compareReaders(numRuns, seed())
  expect(wrong.slice(0, 3)).toEqual([])
  expect(taken).toBeGreaterThan(numRuns / 10)
  expect(refused).toBeGreaterThan(numRuns / 10)
}, 600_000)
