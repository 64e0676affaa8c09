import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { createKeyedLock, createRunSlots } from './run-queue.ts'
import type { SandboxChild } from './runtime.ts'
import { createWarmChild } from './runtime-pool.ts'

const never = new AbortController().signal
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('run slots', () => {
  test('B7: limits concurrent runs; others wait in order', async () => {
    const slots = createRunSlots(2)
    const order: number[] = []
    const taken = [1, 2, 3, 4].map(async (n) => {
      const seat = await slots.take(`${n}`, never)
      order.push(n)
      return seat
    })
    await settled()
    expect(order).toEqual([1, 2])
    ;(await taken[0])?.[Symbol.dispose]()
    await settled()
    expect(order).toEqual([1, 2, 3])
  })

  test('B7: a cancelled waiter leaves the queue', async () => {
    const slots = createRunSlots(1)
    const first = await slots.take('a', never)
    const stop = new AbortController()
    const second = slots.take('b', stop.signal)
    const third = slots.take('c', never)
    stop.abort(new Error('enough'))
    await expect(second).rejects.toThrow('enough')
    first[Symbol.dispose]()
    expect(await third).toBeDefined()
  })

  test('B7: no owner gets all slots, and the owner with the fewest is next', async () => {
    const slots = createRunSlots(3)
    const order: string[] = []
    const taken = ['flood', 'flood', 'flood', 'flood', 'other', 'third', 'other'].map(async (owner) => {
      const seat = await slots.take(owner, never)
      order.push(owner)
      return seat
    })
    await settled()
    expect(order).toEqual(['flood', 'flood', 'other'])
    ;(await taken[0])?.[Symbol.dispose]()
    ;(await taken[1])?.[Symbol.dispose]()
    await settled()
    expect(order.slice(3)).toEqual(['third', 'flood'])
  })
})

describe('keyed lock', () => {
  test('S7: sequential per key, parallel across keys, skipping cancelled waiters', async () => {
    const turns = createKeyedLock()
    const first = await turns.take('a', never)
    expect(await turns.take('b', never)).toBeDefined()
    const stop = new AbortController()
    const second = turns.take('a', stop.signal)
    let third = false
    const last = turns.take('a', never).then(() => {
      third = true
    })
    stop.abort(new Error('enough'))
    await expect(second).rejects.toThrow('enough')
    expect(third).toBe(false)
    first[Symbol.dispose]()
    await last
    expect(third).toBe(true)
  })
})

describe('a warm child', () => {
  const nursery = (ready: () => Promise<void> = () => Promise.resolve()) => {
    const alive = new Set<number>()
    let born = 0
    const start = (): SandboxChild => {
      const number = ++born
      alive.add(number)
      const { promise: ended, resolve } = Promise.withResolvers<void>()
      const kill = () => {
        alive.delete(number)
        resolve()
        return ended
      }
      const quiet = { listen() {}, send: async () => {}, cpuMs: () => 0, freeze: () => false, thaw() {} }
      return { ready: ready(), ended, kill, ...quiet }
    }
    const clock = createManualClock()
    return { alive, clock, spare: createWarmChild({ start, startMs: 1000, idleMs: 60_000, clock }) }
  }

  test('S7: is ready for the next program, is used once, and is killed when idle', async () => {
    const { spare, alive, clock } = nursery()
    const first = await spare.take(never)
    await settled()
    expect([...alive]).toEqual([1, 2])
    const second = await spare.take(never)
    await settled()
    expect(second).not.toBe(first)
    expect([...alive]).toEqual([1, 2, 3])
    await clock.pass(60_000)
    expect([...alive]).toEqual([1, 2])
    await spare[Symbol.asyncDispose]()
    expect(clock.pending).toBe(0)
  })

  test('S7: a child that does not start is killed', async () => {
    const { spare, alive, clock } = nursery(() => new Promise(() => {}))
    const taken = spare.take(never)
    const refused = expect(taken).rejects.toThrow('did not start within 1 s (a fixed limit)')
    await clock.pass(1000)
    await refused
    expect([...alive]).toEqual([])
  })
})
