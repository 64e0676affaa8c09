import { expect, test } from 'vitest'
import { createInterrupt } from './run.ts'

function interruptAt() {
  let now = 0
  let left = 0
  const clock = { now: () => 0, monotonic: () => now, after: () => ({ [Symbol.dispose]() {} }) }
  const interrupt = createInterrupt({ clock, leave: () => left++ })
  return {
    signal: interrupt.signal,
    receiveAt(time: number) {
      now = time
      interrupt.receive()
      return left
    },
  }
}

test('B11: the first signal stops gracefully, the second one quits', () => {
  const { signal, receiveAt } = interruptAt()
  expect(signal.aborted).toBe(false)
  expect(receiveAt(1000)).toBe(0)
  expect(signal.reason).toMatchObject({ code: 'CANCELLED' })
  expect(receiveAt(3000)).toBe(1)
})

test('B11: one Ctrl+C that arrives twice, as under npm, counts once', () => {
  const { signal, receiveAt } = interruptAt()
  receiveAt(1000)
  expect(receiveAt(1005)).toBe(0)
  expect(signal.aborted).toBe(true)
})
