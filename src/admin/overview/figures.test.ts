import { describe, expect, test } from 'vitest'
import { call } from '../views.fixture.ts'
import { figuresOfCalls, seriesOfCalls, statsOfCalls } from './figures.ts'

const calls = [
  call({ id: 'a', at: 1_000, ms: 10 }),
  call({ id: 'b', at: 1_500, ms: 30, outcome: 'failed' }),
  call({ id: 'c', at: 2_500, ms: 20, outcome: 'tool_error', cache: 'miss' }),
  call({ id: 'd', at: 2_600, ms: 0, outcome: 'denied' }),
  call({ id: 'e', at: 2_700, ms: null, outcome: 'running' }),
  call({ id: 'f', at: 2_800, ms: 1, server: 'memory', operation: 'read_resource', cache: 'hit' }),
]

describe('G9: figures of visible calls', () => {
  test('count finished calls, and time those that were neither denied nor answered from the cache', () => {
    expect(figuresOfCalls(calls, 10_000)).toEqual({
      ...{ calls: 5, errors: 2, denials: 1, perSecond: 0.5, averageMs: 20 },
      ...{ p50Ms: expect.closeTo(20, 0), p95Ms: expect.closeTo(30, 0), p99Ms: expect.closeTo(30, 0) },
    })
  })

  test('are empty without calls', () => {
    expect(figuresOfCalls([], 0)).toEqual({
      ...{ calls: 0, errors: 0, denials: 0, perSecond: 0, averageMs: null },
      ...{ p50Ms: null, p95Ms: null, p99Ms: null },
    })
  })

  test('are given in time steps, gaps included', () => {
    const { stepMs, points } = seriesOfCalls(calls, 0, 4_000, [500, 4_000])
    expect(stepMs).toBe(1_000)
    expect(points.map((point) => [point.at, point.calls, point.cacheHits, point.cacheMisses])).toEqual([
      [0, 0, 0, 0],
      [1_000, 2, 0, 0],
      [2_000, 3, 1, 1],
      [3_000, 0, 0, 0],
    ])
    expect(seriesOfCalls(calls, 0, 1_000_000_000_000, [0, 4_000]).points.length).toBeLessThanOrEqual(201)
  })

  test('are grouped by name, most calls first; tools by server and name, meta-tools as operations of their own', () => {
    expect(statsOfCalls(calls, 'server', 5_000)).toMatchObject({
      since: 1_000,
      rows: [
        { name: 'files', calls: 4 },
        { name: 'memory', calls: 1 },
      ],
    })
    expect(statsOfCalls(calls, 'tool', 5_000).rows).toMatchObject([{ name: 'files.read', calls: 4 }])
    const meta = call({ agent: 'team.dev', server: 'toolway', name: 'execute_tool' })
    expect(statsOfCalls([...calls, meta], 'agent-operation', 5_000).rows).toMatchObject([
      { name: 'default.call_tool', calls: 4 },
      { name: 'default.read_resource', calls: 1 },
      { name: 'team.dev.execute_tool', calls: 1 },
    ])
    expect(statsOfCalls([meta], 'operation', 5_000).rows).toMatchObject([{ name: 'execute_tool' }])
    expect(statsOfCalls([], 'agent', 5_000)).toEqual({ by: 'agent', since: 5_000, to: 5_000, rows: [] })
  })
})
