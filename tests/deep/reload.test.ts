import { expect, test } from 'vitest'
import { reloadUnderLoad } from '../e2e/reload/under-load.ts'

test('G8: 200 reloads, half of them broken, under 32 callers: no call fails, each change is live in 500 ms', async () => {
  const { failures, rejected, calls, delays } = await reloadUnderLoad(200)
  const slowest = Math.max(...delays)
  console.info(`${calls} calls; slowest change live after ${Math.round(slowest)} ms`)
  expect(failures.slice(0, 3)).toEqual([])
  expect(rejected).toBe(100)
  expect(slowest).toBeLessThan(500)
}, 300_000)
