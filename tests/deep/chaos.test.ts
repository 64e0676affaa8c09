import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ChaosParts, openChaosParts } from '../fixtures/chaos/gateway.ts'
import { describeRun, runChaos } from '../fixtures/chaos/run.ts'
import { chosenLength, chosenSeed, randomSeed } from '../fixtures/chaos/schedule.ts'
import { withPart } from '../fixtures/with-part.ts'

withPart('redis-server', 'B7, B10, F11, F12, G8: faults at random', () => {
  const open = new AsyncDisposableStack()
  let parts: ChaosParts
  beforeAll(async () => {
    parts = await openChaosParts(open)
  })
  afterAll(() => open.disposeAsync())

  const run = async (seed: number, lengthMs: number) => {
    const report = await runChaos({ seed, lengthMs, parts })
    console.info(describeRun(report))
    expect(report.problems).toEqual([])
    expect(report.answered).toBeGreaterThan(20)
  }

  const first = chosenSeed(randomSeed())
  test('a minute of one seed', () => run(first, chosenLength(60_000)))
  // Without CHAOS_SEED, every run of this suite tries other seeds. CHAOS_SEEDS limits their number.
  const count = Number(process.env.CHAOS_SEEDS ?? 100)
  test.each(Array.from({ length: count }, (_, index) => first + 1 + index))('five seconds of seed %i', (seed) =>
    run(seed, 5_000),
  )
})
