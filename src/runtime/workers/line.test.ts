import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { ToolwayError } from '../../core/errors.ts'
import { lineTo } from './line.fixture.ts'

const bucket = [{ key: 'a', perMinute: 1 }]

test('B10: what the other side refuses is refused here, with its reason', async () => {
  using test = lineTo({
    take() {
      throw new ToolwayError('OVERLOADED', 'No room; call again in 3 seconds.', { retryAfterMs: 3_000 })
    },
  })
  await expect(test.line.ask('take', bucket, 1)).rejects.toMatchObject({
    code: 'OVERLOADED',
    message: 'No room; call again in 3 seconds.',
    details: { retryAfterMs: 3_000 },
  })
  expect(test.line.up).toBe(true)
})

test('B10: a fault of the other side is no answer, at once, and is told in the log', async () => {
  using test = lineTo({
    take() {
      throw new Error('a bug')
    },
  })
  expect(await test.line.ask('take', bucket, 1)).toBeUndefined()
  expect(test.log.lines).toMatchObject([{ level: 'error', facts: { asked: 'take' } }])
})

test('B10: nobody waits for one that does not answer, and it is noticed when it does again', async () => {
  const clock = createManualClock()
  let silent = true
  using test = lineTo({ usage: () => (silent ? new Promise(() => {}) : { entries: 7 }) }, clock)
  const asked = [1, 2, 3].map(() => test.line.ask('usage'))
  await clock.pass(500)
  expect(await Promise.all(asked)).toEqual([undefined, undefined, undefined])
  expect(test.line.up).toBe(false)
  expect(test.log.lines.map(({ message }) => message)).toEqual(['the first process does not answer'])
  // Nothing passes any more on the clock: these do not wait.
  expect(await test.line.ask('usage')).toBeUndefined()
  silent = false
  expect(await test.line.ask('usage')).toBeUndefined()
  clock.advance(1_000)
  expect(await test.line.ask('usage')).toBeUndefined()
  await until(() => test.line.up, { what: 'the return' })
  expect(await test.line.ask('usage')).toEqual({ entries: 7 })
  expect(test.log.lines.at(-1)?.message).toBe('the first process answers again')
})

test('B10: what is told arrives before what is asked after it', async () => {
  const told: string[] = []
  using test = lineTo({ drop: (group: string) => void told.push(group), usage: () => told.length })
  for (const group of ['a', 'b', 'c']) test.line.tell('drop', group)
  expect(await test.line.ask('usage')).toBe(3)
})
