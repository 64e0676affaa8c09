import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CallWindow } from './breaker.ts'

const step = fc.record({ ms: fc.integer({ min: 0, max: 700 }), failed: fc.boolean() })

test('J3: a window counts what a full record of its slices would', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.constantFrom(1, 7, 1_000, 3_005), (steps, lengthMs) => {
      const window = new CallWindow()
      const slice = Math.ceil(lengthMs / 10)
      const all: { slice: number; failed: boolean }[] = []
      let now = 1_800_000_000_000
      for (const { ms, failed } of steps) {
        now += ms
        window.add(failed, now, lengthMs)
        const current = Math.floor(now / slice)
        all.push({ slice: current, failed })
        const recent = all.filter((one) => one.slice > current - 10)
        expect(window.calls).toBe(recent.length)
        expect(window.failures).toBe(recent.filter((one) => one.failed).length)
      }
    }),
  )
})

test('a clock that was set back, and a window of another length, reset the count', () => {
  const window = new CallWindow()
  window.add(true, 5_000, 1_000)
  window.add(true, 4_000, 1_000)
  expect(window.calls).toBe(1)
  window.add(true, 4_000, 2_000)
  expect(window.calls).toBe(1)
})
