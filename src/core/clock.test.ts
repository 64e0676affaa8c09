import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { connect, createServer } from 'node:net'
import { expect, test, vi } from 'vitest'
import { pausedMs, systemClock } from './clock.ts'

/** Blocks this process, as if it had been stopped by a signal or delayed by a busy machine. */
const pauseProcess = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

/** Two ends of a connection. */
async function pair(): Promise<[Socket, Socket, AsyncDisposable]> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const near = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [far] = (await once(server, 'connection')) as [Socket]
  return [near, far, { [Symbol.asyncDispose]: async () => void [near.destroy(), far.destroy(), server.close()] }]
}

test('F10: a timer that is late after a pause runs after waiting input was read, which may cancel it', async () => {
  const [near, far, ends] = await pair()
  await using _ = ends
  const order: string[] = []
  const lastTimer = Promise.withResolvers<void>()
  near.once('data', () => {
    order.push('data')
    calledOff[Symbol.dispose]()
  })
  const calledOff = systemClock.after(20, () => order.push('called off'))
  const verdict = systemClock.after(20, () => {
    order.push('verdict')
    lastTimer.resolve()
  })
  await new Promise<void>((resolve) => far.write('answer', () => resolve()))
  pauseProcess(pausedMs + 100)
  await lastTimer.promise
  expect(order).toEqual(['data', 'verdict'])
  expect(verdict.lateMs).toBeGreaterThanOrEqual(pausedMs)
})

test('a timer that must be prompt is not held back after a pause, and knows that it is late', async () => {
  const done = Promise.withResolvers<void>()
  const order: string[] = []
  const patient = systemClock.after(10, () => {
    order.push('patient')
    done.resolve()
  })
  const prompt = systemClock.after(10, () => order.push('prompt'), { promptly: true })
  pauseProcess(pausedMs + 50)
  await done.promise
  expect(order).toEqual(['prompt', 'patient'])
  for (const { lateMs } of [patient, prompt]) expect(lateMs).toBeGreaterThanOrEqual(pausedMs)
})

test('a timer on time is not late', async () => {
  const fired = Promise.withResolvers<void>()
  const timer = systemClock.after(1, fired.resolve)
  await fired.promise
  expect(timer.lateMs).toBeLessThan(pausedMs)
})

test('F8: a step of the wall clock of the machine does not move the monotonic clock', () => {
  const { now } = Date
  const [before, wall] = [systemClock.monotonic(), systemClock.now()]
  vi.spyOn(Date, 'now').mockImplementation(() => now() + 3_600_000)
  try {
    expect(systemClock.now() - wall).toBeGreaterThanOrEqual(3_600_000)
    expect(systemClock.monotonic() - before).toBeLessThan(60_000)
    expect(systemClock.monotonic()).toBeGreaterThanOrEqual(before)
  } finally {
    vi.restoreAllMocks()
  }
})

test('F10: a timer that is longer than those of Node does not fire at once', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const fired = vi.fn()
    for (const ms of [2 ** 31, Number.POSITIVE_INFINITY]) systemClock.after(ms, fired)
    vi.advanceTimersByTime(1_000_000)
    expect(fired).not.toHaveBeenCalled()
  } finally {
    vi.useRealTimers()
  }
})
