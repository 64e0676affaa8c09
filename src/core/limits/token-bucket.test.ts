import { expect, test } from 'vitest'
import { TokenBuckets } from './token-bucket.ts'

const rate = { burst: 10, intervalMs: 1_000 }

test('B6: TokenBuckets are forgotten in time and bounded in number', () => {
  let now = 0
  const buckets = new TokenBuckets(3)
  const take = (key: string, times = 1) => {
    let waitMs = 0
    for (let count = 0; count < times; count++) waitMs = buckets.take(key, rate, now)
    return waitMs
  }
  expect(take('here', 10)).toBe(0)
  expect(take('here', 1_000)).toBe(1_000)
  now += 1_000
  expect(take('here')).toBe(0)
  expect(take('here')).toBe(1_000)
  now += 10_000
  expect(take('here', 10)).toBe(0)
  buckets.giveBack('here', rate, now)
  expect(take('here')).toBe(0)
  for (const key of ['a', 'b', 'c']) take(key, 10)
  take('d')
  expect(['b', 'c', 'a'].map((key) => take(key))).toEqual([1_000, 1_000, 0])
})

test('B6: a token that is given back can be taken again, and no more than the burst', () => {
  const buckets = new TokenBuckets(3)
  expect(buckets.take('here', { burst: 1, intervalMs: 100 }, 0)).toBe(0)
  buckets.giveBack('here', { burst: 1, intervalMs: 100 }, 0)
  expect(buckets.take('here', { burst: 1, intervalMs: 100 }, 0)).toBe(0)
  expect(buckets.take('here', { burst: 1, intervalMs: 100 }, 40)).toBe(60)
})
