import { describe, expect, test } from 'vitest'
import { never } from '../deadline.ts'
import { FairSemaphore } from './fair-semaphore.ts'

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('run slots', () => {
  test('B7: limits concurrent runs; others wait in order', async () => {
    const slots = new FairSemaphore({ slots: 2 })
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
    const slots = new FairSemaphore({ slots: 1 })
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
    const slots = new FairSemaphore({ slots: 3, perCaller: 2 })
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
    const turns = new FairSemaphore({ perCaller: 1 })
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

test('V6: a few reads of one caller run at a time, the others wait in order', async () => {
  const readers = new FairSemaphore({ perCaller: 4 })
  const begun: string[] = []
  const read = (name: string, caller = 'anna') =>
    readers.take(caller).then((reading) => {
      begun.push(name)
      return reading
    })
  const reads = ['1', '2', '3', '4', '5', '6'].map((name) => read(name))
  await read('other', 'bert')
  expect(begun).toEqual(['1', '2', '3', '4', 'other'])
  const first = await reads[0]
  first?.[Symbol.dispose]()
  await reads[4]
  expect(begun).toEqual(['1', '2', '3', '4', 'other', '5'])
})
