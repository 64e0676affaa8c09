import { expect, test, vi } from 'vitest'
import { createManualClock } from '../../../../tests/fixtures/clock.ts'
import { keepLoaded } from './load-model.ts'

const never = new AbortController().signal
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

function residence(dispose: () => Promise<void> = async () => {}) {
  const clock = createManualClock()
  const stuck = vi.fn()
  let loads = 0
  const load = async () => ({ number: ++loads, dispose })
  return { clock, stuck, kept: keepLoaded({ load, idleMs: 0, stuck, unloaded() {}, clock }) }
}

test('S6: work that ignores its signal is abandoned, and the next use loads again', async () => {
  const { clock, stuck, kept } = residence()
  const controller = new AbortController()
  const first = kept.use(() => new Promise(() => {}), controller.signal)
  const second = kept.use(async ({ number }) => number, never)
  await settled()
  controller.abort(new Error('too slow'))
  clock.advance(14_999)
  expect(stuck).not.toHaveBeenCalled()
  clock.advance(1)
  await expect(first).rejects.toThrow('too slow')
  expect(stuck).toHaveBeenCalledOnce()
  expect(await second).toBe(2)
  expect(clock.pending).toBe(0)
})

test('S6: work that ends soon after an abort keeps the resource loaded', async () => {
  const { clock, stuck, kept } = residence()
  await expect(kept.use(() => Promise.reject(new Error('aborted')), AbortSignal.abort())).rejects.toThrow('aborted')
  expect(await kept.use(async ({ number }) => number, never)).toBe(1)
  expect([clock.pending, stuck.mock.calls.length]).toEqual([0, 0])
})

test('S6: closing does not wait forever for a stuck resource', async () => {
  const { clock, kept } = residence(() => new Promise(() => {}))
  await kept.use(async () => {}, never)
  const closing = kept[Symbol.asyncDispose]()
  await settled()
  clock.advance(15_000)
  await closing
})
