import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Budget } from '../../core/limits/budget.ts'
import { EventStore } from './event-store.ts'

const bytes = (size: number) => Buffer.alloc(size, 0x78)
const numbers = (events: readonly { number: number }[]) => events.map(({ number }) => number)
const roomy = { count: 1_000, bytes: 1_000_000 }
const budgetOf = (limit: number, perCaller = limit) => new Budget('stored_bytes', { what: 'bytes', limit, perCaller })

describe('B2: kept events', () => {
  test('are numbered through the session and found by their stream', () => {
    const events = new EventStore().open('anna')
    for (const stream of ['a', 'b', 'a', 'b', 'a']) events.add(stream, bytes(1))
    expect(numbers(events.after('a', 0))).toEqual([1, 3, 5])
    expect(numbers(events.after('a', 2))).toEqual([3, 5])
    expect(numbers(events.after('b', 4))).toEqual([])
    expect(events.isOver('a')).toBe(false)
    events.add('a', undefined, true)
    expect(events.isOver('a')).toBe(true)
  })

  test('are bounded in number: the oldest goes first, answers last', () => {
    const events = new EventStore({ ...roomy, count: 3 }).open('anna')
    events.add('a', bytes(1), true)
    for (let count = 0; count < 10; count++) events.add('b', bytes(1))
    expect(numbers(events.after('b', 0))).toEqual([10, 11])
    expect(numbers(events.after('a', 0))).toEqual([1])
    for (let count = 0; count < 3; count++) events.add(`c${count}`, bytes(1), true)
    expect(events.after('a', 0)).toEqual([])
    expect(events.isOver('a')).toBe(false)
  })

  test('are bounded in size, but the newest is kept whatever its size', () => {
    const events = new EventStore({ ...roomy, bytes: 10_000 }).open('anna')
    for (let count = 0; count < 5; count++) events.add('a', bytes(4_000))
    expect(numbers(events.after('a', 0))).toEqual([4, 5])
    events.add('a', bytes(50_000))
    expect(numbers(events.after('a', 0))).toEqual([6])
  })

  test('are bounded for all sessions together: the one that was silent longest loses first', () => {
    const store = new EventStore(roomy, budgetOf(10_000))
    const [silent, other] = [store.open('anna'), store.open('anna')]
    silent.add('a', bytes(3_000))
    other.add('a', bytes(3_000))
    other.add('a', bytes(3_000))
    silent.add('b', bytes(10))
    other.add('b', bytes(2_000))
    expect(numbers(silent.after('a', 0))).toEqual([])
    expect(numbers(other.after('a', 0))).toEqual([1, 2])
    expect(store.bytes).toBeLessThanOrEqual(10_000)
  })

  test('V6: are bounded for each caller, which loses only its own', () => {
    const store = new EventStore(roomy, budgetOf(20_000, 10_000))
    const quiet = store.open('bert')
    quiet.add('a', bytes(3_000))
    const [first, second] = [store.open('anna'), store.open('anna')]
    for (let count = 0; count < 5; count++) first.add('a', bytes(3_000))
    second.add('a', bytes(3_000))
    expect(numbers(quiet.after('a', 0))).toEqual([1])
    expect([numbers(first.after('a', 0)), numbers(second.after('a', 0))]).toEqual([[4, 5], [1]])
    // Messages that wait for a stream count, too.
    expect([second.reserve(bytes(5_000)), quiet.reserve(bytes(5_000))]).toEqual([false, true])
    quiet.release(bytes(5_000))
    expect(store.bytes).toBeLessThanOrEqual(15_000)
  })

  test('are dropped with their session, and none is kept after its end', () => {
    const store = new EventStore()
    const events = store.open('anna')
    events.add('a', bytes(100))
    events[Symbol.dispose]()
    expect(store.bytes).toBe(0)
    events.add('a', bytes(100))
    expect([store.bytes, events.after('a', 0)]).toEqual([0, []])
  })

  test('never exceed the bounds by more than the newest event', () => {
    const bounds = { count: 8, bytes: 4_000 }
    const total = 9_000
    const step = fc.record({ session: fc.nat(3), size: fc.nat(6_000), last: fc.boolean(), over: fc.nat(20) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const store = new EventStore(bounds, budgetOf(total))
        const sessions = Array.from({ length: 4 }, () => store.open('anna'))
        for (const { session, size, last, over } of steps) {
          const events = sessions[session] as (typeof sessions)[number]
          if (over === 0) {
            events[Symbol.dispose]()
            sessions[session] = store.open('anna')
            continue
          }
          const number = events.add('s', bytes(size), last)
          const kept = events.after('s', 0)
          expect(kept.at(-1)?.number).toBe(number)
          expect(kept.length).toBeLessThanOrEqual(bounds.count)
          const held = kept.reduce((sum, { message }) => sum + (message?.length ?? 0), 0)
          expect(held).toBeLessThanOrEqual(Math.max(bounds.bytes, size))
          expect(store.bytes).toBeLessThanOrEqual(Math.max(total, size + 200))
        }
        for (const events of sessions) events[Symbol.dispose]()
        expect(store.bytes).toBe(0)
      }),
    )
  })
})
