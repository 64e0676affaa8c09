import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import type { SandboxChild } from './runtime.ts'
import { createWarmChild } from './runtime-pool.ts'

const never = new AbortController().signal
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

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
