import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { deadline, endWith } from './deadline.ts'

test('F10: the signal aborts with its own reason when time is up', () => {
  const clock = createManualClock()
  using limit = deadline(clock, 100, () => new Error('late'))
  clock.advance(99)
  expect(limit.signal.aborted).toBe(false)
  clock.advance(1)
  expect(limit.signal.reason).toEqual(new Error('late'))
})

test('F10: the parent aborts it at once, with the reason of the parent', () => {
  const parent = new AbortController()
  using limit = deadline(createManualClock(), 100, () => new Error('late'), parent.signal)
  parent.abort('gone')
  expect(limit.signal.reason).toBe('gone')
  using later = deadline(createManualClock(), 100, () => new Error('late'), parent.signal)
  expect(later.signal.reason).toBe('gone')
})

test('a deadline that is disposed of leaves no timer', () => {
  const clock = createManualClock()
  deadline(clock, 100, () => new Error('late'))[Symbol.dispose]()
  expect(clock.pending).toBe(0)
})

test('a waiter that gives up does not stop the work of others', async () => {
  const work = Promise.withResolvers<string>()
  const impatient = new AbortController()
  const first = endWith(impatient.signal, work.promise)
  const second = endWith(new AbortController().signal, work.promise)
  impatient.abort(new Error('gone'))
  await expect(first).rejects.toThrow('gone')
  work.resolve('done')
  await expect(second).resolves.toBe('done')
  await expect(endWith(impatient.signal, work.promise)).rejects.toThrow('gone')
})

test('a pause stops the time, and overlapping pauses end with the last', () => {
  const clock = createManualClock()
  using limit = deadline(clock, 100, () => new Error('late'))
  clock.advance(40)
  const first = limit.pause()
  const second = limit.pause()
  clock.advance(1_000)
  first[Symbol.dispose]()
  clock.advance(1_000)
  second[Symbol.dispose]()
  clock.advance(59)
  expect(limit.signal.aborted).toBe(false)
  clock.advance(1)
  expect(limit.signal.aborted).toBe(true)
})

test('work that fails after its waiter gave up causes no unhandled rejection', async () => {
  const unhandled: unknown[] = []
  const listen = (reason: unknown) => unhandled.push(reason)
  process.on('unhandledRejection', listen)
  const gone = AbortSignal.abort(new Error('gone'))
  await expect(endWith(gone, Promise.reject(new Error('late')))).rejects.toThrow('gone')
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', listen)
  expect(unhandled).toEqual([])
})

test.each([
  [50, false],
  [5_000, true],
])('F10: a deadline that runs out in a pause of %i ms knows that it is late: %s', (ms, late) => {
  const clock = createManualClock()
  const seen: boolean[] = []
  using limit = deadline(clock, 100, (isLate) => {
    seen.push(isLate)
    return new Error('late')
  })
  clock.advance(60)
  clock.pause(ms)
  expect([limit.signal.aborted, seen]).toEqual([true, [late]])
})

test('V4: a restart gives the whole time again, up to the most in all, in which pauses do not count', () => {
  const clock = createManualClock()
  using limit = deadline(clock, 1_000, () => new Error('too late'))
  clock.advance(900)
  limit.restart(2_500)
  clock.advance(900)
  expect(limit.signal.aborted).toBe(false)
  {
    using _ = limit.pause()
    clock.advance(10_000)
  }
  limit.restart(2_500)
  clock.advance(699)
  expect(limit.signal.aborted).toBe(false)
  clock.advance(1)
  expect(limit.signal.aborted).toBe(true)
})
