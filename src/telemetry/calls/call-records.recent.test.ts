import { expect, expectTypeOf, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import type * as contract from '../../admin/contract.ts'
import { callOf, entryOf } from '../../core/call.fixture.ts'
import type { Call } from '../../core/call.ts'
import type { Observed } from '../../core/observer.ts'
import { Json } from '../../json/json.ts'
import { observedOf, type Told } from '../metrics/observed.fixture.ts'
import {
  type CallSummary,
  type CallTimeline,
  createCallRecorder,
  createRecentCalls,
  type RecentCalls,
  type RecentCallsOptions,
} from './call-records.ts'

const open = (changes: Partial<RecentCallsOptions> = {}) => {
  const clock = createManualClock()
  const redact = (text: string) => text.replaceAll('hunter2-secret', '[redacted]')
  return { clock, calls: createRecentCalls({ clock, redact, monotonic: () => 5_000, ...changes }) }
}

const begin = ({ observer }: RecentCalls, call: Partial<Call> = {}) => observer.began?.(callOf(call), 'call_tool')
const end = ({ observer }: RecentCalls, told: Told = {}) => observer.ended(observedOf(told))
const ids = (views: readonly CallSummary[]) => views.map(({ id }) => id)

test('G10: the types match those of the admin API', () => {
  expectTypeOf<CallSummary>().toExtend<contract.CallView>()
  expectTypeOf<CallTimeline>().toExtend<Omit<contract.CallDetail, 'audit' | 'captured' | 'rerun'>>()
})

test('G10: a call is listed while it runs and after its end', () => {
  const { clock, calls } = open()
  begin(calls, { id: 'one' })
  const running = { id: 'one', parent: null, ms: null, agent: 'default', principal: 'test', operation: 'call_tool' }
  expect(calls.list()).toEqual([
    { ...running, at: clock.now(), server: 'files', name: 'read', outcome: 'running', code: null, cache: null },
  ])
  const outcome = { kind: 'failed', code: 'TIMEOUT' } as const
  end(calls, { call: { id: 'one' }, ms: 12, outcome, trail: { cache: 'miss', steps: [] } })
  expect(calls.list()).toHaveLength(1)
  expect(calls.list()[0]).toMatchObject({ id: 'one', ms: 12, outcome: 'failed', code: 'TIMEOUT', cache: 'miss' })
})

test('G10: neither arguments nor results are kept', () => {
  const { calls } = open()
  const input = { arguments: Json.of({ password: 'swordfish' }), meta: { note: 'swordfish' }, uri: 'x://swordfish' }
  begin(calls, { id: 'one', input })
  end(calls, { call: { id: 'one', input } })
  begin(calls, { id: 'two', input })
  const kept = createCallRecorder((text) => text).begin(callOf({ input }), 'call_tool', 0, 0)
  expect(JSON.stringify([kept, calls.list(), calls.find('one'), calls.find('two')])).not.toContain('swordfish')
})

test('G10: one call comes with its steps and the calls that it made', () => {
  const { calls } = open()
  const trail: Observed['trail'] = {
    steps: [
      { name: 'queue', start: 1_002, end: 1_005 },
      { name: 'attempt', start: 1_005, end: 1_008, error: 'SERVER_UNAVAILABLE' },
      { name: 'attempt', start: 1_009 },
    ],
  }
  end(calls, { call: { id: 'child 1', parent: 'one' }, at: 10 })
  end(calls, { call: { id: 'child 2', parent: 'one' }, at: 20 })
  end(calls, { call: { id: 'stranger', parent: 'two' } })
  end(calls, { call: { id: 'one' }, trail })
  expect(calls.find('one')).toMatchObject({
    id: 'one',
    steps: [
      { name: 'queue', startMs: 2, ms: 3, error: null },
      { name: 'attempt', startMs: 5, ms: 3, error: 'SERVER_UNAVAILABLE' },
      { name: 'pause', startMs: 8, ms: 1, error: null },
      { name: 'attempt', startMs: 9, ms: null, error: null },
    ],
    children: [{ id: 'child 1' }, { id: 'child 2' }],
  })
  expect(calls.find('nobody')).toBeUndefined()
})

test('V11: the steps also show the policy, the checks and the cache', () => {
  const { calls } = open()
  const trail: Observed['trail'] = {
    ...{ decided: 1_001, lookup: { start: 1_004, end: 1_005 }, cache: 'miss' },
    steps: [
      { name: 'approve', start: 1_002, end: 1_004 },
      { name: 'attempt', start: 1_005, end: 1_009 },
    ],
  }
  end(calls, { call: { id: 'one' }, trail, ms: 10 })
  const steps = (id: string) => calls.find(id)?.steps.map(({ name, startMs, ms }) => [name, startMs, ms])
  expect(steps('one')).toEqual([
    ['policy', 0, 1],
    ['checks', 1, 1],
    ['approve', 2, 2],
    ['cache', 4, 1],
    ['attempt', 5, 4],
  ])
  end(calls, { call: { id: 'two' }, trail: { ...trail, cache: 'joined', steps: [] }, ms: 10 })
  expect(steps('two')?.slice(2)).toEqual([
    ['cache', 4, 1],
    ['joined', 5, 5],
  ])
})

test('V11: a call comes with its inner calls at any depth, at most 500', () => {
  const { calls } = open()
  // Inner calls end first, and all begin in the same millisecond.
  for (const [id, parent] of ['d c', 'c b', 'b a', 'x y'].map((pair) => pair.split(' ') as [string, string])) {
    end(calls, { call: { id, parent }, at: 1 })
  }
  end(calls, { call: { id: 'a' }, at: 1 })
  expect(ids(calls.find('a')?.children ?? []).sort()).toEqual(['b', 'c', 'd'])
  for (let index = 0; index < 600; index++) end(calls, { call: { id: `many ${index}`, parent: 'a' }, at: 2 })
  expect(calls.find('a')?.children).toHaveLength(500)
})

test('V11: filters combine', () => {
  const { calls } = open()
  const failed = { kind: 'failed', code: 'TIMEOUT' } as const
  end(calls, { call: { id: 'slow' }, at: 10, ms: 900, outcome: failed })
  end(calls, { call: { id: 'fast', parent: 'chat-1' }, at: 20, ms: 5, outcome: failed })
  end(calls, { call: { id: 'fine' }, at: 30, ms: 900 })
  begin(calls, { id: 'running' })
  expect(ids(calls.list({ slowerThan: 900 }))).toEqual(['fine', 'slow'])
  expect(ids(calls.list({ slowerThan: 900, code: 'TIMEOUT' }))).toEqual(['slow'])
  expect(ids(calls.list({ from: 20, to: 30 }))).toEqual(['fast'])
  expect(ids(calls.list({ parent: 'chat-1' }))).toEqual(['fast'])
})

test('G10: the steps of a call are seen while it runs', () => {
  const { calls } = open()
  begin(calls, { id: 'one', trail: { steps: [{ name: 'queue', start: 5_001 }] } })
  expect(calls.find('one')?.steps).toEqual([{ name: 'queue', startMs: 1, ms: null, error: null }])
})

test('G10: the number of calls is limited, and the oldest are dropped first', () => {
  const { calls } = open({ maxCalls: 3 })
  for (let number = 1; number <= 5; number++) end(calls, { call: { id: `${number}` }, at: number })
  expect(ids(calls.list())).toEqual(['5', '4', '3'])
  expect(calls.find('1')).toBeUndefined()
  expect(calls.find('4')).toBeDefined()
})

test('G10: long names take bounded memory', () => {
  const { calls } = open({ maxCalls: 1000, maxBytes: 20_000 })
  const entry = entryOf({ name: 'x'.repeat(100_000) })
  for (let number = 0; number < 100; number++) end(calls, { call: { id: `${number}`, entry }, at: number })
  const views = calls.list({}, 1000)
  expect(views.length).toBeGreaterThan(5)
  expect(views.length).toBeLessThan(25)
  expect(views[0]?.name.length).toBe(300)
})

test('G10: a server that answers with endless codes cannot fill the memory', () => {
  const { calls } = open({ maxBytes: 20_000 })
  const long = 'x'.repeat(8_000)
  for (let number = 0; number < 10; number++) {
    const steps = [{ name: 'attempt', start: 1_000, end: 1_001, error: long }] as const
    end(calls, { call: { id: `${number}` }, outcome: { kind: 'failed', code: long }, trail: { steps: [...steps] } })
  }
  expect(ids(calls.list())).toEqual(['9'])
  expect(calls.find('9')?.steps[0]?.error).toHaveLength(300)
})

test('B6, G10: what a server says instead of an error code is shortened and redacted', () => {
  const { calls } = open()
  const code = `rpc ${'x'.repeat(290)} hunter2-secret`
  end(calls, { call: { id: 'a' }, outcome: { kind: 'failed', code } })
  expect(calls.find('a')?.code).toMatch(/^rpc x{290} \[red…$/)
})

test('G10: running calls beyond the limit are listed once they have ended', () => {
  const { calls } = open({ maxRunning: 2 })
  for (const id of ['1', '2', '3']) begin(calls, { id })
  expect(ids(calls.list()).sort()).toEqual(['1', '2'])
  for (const id of ['1', '2', '3']) end(calls, { call: { id } })
  expect(ids(calls.list()).sort()).toEqual(['1', '2', '3'])
})

test('G10: an id that comes twice is found as it was last', () => {
  const { calls } = open({ maxCalls: 2 })
  end(calls, { call: { id: 'same' }, ms: 1 })
  end(calls, { call: { id: 'same' }, ms: 2 })
  end(calls, { call: { id: 'else' } })
  expect(calls.find('same')?.ms).toBe(2)
})

test('G10: calls are found by agent, server, outcome and text', () => {
  const { calls } = open()
  const entry = entryOf({ server: 'memory', name: 'create_entities' })
  end(calls, { agent: 'dev', call: { id: 'a', entry } })
  end(calls, { agent: 'ops', call: { id: 'b', entry }, outcome: { kind: 'denied', code: 'TOOL_BLOCKED' } })
  end(calls, { agent: 'ops', call: { id: 'c' }, operation: 'read_resource' })
  const found = (filter: Parameters<RecentCalls['list']>[0]) => ids(calls.list(filter)).sort()
  expect(found({ agent: 'ops' })).toEqual(['b', 'c'])
  expect(found({ server: 'memory' })).toEqual(['a', 'b'])
  expect(found({ outcome: 'denied' })).toEqual(['b'])
  expect(found({ operation: 'read_resource' })).toEqual(['c'])
  expect(found({ text: ' Memory.CREATE ' })).toEqual(['a', 'b'])
  expect(found({ text: 'tool_blocked' })).toEqual(['b'])
  expect(found({ agent: 'ops', text: 'memory' })).toEqual(['b'])
  expect(found({ agent: undefined, text: '' })).toEqual(['a', 'b', 'c'])
  expect(calls.list({}, 2)).toHaveLength(2)
})

test('B6: secrets in names are neither shown nor found', () => {
  const { calls } = open()
  end(calls, { agent: 'x-hunter2-secret', call: { id: 'a', entry: entryOf({ name: 'hunter2-secret' }) } })
  expect(JSON.stringify(calls.find('a'))).not.toContain('hunter2')
  expect(calls.list({ text: 'hunter2' })).toEqual([])
  expect(calls.list({ text: 'x-[redacted]' })).toHaveLength(1)
})
