import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createRequestTurns } from './throttle.ts'

/** Turns by a clock of the test. `begun` lists whose requests have begun. */
function turns() {
  let now = 0
  const turnOf = createRequestTurns({ now: () => now })
  const begun: string[] = []
  const send = (caller: string, times = 1) => {
    for (let count = 0; count < times; count++) {
      const waiting = turnOf(caller)
      if (waiting) void waiting.then(() => begun.push(caller))
      else begun.push(caller)
    }
  }
  const pass = (ms: number) => {
    now += ms
  }
  return { send, begun, turnOf, pass }
}

test('V6: a caller that is alone need not wait', () => {
  const { send, begun, pass } = turns()
  send('anna', 100)
  expect(begun).toHaveLength(100)
  send('bert')
  pass(1_001)
  send('bert', 100)
  expect(begun).toHaveLength(201)
})

test("V6: a caller's hundredth request waits for those before it, another caller's first one for none", async () => {
  const { send, begun } = turns()
  send('bert')
  send('anna', 100)
  expect(begun).toHaveLength(5)
  send('carl')
  expect(begun.at(-1)).toBe('carl')
  await turn()
  await turn()
  expect(begun.length).toBeLessThan(20)
  send('bert')
  expect(begun.at(-1)).toBe('bert')
  while (begun.length < 103) await turn()
})

test("V6: a caller's requests keep their order", async () => {
  const { send, turnOf } = turns()
  send('bert')
  const order: number[] = []
  for (let number = 0; number < 50; number++) {
    const waiting = turnOf('anna')
    if (waiting) void waiting.then(() => order.push(number))
    else order.push(number)
    if (number % 9 === 0) await turn()
  }
  while (order.length < 50) await turn()
  expect(order).toEqual([...order].sort((a, b) => a - b))
})
