import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startFixture } from './fixture/http.ts'
import { expectedFailures, judge, lost } from './judge.ts'
import { type Revision, runSuite, type ScenarioResult } from './run.ts'
import { toolwayInFrontOf } from './toolway.ts'

const requiredBy: [Revision, number][] = [
  ['2025-11-25', 30],
  ['2026-07-28', 37],
]

describe.each(requiredBy)('conformance %s', (requirements, count) => {
  const open = new AsyncDisposableStack()
  let direct: ScenarioResult[]
  let through: ScenarioResult[]

  beforeAll(async () => {
    const fixture = open.use(await startFixture())
    direct = await runSuite({ url: fixture.url, requirements })
    const url = await toolwayInFrontOf(fixture.url, open)
    // Not beside the direct run: some scenarios measure how long reconnecting takes.
    through = await runSuite({ url, requirements })
  }, 180_000)
  afterAll(() => open.disposeAsync())

  test('B2: the fixture itself passes every scenario, so that what is lost on the way is not its fault', () => {
    expect(direct.filter(({ required }) => required)).toHaveLength(count)
    expect(judge(direct, [])).toEqual({ unexpected: [], stale: [] })
  })

  test('B2: through Toolway every required scenario passes, and no check is lost against the direct run', () => {
    expect(through.filter(({ required }) => required)).toHaveLength(count)
    expect(judge(through, expectedFailures('server', requirements))).toEqual({ unexpected: [], stale: [] })
    expect(lost(direct, through)).toEqual([])
  })
})
