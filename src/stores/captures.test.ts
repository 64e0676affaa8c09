import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import type { CapturedCall } from '../core/history.ts'
import { memoryCaptures } from './captures.ts'

const callOf = (id: string, text = '{}', principal = 'ann'): CapturedCall => ({
  ...{ id, at: 0, principal, agent: 'default', kind: 'tool', server: 'files', name: 'read', uri: undefined },
  arguments: { text, bytes: text.length, truncated: false, redacted: false },
  ...{ result: undefined, error: undefined, progress: [], droppedProgress: 0 },
})

function open(maxBytes: number, keep = 1_000_000) {
  const clock = createManualClock()
  const limits = { maxBytes, keep }
  return { clock, limits, captures: memoryCaptures(() => limits, clock) }
}

test('V11: a captured call is found, and its end replaces its beginning', () => {
  const { captures } = open(1_000_000)
  captures.put(callOf('one'))
  captures.put({ ...callOf('one'), error: { code: 'TIMEOUT', message: 'late' } })
  expect(captures.find('one')?.error?.code).toBe('TIMEOUT')
  expect(captures.find('two')).toBeUndefined()
})

test('V6, V11: captured calls are bounded in all and per caller; the oldest go first', () => {
  const { captures } = open(20_000)
  const long = 'x'.repeat(1_000)
  for (let index = 0; index < 20; index++) captures.put(callOf(`ann ${index}`, long))
  const { perCaller, largest, refused } = captures.use()
  expect(largest).toBeLessThanOrEqual(perCaller)
  expect(refused).toBeGreaterThan(0)
  expect(captures.find('ann 0')).toBeUndefined()
  expect(captures.find('ann 17')).toBeDefined()
  for (const principal of ['bob', 'cid']) {
    for (let index = 0; index < 20; index++) captures.put(callOf(`${principal} ${index}`, long, principal))
  }
  expect(captures.use().used).toBeLessThanOrEqual(20_000)
  expect(captures.find('ann 17')).toBeUndefined()
  expect(captures.find('cid 19')).toBeDefined()
  captures.put(callOf('huge', 'x'.repeat(100_000), 'dan'))
  expect(captures.find('huge')).toBeUndefined()
})

test('V11: captured calls are dropped after `keep`, also if no other call comes', async () => {
  const { captures, clock } = open(1_000_000, 60_000)
  captures.put(callOf('one'))
  await clock.pass(30_000)
  captures.put(callOf('two'))
  await clock.pass(30_000)
  expect(captures.find('one')).toBeUndefined()
  expect(captures.find('two')).toBeDefined()
  await clock.pass(31_000)
  expect(captures.use()).toMatchObject({ used: 0, largest: 0 })
})

test('V11: smaller limits after a reload apply to the next call', () => {
  const { captures, limits } = open(1_000_000)
  for (let index = 0; index < 10; index++) captures.put(callOf(`${index}`, 'x'.repeat(1_000)))
  limits.maxBytes = 10_000
  captures.put(callOf('last', 'x'))
  expect(captures.use().used).toBeLessThanOrEqual(10_000)
  expect(captures.find('last')).toBeDefined()
})
