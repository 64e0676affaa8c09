import { expect, test } from 'vitest'
import { allArrived, archiveFaults } from '../e2e/fleet/archive.ts'
import { killUnderLoad } from '../e2e/fleet/kills.ts'
import { startLoad } from '../e2e/fleet/load.ts'
import { startShaken, withoutPostgres, withoutRedis } from '../e2e/fleet/outages.ts'
import type { LocalToolway } from '../fixtures/toolway.ts'
import { withPart } from '../fixtures/with-part.ts'

withPart('redis-server', 'B10, F8, F11, F13: a fleet under load, for long', () => {
  test('20 kills -9: only calls at the one that was killed fail, and no acknowledged record is lost', async () => {
    const { answered, lost, unexplained, faults } = await killUnderLoad(20)
    console.info(`${answered} calls answered, ${lost.length} lost with their replicas`)
    expect(unexplained).toEqual([])
    expect(faults).toEqual([])
    expect(lost.length).toBeLessThanOrEqual(16 * 20)
  })

  test('20 outages of each: the stated modes hold, no call fails, and nothing is lost', async () => {
    await using open = new AsyncDisposableStack()
    const rounds = 10
    const fleet = await startShaken(open, 4 * rounds)
    const load = await startLoad(fleet.endpoint)
    await load.more(50)
    for (let round = 0; round < rounds; round++) {
      for (const how of ['stopped', 'deaf'] as const) {
        await withoutRedis(fleet, load, how)
        await withoutPostgres(fleet, load, how)
      }
    }
    const outcomes = await load.stop()
    console.info(`${outcomes.length} calls`)
    expect(outcomes.filter(({ failure }) => failure !== undefined)).toEqual([])
    await allArrived(fleet.database, outcomes)
    const [{ configFile, folder }] = fleet.replicas as [LocalToolway]
    expect(await archiveFaults(fleet.database, configFile, folder)).toEqual([])
  })
})
