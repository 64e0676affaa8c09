import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { Budget } from '../core/limits/budget.ts'
import type { SandboxChild } from './runtime.ts'
import { ChildDemand, WarmChildren } from './warm-children.ts'

const never = new AbortController().signal
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('warm children', () => {
  const nursery = (ready: () => Promise<void> = () => Promise.resolve(), limit = 16) => {
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
    const budget = new Budget('spares', { what: 'children', limit, perCaller: limit })
    const demand = new ChildDemand()
    const limits = { startMs: 1000, idleMs: 60_000, demandMs: 10_000 }
    const spare = new WarmChildren({ start, demand, budget, startsAtOnce: 2, limits, clock })
    /** Programs that come at once and run one after the other. */
    const burst = async (count: number) => {
      const expected = Array.from({ length: count }, () => demand.expect())
      for (const program of expected) {
        const child = await spare.take(never)
        program[Symbol.dispose]()
        await child.kill()
      }
      for (let turn = 0; turn < count; turn++) await settled()
    }
    return { alive, clock, budget, burst, spare }
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

  test('S7: as many as programs recently wanted at once wait for the next ones; the number shrinks afterwards', async () => {
    const { alive, budget, burst, clock, spare } = nursery()
    await burst(1)
    expect(alive.size).toBe(1)
    await burst(5)
    expect(alive.size).toBe(5)
    const waiting = new Set(alive)
    await burst(5)
    expect([...alive].filter((number) => waiting.has(number))).toEqual([])
    expect(alive.size).toBe(5)
    await clock.pass(10_000)
    expect(alive.size).toBe(5)
    await clock.pass(10_000)
    expect(alive.size).toBe(1)
    await clock.pass(40_000)
    expect([alive.size, budget.used, clock.pending]).toEqual([0, 0, 0])
    await spare[Symbol.asyncDispose]()
  })

  test('S7: not more wait than the budget allows', async () => {
    const { alive, burst, spare } = nursery(undefined, 3)
    await burst(8)
    expect(alive.size).toBe(3)
    await spare[Symbol.asyncDispose]()
    expect(alive.size).toBe(0)
  })
})
