import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startClientDriver } from './client-driver.ts'
import { expectedFailures, judge } from './judge.ts'
import { type Revision, runSuite, type ScenarioResult } from './run.ts'

const requiredBy: [Revision, number][] = [
  ['2025-11-25', 18],
  ['2026-07-28', 32],
]

describe.each(requiredBy)('conformance %s', (requirements, count) => {
  const open = new AsyncDisposableStack()
  let results: ScenarioResult[]

  beforeAll(async () => {
    const { command } = open.use(await startClientDriver())
    results = await runSuite({ command, requirements })
  }, 120_000)
  afterAll(() => open.disposeAsync())

  test("B2: on its servers' side Toolway passes every required scenario", () => {
    expect(results.filter(({ required }) => required)).toHaveLength(count)
    expect(judge(results, expectedFailures('client', requirements))).toEqual({ unexpected: [], stale: [] })
  })

  test('B6: it gets tokens for itself where a server wants that, though no revision requires it', () => {
    const optional = results.filter(({ scenario }) => scenario.startsWith('auth/client-credentials-'))
    expect(optional).toHaveLength(2)
    const judged = optional.map((result) => ({ ...result, required: true }))
    expect(judge(judged, [])).toEqual({ unexpected: [], stale: [] })
  })

  test('B2: schemas pass through Toolway with every keyword', () => {
    const preservation = results.find(({ scenario }) => scenario === 'json-schema-2020-12-preservation')
    expect(judge([{ ...preservation, required: true } as ScenarioResult], [])).toEqual({ unexpected: [], stale: [] })
  })
})
