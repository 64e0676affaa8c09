import { describe, expect, test } from 'vitest'
import { expectedFailures, judge, lost } from './judge.ts'
import type { Check, ScenarioResult } from './run.ts'

const check = (id: string, status: Check['status']): Check => ({ id, name: id.toUpperCase(), status })
const scenario = (name: string, ...checks: Check[]): ScenarioResult => ({ scenario: name, required: true, checks })

const results = [
  scenario('fine', check('a', 'SUCCESS'), check('b', 'INFO')),
  scenario('broken', check('c', 'FAILURE'), check('d', 'SUCCESS'), check('e', 'WARNING')),
]

describe('expected failures', () => {
  test('B2: unexpected failures and warnings are reported', () => {
    expect(judge(results, [])).toEqual({ unexpected: ['broken:c FAILURE: C', 'broken:e WARNING: E'], stale: [] })
  })

  test('B2: an entry excuses a scenario or one check of it, and no other', () => {
    expect(judge(results, ['broken'])).toEqual({ unexpected: [], stale: [] })
    expect(judge(results, ['broken:c'])).toEqual({ unexpected: ['broken:e WARNING: E'], stale: [] })
  })

  test('B2: a required scenario that has checked nothing has not passed', () => {
    expect(judge([scenario('idle', check('a', 'SKIPPED'))], []).unexpected).toEqual(['idle has checked nothing'])
  })

  test('B2: an entry that passes or is not run is stale', () => {
    const entries = ['broken', 'fine', 'broken:d', 'gone', 'broken:gone']
    expect(judge(results, entries).stale).toEqual(['fine', 'broken:d', 'gone', 'broken:gone'])
  })

  test('B2: the file is readable and names no scenario twice', () => {
    for (const side of ['server', 'client'] as const) {
      for (const revision of ['2025-11-25', '2026-07-28'] as const) {
        const entries = expectedFailures(side, revision)
        expect(entries).toEqual([...new Set(entries)])
      }
    }
  })

  test('B2: scenarios that no revision requires cannot fail a run', () => {
    const optional = results.map((result) => ({ ...result, required: false }))
    expect(judge(optional, []).unexpected).toEqual([])
  })
})

describe('two runs compared', () => {
  test('B2: nothing is lost between equal runs', () => {
    expect(lost(results, results)).toEqual([])
  })

  test('B2: a check that has got worse, or is made less often, is lost', () => {
    const direct = [scenario('s', check('a', 'SUCCESS'), check('a', 'SUCCESS'), check('b', 'SUCCESS'))]
    const through = [scenario('s', check('a', 'SUCCESS'), check('b', 'SKIPPED'))]
    expect(lost(direct, through)).toEqual(['s:a A (2) was not made', 's:b B SKIPPED: '])
  })

  test('B2: a check that did not succeed directly cannot be lost', () => {
    expect(lost(results, [scenario('fine', check('a', 'SUCCESS')), scenario('broken', check('d', 'SUCCESS'))])).toEqual(
      [],
    )
  })
})
