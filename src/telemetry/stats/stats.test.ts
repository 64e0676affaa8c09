import { expect, expectTypeOf, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import type * as contract from '../../admin/contract.ts'
import { entryOf } from '../../core/call.fixture.ts'
import { tell } from '../metrics/observed.fixture.ts'
import { type By, type CallStats, createStats } from './stats.ts'

const open = () => {
  const clock = createManualClock(1_800_000_000_000)
  const redact = (text: string) => text.replace('hunter2-secret', '[redacted]')
  return { clock, stats: createStats({ clock, redact }) }
}

const failed = { kind: 'failed', code: 'TIMEOUT' } as const
const denied = { kind: 'denied', code: 'TOOL_BLOCKED' } as const

test('G9: the types match those of the admin API', () => {
  expectTypeOf<ReturnType<CallStats['table']>>().toExtend<contract.Stats>()
  expectTypeOf<ReturnType<CallStats['series']>>().toExtend<contract.Series>()
  expectTypeOf<ReturnType<CallStats['total']>>().toExtend<contract.Figures>()
})

test('G9: counts, averages, percentiles, errors and denials by agent, server, operation and tool', () => {
  const { clock, stats } = open()
  const entry = entryOf({ server: 'files', name: 'read' })
  for (let ms = 1; ms <= 100; ms++) tell(stats.observer, { agent: 'dev', call: { entry }, ms })
  tell(stats.observer, { agent: 'dev', call: { entry }, ms: 100, outcome: failed })
  tell(stats.observer, { agent: 'dev', call: { entry }, ms: 0.02, outcome: denied })
  const resource = entryOf({ kind: 'resource', server: 'files', name: 'file:///a' })
  tell(stats.observer, { agent: 'ops', call: { entry: resource }, operation: 'read_resource', ms: 4 })
  clock.advance(10_000)

  const dev = stats.of('agent', 'dev')
  expect(dev).toMatchObject({ calls: 102, errors: 1, denials: 1, perSecond: 10.2, averageMs: 50.99 })
  for (const [part, ms] of [
    ['p50Ms', 51],
    ['p95Ms', 96],
    ['p99Ms', 100],
  ] as const) {
    expect(Math.abs((dev[part] as number) - ms) / ms).toBeLessThanOrEqual(0.02)
  }
  const names = (by: By) => stats.table(by).rows.map(({ name, calls }) => [name, calls])
  expect(names('agent')).toEqual([
    ['dev', 102],
    ['ops', 1],
  ])
  expect(names('server')).toEqual([['files', 103]])
  expect(names('operation')).toEqual([
    ['call_tool', 102],
    ['read_resource', 1],
  ])
  expect(names('tool')).toEqual([['files.read', 102]])
  expect(stats.total().calls).toBe(103)
  expect(stats.table('agent').since).toBe(1_800_000_000_000)
})

test('G9: refusals take no time and say nothing about how long calls take', () => {
  const { stats } = open()
  tell(stats.observer, { outcome: denied, ms: 0.1 })
  expect(stats.total()).toMatchObject({ calls: 1, denials: 1, errors: 0, averageMs: null, p50Ms: null })
})

test('G9: figures by agent and operation keep meta-tools and the calls that they forward apart', () => {
  const { stats } = open()
  const meta = (name: string) => ({ call: { entry: entryOf({ server: 'toolway', name }) } })
  const forwarded = { call: { entry: entryOf({ server: 'files', name: 'read' }) } }
  tell(stats.observer, { agent: 'team.dev', ...meta('list_servers'), ms: 1 })
  for (const outcome of [{ kind: 'answered' } as const, denied])
    for (const call of [meta('execute_tool'), forwarded]) tell(stats.observer, { agent: 'team.dev', ...call, outcome })
  tell(stats.observer, { agent: 'ops', ...forwarded })
  const rows = (by: By) => Object.fromEntries(stats.table(by).rows.map((row) => [row.name, [row.calls, row.denials]]))
  expect(rows('agent-operation')).toEqual({
    'team.dev.list_servers': [1, 0],
    'team.dev.execute_tool': [2, 1],
    'team.dev.call_tool': [2, 1],
    'ops.call_tool': [1, 0],
  })
  expect(rows('operation')).toEqual({ list_servers: [1, 0], execute_tool: [2, 1], call_tool: [3, 1] })
  expect(rows('agent')).toEqual({ 'team.dev': [5, 2], ops: [1, 0] })
  expect(stats.of('agent-operation', 'team.dev.list_servers')).toMatchObject({ calls: 1, p95Ms: expect.closeTo(1, 1) })
})

test('G9: a tool that was never called has zeros and no percentiles', () => {
  const { stats } = open()
  const nothing = { calls: 0, errors: 0, denials: 0, perSecond: 0 }
  const noTimes = { averageMs: null, p50Ms: null, p95Ms: null, p99Ms: null }
  expect(stats.of('tool', 'files.nothing')).toEqual({ ...nothing, ...noTimes })
  expect(stats.recent(60_000)).toEqual({ ...nothing, ...noTimes })
})

test('G9: invented names take bounded memory, and every call is counted', () => {
  const { stats } = open()
  const entry = entryOf()
  for (let number = 0; number < 3000; number++) tell(stats.observer, { agent: `agent${number}`, call: { entry } })
  const { rows } = stats.table('agent')
  expect(rows.length).toBeLessThanOrEqual(1001)
  expect(rows[0]).toMatchObject({ name: 'other', calls: 2000 })
  expect(rows.reduce((sum, { calls }) => sum + calls, 0)).toBe(3000)
})

test('G9: a name that is far too long is counted as other', () => {
  const { stats } = open()
  tell(stats.observer, { agent: 'x'.repeat(100_000) })
  expect(stats.table('agent').rows.map(({ name }) => name)).toEqual(['other'])
})

test('B6, G9: secrets in names are not shown', () => {
  const { stats } = open()
  tell(stats.observer, { agent: 'x-hunter2-secret' })
  expect(stats.table('agent').rows[0]?.name).toBe('x-[redacted]')
})

test('G9: calls within the second of the start are counted from the start on', () => {
  const clock = createManualClock(1_800_000_000_200)
  const stats = createStats({ clock, redact: (text) => text })
  clock.advance(300)
  tell(stats.observer, {})
  clock.advance(700)
  expect(stats.recent(60_000)).toMatchObject({ calls: 1, perSecond: 1 })
})

test('G9: recent figures cover only the requested time', () => {
  const { clock, stats } = open()
  tell(stats.observer, {}, {})
  clock.advance(120_000)
  tell(stats.observer, {}, {}, {})
  expect(stats.recent(60_000)).toMatchObject({ calls: 3, perSecond: 3 / 60 })
  expect(stats.total().calls).toBe(5)
})
