import { expect, test } from 'vitest'
import { compareReaders } from './compare.fixture.ts'

test('B6: nothing is taken that undici or node:http would refuse or read otherwise, however it is cut', async () => {
  const { taken, refused, wrong } = await compareReaders(3_000, Date.now())
  expect(wrong.slice(0, 3)).toEqual([])
  expect(taken).toBeGreaterThan(300)
  expect(refused).toBeGreaterThan(300)
}, 60_000)
