import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { callOf } from '../../core/call.fixture.ts'
import { observedOf } from '../metrics/observed.fixture.ts'
import { createRecentCalls } from './call-records.ts'

const open = (maxAtOnce = 200) => {
  const clock = createManualClock()
  const calls = createRecentCalls({ clock, redact: (text) => text, everyMs: 250, maxAtOnce })
  const told: string[][] = []
  const follow = () => calls.subscribe((views) => told.push(views.map(({ id, outcome }) => `${id} ${outcome}`)))
  const begin = (id: string) => calls.observer.began?.(callOf({ id }), 'call_tool')
  const end = (id: string) => calls.observer.ended(observedOf({ call: { id } }))
  return { clock, calls, told, follow, begin, end }
}

test('G10: changes are sent in batches, and a call that began and ended in between once', () => {
  const { clock, told, follow, begin, end } = open()
  using _ = follow()
  begin('slow')
  begin('quick')
  end('quick')
  expect(told).toEqual([])
  clock.advance(250)
  expect(told).toEqual([['slow running', 'quick answered']])
  end('slow')
  clock.advance(250)
  expect(told.at(-1)).toEqual(['slow answered'])
})

test('G10: without listeners nothing is collected and no timer runs', () => {
  const { clock, told, follow, begin, end } = open()
  for (let number = 0; number < 1000; number++) end(`${number}`)
  expect(clock.pending).toBe(0)
  const following = follow()
  begin('one')
  expect(clock.pending).toBe(1)
  following[Symbol.dispose]()
  expect(clock.pending).toBe(0)
  clock.advance(1000)
  expect(told).toEqual([])
  using _ = follow()
  end('one')
  clock.advance(250)
  expect(told).toEqual([['one answered']])
})

test('G10: all listeners get changes, and each can unsubscribe', () => {
  const { clock, told, follow, begin } = open()
  const one = follow()
  using _ = follow()
  begin('a')
  clock.advance(250)
  expect(told).toHaveLength(2)
  one[Symbol.dispose]()
  begin('b')
  clock.advance(250)
  expect(told).toHaveLength(3)
})

test('G10: under load not every call is sent, but the end of each call that was sent as running is', () => {
  const { clock, calls, told, follow, begin, end } = open(3)
  using _ = follow()
  begin('followed')
  clock.advance(250)
  for (let number = 0; number < 10; number++) begin(`${number}`)
  // Whoever looks at the list sees what was not told.
  expect(calls.list({ text: '9' })).toHaveLength(1)
  clock.advance(250)
  expect(told.at(-1)).toEqual(['0 running', '1 running', '2 running'])
  for (let number = 10; number < 20; number++) end(`${number}`)
  end('followed')
  end('9')
  end('8')
  clock.advance(250)
  expect(told.at(-1)).toEqual(['10 answered', '11 answered', '12 answered', 'followed answered', '9 answered'])
})
