import { availableParallelism } from 'node:os'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import { createStartQueue, ReconnectBackoff } from './reconnect.ts'

const error = (retryAfterMs?: number) =>
  new ToolwayError('SERVER_UNAVAILABLE', 'It ended.', retryAfterMs === undefined ? {} : { retryAfterMs })
const restarts = { max: 2, window: 60_000 }

test('T5: pauses are spread at random over a time that doubles up to a limit, and end with the first success', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(12), (dice, times) => {
      const backoff = new ReconnectBackoff(createManualClock(), { random: () => dice })
      for (let failure = 0; failure <= times; failure++) backoff.failed(error())
      expect(backoff.pauseMs).toBeCloseTo(dice * Math.min(1_000 * 2 ** times, 30_000), 3)
      backoff.succeeded()
      expect([backoff.pauseMs, backoff.failure]).toEqual([0, undefined])
    }),
  )
})

test('T5: callers wait at most 10 s for the next attempt to reach a server that could be reached before', () => {
  const clock = createManualClock()
  const backoff = new ReconnectBackoff(clock, { random: () => 0.9 })
  const fail = (times: number) => {
    for (let failure = 0; failure < times; failure++) backoff.failed(error())
  }
  fail(8)
  backoff.called()
  expect(backoff.pauseMs).toBeCloseTo(27_000, 3)
  backoff.succeeded()
  fail(8)
  expect(backoff.pauseMs).toBeCloseTo(27_000, 3)
  backoff.called()
  expect(backoff.pauseMs).toBeCloseTo(9_000, 3)
  clock.advance(5_000)
  backoff.called()
  expect(backoff.pauseMs).toBeCloseTo(4_000, 3)
})

test('T5: callers do not shorten the pause that a server asked for, or that follows too many restarts', () => {
  const backoff = new ReconnectBackoff(createManualClock(), { restarts, random: () => 0 })
  backoff.succeeded()
  backoff.failed(error(20_000))
  backoff.called()
  expect(backoff.pauseMs).toBe(20_000)
  for (let start = 0; start < 2; start++) backoff.failed(error())
  backoff.called()
  expect([backoff.exhausted, backoff.pauseMs]).toEqual([true, 60_000])
})

test('T5: a server is not asked before its retry time', () => {
  const clock = createManualClock()
  const backoff = new ReconnectBackoff(clock)
  backoff.failed(error(7_000))
  expect(backoff.pauseMs).toBe(7_000)
})

test('G2: a crash alone costs no pause; one more than the limit within the window does', () => {
  const clock = createManualClock()
  const backoff = new ReconnectBackoff(clock, { restarts })
  for (let crash = 0; crash < 2; crash++) {
    backoff.crashed(error(), 100)
    expect(backoff.failure).toBeUndefined()
    clock.advance(1_000)
  }
  backoff.crashed(error(), 100)
  expect([backoff.exhausted, backoff.pauseMs]).toEqual([true, 60_000])
})

test('G2: crashes that lie apart, or of processes that have lasted, do not add up', () => {
  const clock = createManualClock()
  const backoff = new ReconnectBackoff(clock, { restarts })
  for (let crash = 0; crash < 20; crash++) {
    backoff.crashed(error(), 100)
    clock.advance(30_001)
  }
  for (let crash = 0; crash < 20; crash++) backoff.crashed(error(), 60_000)
  expect([backoff.exhausted, backoff.failure]).toEqual([false, undefined])
})

test('T5: with its starts used up it gets one in each window, until one of them lasts', () => {
  const clock = createManualClock()
  const backoff = new ReconnectBackoff(clock, { restarts, random: () => 0 })
  for (let start = 0; start < 3; start++) backoff.failed(error())
  expect(backoff.pauseMs).toBe(60_000)
  clock.advance(60_000)
  expect(backoff.pauseMs).toBe(0)
  backoff.failed(error())
  expect(backoff.pauseMs).toBe(60_000)
  clock.advance(60_000)
  backoff.succeeded()
  expect(backoff.pauseMs).toBe(0)
  clock.advance(1_000)
  backoff.crashed(error(), 1_000)
  expect(backoff.pauseMs).toBe(60_000)
  clock.advance(60_000)
  backoff.succeeded()
  clock.advance(60_000)
  backoff.crashed(error(), 60_000)
  expect([backoff.exhausted, backoff.pauseMs]).toEqual([false, 0])
})

test('T5: while it is down one attempt at a time is enough', () => {
  const backoff = new ReconnectBackoff(createManualClock())
  {
    using _ = backoff.attempt()
    expect(backoff.probing).toBe(false)
  }
  backoff.failed(error())
  {
    using _ = backoff.attempt()
    expect(backoff.probing).toBe(true)
  }
  expect(backoff.probing).toBe(false)
})

test('V2: createStartQueue lets as many servers start at a time as there are cores', async () => {
  const cores = availableParallelism()
  const startTurn = createStartQueue(createManualClock())
  const { signal } = new AbortController()
  let started = 0
  for (let server = 0; server <= cores; server++) void startTurn(() => false, signal).then(() => started++)
  await setImmediate()
  expect(started).toBe(cores)
})
