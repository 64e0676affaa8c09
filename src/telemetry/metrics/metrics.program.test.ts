import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { entryOf } from '../../core/call.fixture.ts'
import { type ErrorCode, errorKinds } from '../../core/errors.ts'
import { readPage, sampled } from './exposition.fixture.ts'
import { everyReading, metricsOf } from './metrics.fixture.ts'
import { tell } from './observed.fixture.ts'

const read = entryOf({ server: 'files', name: 'read' })
const hash = entryOf({ server: 'native', name: 'hash' })
const timedOut = { kind: 'failed', code: 'TIMEOUT' } as const

test('F15: calls of tools are counted by where they run', () => {
  using metrics = metricsOf()
  tell(metrics.observer, { call: { entry: read } }, { call: { entry: hash } }, { call: { entry: hash } })
  const text = metrics.text()
  expect(sampled(text, 'toolway_tool_forwarded_calls_total', { server: 'files', tool: 'files.read' })).toBe(1)
  expect(sampled(text, 'toolway_tool_native_calls_total', { tool: 'native.hash' })).toBe(2)
  expect(sampled(text, 'toolway_tool_native_calls_total', { tool: 'files.read' })).toBeUndefined()
})

test('F15: another entry for the same tool counts in the same series', () => {
  using metrics = metricsOf()
  tell(metrics.observer, { call: { entry: read } }, { call: { entry: { ...read } } })
  expect(sampled(metrics.text(), 'toolway_tool_forwarded_calls_total', { server: 'files', tool: 'files.read' })).toBe(2)
})

test('F15: durations fall into buckets from half a millisecond to half a minute', () => {
  using metrics = metricsOf()
  for (const ms of [0.5, 0.6, 40, 30_000, 31_000]) tell(metrics.observer, { call: { entry: read }, ms })
  const name = 'toolway_tool_forwarded_duration_seconds'
  const labels = { server: 'files', tool: 'files.read' }
  const atMost = (le: string) => sampled(metrics.text(), `${name}_bucket`, { ...labels, le })
  expect(['0.0005', '0.001', '0.02', '0.05', '20.0', '30.0', '+Inf'].map(atMost)).toEqual([1, 2, 2, 3, 3, 4, 5])
  expect(sampled(metrics.text(), `${name}_sum`, labels)).toBeCloseTo(61.0411, 6)
  expect(sampled(metrics.text(), `${name}_count`, labels)).toBe(5)
})

test('F15: refused and cached calls are not in the durations of a server, but count as calls', () => {
  using metrics = metricsOf()
  const call = { entry: read }
  tell(
    metrics.observer,
    { call, outcome: { kind: 'denied', code: 'TOOL_BLOCKED' } },
    { call, trail: { cache: 'hit', steps: [] } },
    { call, trail: { cache: 'miss', steps: [] } },
  )
  const labels = { server: 'files', tool: 'files.read' }
  const text = metrics.text()
  expect(sampled(text, 'toolway_tool_forwarded_calls_total', labels)).toBe(3)
  expect(sampled(text, 'toolway_tool_forwarded_duration_seconds_count', labels)).toBe(1)
  expect(sampled(text, 'toolway_operation_duration_seconds_count', { operation: 'call_tool' })).toBe(2)
})

test('F15: hits, misses and the hit rate of the cache', () => {
  using metrics = metricsOf()
  expect(sampled(metrics.text(), 'toolway_tool_cache_hit_rate')).toBeNaN()
  const call = { entry: read }
  for (const cache of ['hit', 'hit', 'hit', 'miss', 'joined'] as const) {
    tell(metrics.observer, { call, trail: { cache, steps: [] } })
  }
  const of = (name: string) => sampled(metrics.text(), `toolway_tool_cache_${name}_total`, { tool: 'files.read' })
  expect(['hits', 'misses', 'joined'].map(of)).toEqual([3, 1, 1])
  expect(sampled(metrics.text(), 'toolway_tool_cache_hit_rate')).toBe(0.75)
})

test("F15: invented codes of a server do not displace the labels of Toolway's codes", () => {
  using metrics = metricsOf()
  for (let code = 0; code < 100; code++) {
    tell(metrics.observer, { call: { entry: read }, outcome: { kind: 'failed', code: `rpc ${code}` } })
  }
  const search = entryOf({ server: 'search', name: 'find' })
  const codes = Object.keys(errorKinds) as ErrorCode[]
  for (const code of codes) tell(metrics.observer, { call: { entry: search }, outcome: { kind: 'failed', code } })
  tell(metrics.observer, { call: { entry: search }, outcome: { kind: 'tool_error' } })
  const text = metrics.text()
  const counted = (error: string) => sampled(text, 'toolway_tool_errors_total', { tool: 'search.find', error })
  for (const code of [...codes, 'tool_error']) expect([code, counted(code)]).toEqual([code, 1])
  expect(sampled(text, 'toolway_server_errors_total', { server: 'files', error: 'rpc 0' })).toBe(1)
})

test('F15: our codes have their labels though nothing can be redacted before there is a configuration', () => {
  let secret: string | undefined
  using metrics = metricsOf({
    redact(text) {
      if (secret === undefined) throw new Error('there is no configuration yet')
      return text.replaceAll(secret, '[redacted]')
    },
  })
  secret = 'hunter2'
  metrics.rejected('RATE_LIMITED')
  expect(sampled(metrics.text(), 'toolway_denials_total', { code: 'RATE_LIMITED' })).toBe(1)
})

test('F15: errors and refusals are counted by tool and code; refusals are not errors of the server', () => {
  using metrics = metricsOf()
  const call = { entry: read }
  tell(
    metrics.observer,
    { call, outcome: timedOut },
    { call, outcome: timedOut },
    { call, outcome: { kind: 'tool_error' } },
    { call, outcome: { kind: 'failed', code: 'rpc -32602' } },
    { call, outcome: { kind: 'denied', code: 'WRITE_NOT_ALLOWED' } },
  )
  const of = (error: string) => sampled(metrics.text(), 'toolway_tool_errors_total', { tool: 'files.read', error })
  expect(['TIMEOUT', 'tool_error', 'rpc -32602', 'WRITE_NOT_ALLOWED'].map(of)).toEqual([2, 1, 1, 1])
  expect(sampled(metrics.text(), 'toolway_server_errors_total', { server: 'files', error: 'TIMEOUT' })).toBe(2)
  const refusals = { server: 'files', error: 'WRITE_NOT_ALLOWED' }
  expect(sampled(metrics.text(), 'toolway_server_errors_total', refusals)).toBeUndefined()
})

test('G9: operations are counted by agent, meta-tools by their names', () => {
  using metrics = metricsOf()
  const listServers = entryOf({ server: 'toolway', name: 'list_servers' })
  tell(metrics.observer, { agent: 'dev', call: { entry: listServers } }, { agent: 'dev', call: { entry: read } })
  const of = (operation: string) =>
    sampled(metrics.text(), 'toolway_agent_calls_total', { agent: 'dev', operation, outcome: 'answered' })
  expect(['list_servers', 'call_tool'].map(of)).toEqual([1, 1])
})

test('F15: denials by code, those before the pipeline too, and refusals of rate limits by agent', () => {
  using metrics = metricsOf()
  const limited = { kind: 'denied', code: 'RATE_LIMITED' } as const
  tell(metrics.observer, { agent: 'dev', outcome: limited }, { agent: 'dev', outcome: limited })
  tell(metrics.observer, { agent: 'ops', outcome: { kind: 'denied', code: 'TOOL_BLOCKED' } })
  metrics.rejected('AUTH_REQUIRED')
  const of = (code: string) => sampled(metrics.text(), 'toolway_denials_total', { code })
  expect(['RATE_LIMITED', 'TOOL_BLOCKED', 'AUTH_REQUIRED'].map(of)).toEqual([2, 1, 1])
  const refused = (agent: string) => sampled(metrics.text(), 'toolway_rate_limited_total', { agent })
  expect(['dev', 'ops'].map(refused)).toEqual([2, 0])
})

test('F15: denials are exported as zero before the first one, so that it shows in rates', () => {
  using metrics = metricsOf()
  expect(sampled(metrics.text(), 'toolway_denials_total', { code: 'TOOL_BLOCKED' })).toBe(0)
  expect(sampled(metrics.text(), 'toolway_denials_total', { code: 'TIMEOUT' })).toBeUndefined()
})

test('F15: operations are counted by kind, agent and outcome; series of tools contain tools only', () => {
  using metrics = metricsOf()
  const entry = entryOf({ kind: 'resource', server: 'files', name: 'file:///a' })
  tell(metrics.observer, { agent: 'dev', operation: 'read_resource', call: { entry } })
  tell(metrics.observer, { agent: 'dev', outcome: timedOut }, { agent: 'dev', operation: 'complete' })
  const text = metrics.text()
  const operations = (operation: string, outcome: string) =>
    sampled(text, 'toolway_operations_total', { operation, outcome })
  expect(operations('read_resource', 'answered')).toBe(1)
  expect(operations('call_tool', 'failed')).toBe(1)
  expect(
    sampled(text, 'toolway_agent_calls_total', { agent: 'dev', operation: 'read_resource', outcome: 'answered' }),
  ).toBe(1)
  expect(text).not.toContain('file:///a')
  expect(sampled(text, 'toolway_tool_forwarded_calls_total', { server: 'files', tool: 'files.read' })).toBe(1)
})

test('F15: gauges are read when the page is requested', () => {
  using metrics = metricsOf()
  const text = metrics.text()
  const of = (name: string, labels = {}) => sampled(text, `toolway_${name}`, labels)
  expect(of('breaker_state', { server: 'files' })).toBe(0)
  expect(of('breaker_state', { server: 'search' })).toBe(1)
  expect(of('breaker_state', { server: 'memory' })).toBe(2)
  expect(of('server_healthy', { server: 'memory' })).toBe(0)
  expect(of('server_healthy', { server: 'search' })).toBe(1)
  expect(of('server_healthy', { server: 'retired' })).toBeUndefined()
  expect(of('server_restarts_total', { server: 'memory' })).toBe(4)
  expect(of('server_findings', { server: 'memory' })).toBe(2)
  expect(of('tool_active_connections', { server: 'search' })).toBe(2)
  expect(of('in_flight')).toBe(3)
  expect(of('queue_depth')).toBe(2)
  expect(of('server_in_flight', { server: 'files' })).toBe(2)
  expect(of('server_queue_depth', { server: 'memory' })).toBe(2)
  expect(of('sessions')).toBe(5)
  expect([of('cache_entries'), of('cache_size_bytes'), of('cache_evictions_total')]).toEqual([12, 3456, 7])
  expect([of('reload_attempts_total'), of('reload_failures_total'), of('reload_last_succeeded')]).toEqual([3, 1, 0])
  expect(of('reload_last_success_timestamp_seconds')).toBe(Date.parse('2027-01-15T08:00:00.500Z') / 1000)
  expect([of('audit_recording'), of('audit_outages_total')]).toEqual([0, 1])
  expect(of('context_tokens', { kind: 'saved' })).toBe(8000)
  expect(of('process_start_time_seconds')).toBe(1_800_000_000)
  expect(of('process_resident_memory_bytes')).toBeGreaterThan(1e6)
  expect(of('process_cpu_seconds_total')).toBeGreaterThan(0)
  expect(of('event_loop_lag_seconds', { of: 'p99' })).toBeGreaterThanOrEqual(0)
  expect(of('build_info', { version: '1.2.3', node: process.version })).toBe(1)
})

test('F15: a value that cannot be read is left out and counted, and the rest of the page stays', () => {
  const sessions = () => {
    throw new Error('gone')
  }
  using metrics = metricsOf({ readings: { ...everyReading, sessions } })
  expect(sampled(metrics.text(), 'toolway_sessions')).toBeUndefined()
  expect(sampled(metrics.text(), 'toolway_metrics_unread_total')).toBe(2)
  expect(sampled(metrics.text(), 'toolway_in_flight')).toBe(3)
})

test('B6, F15: a redactor that fails neither fails a call nor lets a name through', () => {
  const redact = () => {
    throw new Error('out of order')
  }
  using metrics = metricsOf({ redact })
  tell(metrics.observer, { agent: 'hunter2-secret' })
  const labels = { agent: 'dropped', operation: 'dropped', outcome: 'answered' }
  expect(sampled(metrics.text(), 'toolway_agent_calls_total', labels)).toBe(1)
  expect(metrics.text()).not.toContain('hunter2')
})

test('B6, F15: names are redacted and escaped, and two that look the same afterwards are one series', () => {
  using metrics = metricsOf({
    readings: {
      servers: () =>
        ['x', 'y'].map((end) => ({
          ...{
            name: 'hunter2-secret',
            health: 'healthy',
            breaker: 'open',
            connections: end === 'x' ? 1 : 2,
            restarts: 0,
            findings: 0,
          },
        })),
    },
  })
  const odd = 'a "quoted"\\path\nwith \u{1f600} and half a pair \ud800'
  tell(metrics.observer, { agent: odd }, { agent: 'key-hunter2-secret' }, { agent: 'key-hunter2-secret' })
  const text = metrics.text()
  expect(text).not.toContain('hunter2-secret')
  const called = { operation: 'call_tool', outcome: 'answered' }
  expect(sampled(text, 'toolway_agent_calls_total', { agent: 'key-[redacted]', ...called })).toBe(2)
  expect(sampled(text, 'toolway_agent_calls_total', { agent: odd.toWellFormed(), ...called })).toBe(1)
  expect(sampled(text, 'toolway_tool_active_connections', { server: '[redacted]' })).toBe(3)
  expect(sampled(text, 'toolway_breaker_state', { server: '[redacted]' })).toBe(2)
})

test('F15: with 10,000 tools, 1,000 agents and every error the page stays bounded, and nothing is lost', () => {
  using metrics = metricsOf()
  const codes = Object.keys(errorKinds) as ErrorCode[]
  for (let tool = 0; tool < 10_000; tool++) {
    const entry = entryOf({ server: `server${tool % 300}`, name: `tool_${tool}_${'x'.repeat(200)}` })
    const code = tool % 3 === 0 ? `rpc ${-tool}` : (codes[tool % codes.length] as string)
    const call = { entry }
    const agent = `agent${tool % 1000}`
    tell(
      metrics.observer,
      { agent, call },
      { agent, call, outcome: { kind: 'failed', code } },
      { agent, call, trail: { cache: 'hit', steps: [] } },
      { agent, call, operation: `made/up${tool}`, trail: { cache: 'miss', steps: [] } },
    )
  }
  const text = metrics.text()
  const families = readPage(text)
  expect(text.split('\n').length).toBeLessThan(10_000)
  expect(text.length).toBeLessThan(2_000_000)
  const total = (name: string) => families.get(name)?.samples.reduce((sum, { value }) => sum + value, 0)
  expect(total('toolway_tool_forwarded_calls_total')).toBe(30_000)
  expect(total('toolway_tool_errors_total')).toBe(10_000)
  expect(total('toolway_agent_calls_total')).toBe(40_000)
  expect(total('toolway_operations_total')).toBe(40_000)
  expect(total('toolway_tool_cache_hits_total')).toBe(10_000)
  expect(text).toContain('tool="other"')
  expect(text).toContain('agent="other"')
})

test('F15: every name has our prefix and a sentence about it', () => {
  using metrics = metricsOf()
  tell(metrics.observer, {}, { outcome: timedOut }, { trail: { cache: 'hit', steps: [] } })
  for (const [name, { help }] of readPage(metrics.text())) {
    expect(name).toMatch(/^toolway_/)
    expect(help).toMatch(/^[A-Z0-9].*\.$/)
  }
})

test.skipIf(spawnSync('promtool', ['--version']).error !== undefined)('F15: promtool reports no problems', () => {
  using metrics = metricsOf()
  tell(metrics.observer, {}, { outcome: timedOut }, { trail: { cache: 'hit', steps: [] } })
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: metrics.text() })
  expect([status, stdout.toString(), stderr.toString()]).toEqual([0, '', ''])
})
