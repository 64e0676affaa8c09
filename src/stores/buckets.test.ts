import { expect, test } from 'vitest'
import { bucketsContract } from '../../tests/contract/buckets.ts'
import { memoryBuckets } from './buckets.ts'

bucketsContract('memory', () => memoryBuckets())

const start = 1_800_000_000_000
const from = (key: string, perMinute = 1) => [{ key, perMinute }]

test('F8: buckets that are full again are forgotten, the others are not', () => {
  const buckets = memoryBuckets()
  for (let number = 0; number < 1_000; number++) buckets.take(from(`idle ${number}`), start)
  expect(buckets.size).toBe(1_000)
  for (let second = 1; second <= 125; second++) buckets.take(from('busy', 2), start + second * 1_000)
  expect(buckets.size).toBe(1)
  expect(buckets.take(from('busy', 2), start + 125_000)).toMatchObject({ allowed: false })
})

test('F8: after a long silence nothing is remembered', () => {
  const buckets = memoryBuckets()
  for (let number = 0; number < 1_000; number++) buckets.take(from(`idle ${number}`), start)
  buckets.take(from('new'), start + 3_600_000)
  expect(buckets.size).toBe(1)
})

test('F8: the number of buckets is limited, and only unused ones are evicted', () => {
  const buckets = memoryBuckets({ most: 100 })
  for (let number = 0; number < 100; number++) buckets.take(from(`quick ${number}`, 60), start + number)
  // Every bucket holds a call, so a new bucket is refused, while existing buckets still accept calls.
  const refused = { code: 'OVERLOADED', details: { retryAfterMs: 59_500 } }
  expect(() => buckets.take(from('new'), start + 500)).toThrow(expect.objectContaining(refused))
  expect(buckets.take(from('quick 99', 60), start + 500)).toEqual({ allowed: true })
  expect(buckets.size).toBe(100)
  // After a minute, the calls of all buckets have expired, except for the bucket that was used again.
  for (let number = 0; number < 99; number++) {
    expect(buckets.take(from(`slow ${number}`), start + 60_100)).toEqual({ allowed: true })
    expect(buckets.size).toBeLessThanOrEqual(100)
  }
  for (let number = 0; number < 99; number++) {
    expect(buckets.take(from(`slow ${number}`), start + 60_100)).toMatchObject({ allowed: false })
  }
})

test('F8: a call that needs more buckets than can be kept takes nothing', () => {
  const buckets = memoryBuckets({ most: 2 })
  buckets.take(from('a'), start)
  buckets.take(from('b', 2), start)
  const both = [...from('b', 2), ...from('c')]
  expect(() => buckets.take(both, start)).toThrow(expect.objectContaining({ code: 'OVERLOADED' }))
  expect(buckets.take(from('b', 2), start)).toEqual({ allowed: true })
})
