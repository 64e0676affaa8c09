import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type HttpFixture, startFixture } from './fixture/http.ts'
import { judge } from './judge.ts'
import { type Revision, runSuite, type ScenarioResult } from './run.ts'

const requiredBy: [Revision, number][] = [
  ['2025-11-25', 30],
  ['2026-07-28', 37],
]

describe.each(requiredBy)('conformance %s', (requirements, count) => {
  let fixture: HttpFixture
  let direct: ScenarioResult[]

  beforeAll(async () => {
    fixture = await startFixture()
    direct = await runSuite({ url: fixture.url, requirements })
  }, 180_000)
  afterAll(() => fixture[Symbol.asyncDispose]())

  test('B2: the fixture itself passes every scenario, so that what is lost on the way is not its fault', () => {
    expect(direct.filter(({ required }) => required)).toHaveLength(count)
    expect(judge(direct, [])).toEqual({ unexpected: [], stale: [] })
  })
})
