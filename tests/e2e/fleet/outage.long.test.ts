import { expect, test } from 'vitest'
import { withPart } from '../../fixtures/with-part.ts'
import { allArrived, archiveFaults } from './archive.ts'
import { startLoad } from './load.ts'
import { startShaken, withoutPostgres, withoutRedis } from './outages.ts'

withPart('redis-server', 'B10, F8, F11, F13: Redis and PostgreSQL go and come back under load', () => {
  test('stopped or suspended: calls continue as documented, and afterwards nothing is lost', async () => {
    await using open = new AsyncDisposableStack()
    const fleet = await startShaken(open, 4)
    const load = await startLoad(fleet.endpoint, { callers: 4, pauseMs: 150 })
    await load.more(20)
    for (const how of ['stopped', 'deaf'] as const) {
      await withoutRedis(fleet, load, how)
      await withoutPostgres(fleet, load, how)
    }
    const outcomes = await load.stop()
    expect(outcomes.filter(({ failure }) => failure !== undefined)).toEqual([])
    await allArrived(fleet.database, outcomes)
    const [{ configFile, folder }] = fleet.replicas as [(typeof fleet.replicas)[0]]
    expect(await archiveFaults(fleet.database, configFile, folder)).toEqual([])
  })
})
