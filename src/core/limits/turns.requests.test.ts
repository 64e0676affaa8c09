import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { RequestTurns } from './turns.ts'

/**
 * Turns by a clock of the test. `begun` lists whose requests have begun. Each works for `workMs`. Timers can end `early`
 * by less than a millisecond, like those of Node.
 */
function turns({ early = false } = {}) {
  let now = 0
  let timers: { readonly at: number; run(): void }[] = []
  const after = (ms: number, run: () => void) => void timers.push({ at: now + (early ? ms - 0.9 : ms), run })
  const requests = new RequestTurns({ now: () => now, busy: () => now, after })
  const turnOf = (caller: string) => requests.take(caller)
  const begun: string[] = []
  const send = (caller: string, times = 1, workMs = 0) => {
    const begin = () => {
      begun.push(caller)
      now += workMs
    }
    for (let count = 0; count < times; count++) {
      const waiting = turnOf(caller)
      if (waiting) void waiting.then(begin)
      else begin()
    }
  }
  const pass = (ms: number) => {
    now += ms
    const due = timers.filter(({ at }) => at <= now)
    timers = timers.filter(({ at }) => at > now)
    for (const { run } of due) run()
  }
  return { send, begun, turnOf, pass, now: () => now }
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

test("V6: a caller whose requests take long gets a fifth of the loop's time, and another one all of its turns", async () => {
  const { send, begun, pass, now } = turns()
  send('bert')
  send('anna', 40, 50)
  let sent = 1
  for (let before = now(); now() < 5_000; before = now()) {
    await turn()
    // Nothing else takes time in these iterations.
    if (now() === before) pass(1)
    send('bert')
    sent++
  }
  for (let count = 0; count < 10; count++) await turn()
  expect(begun.filter((caller) => caller === 'bert')).toHaveLength(sent)
  const long = begun.filter((caller) => caller === 'anna').length
  expect(long).toBeGreaterThan(15)
  expect(long).toBeLessThanOrEqual(22)
})

test('V6: a caller whose requests take long need not rest if it is alone', () => {
  const { send, begun, pass } = turns()
  send('bert')
  send('anna', 1, 50)
  pass(1_001)
  send('anna', 10, 50)
  expect(begun).toHaveLength(12)
})

test('V6: a timer that ends a fraction of a millisecond early leaves no request waiting', async () => {
  const { send, begun, pass } = turns({ early: true })
  send('bert')
  send('anna', 10, 50.3)
  for (let ms = 0; ms < 5_000 && begun.length < 11; ms++) {
    pass(1)
    await turn()
  }
  expect(begun).toHaveLength(11)
})
