import { expect, test } from 'vitest'
import { compareReaders } from '../../src/upstream/transports/http1/compare.fixture.ts'

test('B6: of 100,000 responses none is taken that undici or node:http would refuse or read otherwise', async () => {
  const seed = Date.now()
  const { wrong, ...counts } = await compareReaders(100_000, seed)
  console.log({ seed, ...counts })
  expect(wrong.slice(0, 10)).toEqual([])
  expect(counts.taken).toBeGreaterThan(10_000)
  expect(counts.refused).toBeGreaterThan(10_000)
})
