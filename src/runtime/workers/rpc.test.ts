import { setImmediate as immediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { ToolwayError } from '../../core/errors.ts'
import { detectHang } from './primary.ts'
import { connectTo } from './rpc.fixture.ts'

const bucket = [{ key: 'a', perMinute: 1 }]

test('B10: an error of the other side is thrown here, with its code and details', async () => {
  using test = connectTo({
    take() {
      throw new ToolwayError('OVERLOADED', 'No room; call again in 3 seconds.', { retryAfterMs: 3_000 })
    },
  })
  await expect(test.rpc.request('take', bucket, 1)).rejects.toMatchObject({
    code: 'OVERLOADED',
    message: 'No room; call again in 3 seconds.',
    details: { retryAfterMs: 3_000 },
  })
  expect(test.rpc.up).toBe(true)
})

test('B10: a bug of the other side is logged and gives no result, at once', async () => {
  using test = connectTo({
    take() {
      throw new Error('a bug')
    },
  })
  expect(await test.rpc.request('take', bucket, 1)).toBeUndefined()
  expect(test.log.lines).toMatchObject([{ level: 'error', facts: { method: 'take' } }])
})

test('B10: requests fail fast while the other side does not respond, until it does again', async () => {
  const clock = createManualClock()
  let silent = true
  using test = connectTo({ usage: () => (silent ? new Promise(() => {}) : { entries: 7 }) }, clock)
  const asked = [1, 2, 3].map(() => test.rpc.request('usage'))
  await clock.pass(500)
  expect(await Promise.all(asked)).toEqual([undefined, undefined, undefined])
  expect(test.rpc.up).toBe(false)
  expect(test.log.lines).toMatchObject([{ level: 'warn', message: expect.stringContaining('primary') }])
  // The clock stands still: these do not wait.
  expect(await test.rpc.request('usage')).toBeUndefined()
  silent = false
  expect(await test.rpc.request('usage')).toBeUndefined()
  clock.advance(1_000)
  expect(await test.rpc.request('usage')).toBeUndefined()
  await until(() => test.rpc.up, { what: 'a response' })
  expect(await test.rpc.request('usage')).toEqual({ entries: 7 })
  expect(test.log.lines.map(({ level }) => level)).toEqual(['warn', 'info'])
})

test('B10: a notification arrives before the requests after it', async () => {
  const dropped: string[] = []
  using test = connectTo({ drop: (group: string) => void dropped.push(group), usage: () => dropped.length })
  for (const group of ['a', 'b', 'c']) test.rpc.notify('drop', group)
  expect(await test.rpc.request('usage')).toBe(3)
})

test('B10: a worker that does not respond for half a minute is noticed once; one that is late is not', async () => {
  const clock = createManualClock()
  const hung = vi.fn()
  let answer = () => {}
  using test = connectTo({ ping: () => new Promise<void>((resolve) => (answer = resolve)) }, clock)
  using _detector = detectHang(test.rpc, clock, hung)
  const seconds = async (count: number) => {
    for (let second = 0; second < count; second++) {
      await clock.pass(1_000)
      await immediate()
    }
  }
  await seconds(20)
  answer()
  await until(() => test.rpc.up, { what: 'a response' })
  expect(hung).not.toHaveBeenCalled()
  await seconds(40)
  expect(hung).toHaveBeenCalledOnce()
})
