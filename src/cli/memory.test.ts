import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { boundGarbage, garbageLimits, releaseWhenIdle } from './memory.ts'

function processWith({ cpuMs = 0, spare = 20e6 }) {
  const state = { cpuMs, spare, released: 0 }
  const footing = {
    cpuMs: () => state.cpuMs,
    spare: () => state.spare,
    release() {
      state.released++
      state.spare = 1e6
    },
  }
  return { state, footing }
}

test('F14: memory is released when idle, and not again while there is nothing to release', () => {
  const clock = createManualClock()
  const { state, footing } = processWith({})
  using _ = releaseWhenIdle(clock, footing)
  state.cpuMs = 900
  clock.advance(10_000)
  expect(state.released).toBe(0)
  state.cpuMs += 20
  clock.advance(10_000)
  expect(state.released).toBe(1)
  clock.advance(60_000)
  expect(state.released).toBe(1)
})

test('F14: the heap is kept longer after more work, up to five minutes', () => {
  const clock = createManualClock()
  const { state, footing } = processWith({})
  using _ = releaseWhenIdle(clock, footing)
  const idleUntilReleased = (cpuMs: number): number => {
    state.spare = 20e6
    state.cpuMs += cpuMs
    clock.advance(10_000)
    const before = state.released
    let idleMs = 0
    for (; state.released === before; idleMs += 10_000) clock.advance(10_000)
    return idleMs
  }
  expect(idleUntilReleased(5_000)).toBe(50_000)
  expect(idleUntilReleased(1_000)).toBe(10_000)
  expect(idleUntilReleased(3_600_000)).toBe(300_000)
})

test('F14: a busy process releases nothing, and neither does a stopped one', () => {
  const clock = createManualClock()
  const { state, footing } = processWith({})
  const releasing = releaseWhenIdle(clock, footing)
  for (let look = 0; look < 5; look++) {
    state.cpuMs += 101
    clock.advance(10_000)
  }
  expect(state.released).toBe(0)
  releasing[Symbol.dispose]()
  clock.advance(60_000)
  expect(state.released).toBe(0)
})

test('F14: the heap of a real process gets smaller', () => {
  const clock = createManualClock()
  let garbage: unknown[] = Array.from({ length: 400_000 }, (_, index) => ({ index }))
  garbage = []
  const { heapTotal } = process.memoryUsage()
  using _ = releaseWhenIdle(clock)
  clock.advance(10_000)
  expect(garbage).toEqual([])
  expect(process.memoryUsage().heapTotal).toBeLessThan(heapTotal)
})

/** V8's settings with a fixed heap; `collect` runs what follows a full collection. */
function heapWith(state: { used: number; young: number }) {
  const set: { growth?: number; youngGrows?: boolean } = {}
  const heap = {
    used: () => state.used,
    young: () => state.young,
    setGrowth: (percent: number) => {
      set.growth = percent
    },
    setYoungGrows: (grows: boolean) => {
      set.youngGrows = grows
    },
  }
  return { heap, set }
}

test.each([
  { used: 7e6, growth: 200 },
  { used: 14e6, growth: 100 },
  { used: 1e6, growth: 800 },
  { used: 1e9, growth: 30 },
])('F14: a heap of $used bytes may grow by $growth %', ({ used, growth }) => {
  const { heap, set } = heapWith({ used, young: 1e6 })
  using _ = boundGarbage({ garbage: 14e6, young: 8e6 }, heap)
  expect(set.growth).toBe(growth)
})

test.each([
  { max: Number.POSITIVE_INFINITY, garbage: 40e6, young: 32e6 },
  { max: 300e6, garbage: 40e6, young: 32e6 },
  { max: 200e6, garbage: 40e6, young: 32e6 },
  { max: 160e6, garbage: 21e6, young: 8e6 },
  { max: 64e6, garbage: 14e6, young: 8e6 },
])('F14: a gateway that may use $max bytes may have $garbage bytes of garbage', ({ max, ...limits }) => {
  const { garbage, young } = garbageLimits(max)
  expect({ garbage: Math.round(garbage / 1e6) * 1e6, young }).toEqual(limits)
})

test('F14: the young generation stops growing at its limit, and may grow again after it shrank', async () => {
  const state = { used: 20e6, young: 1e6 }
  const { heap, set } = heapWith(state)
  using _ = boundGarbage({ garbage: 14e6, young: 8e6 }, heap)
  expect(set.youngGrows).toBeUndefined()
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (const [young, grows] of [
    [8e6, false],
    [1e6, true],
  ] as const) {
    state.young = young
    collect()
    await expect.poll(() => set.youngGrows).toBe(grows)
  }
})
