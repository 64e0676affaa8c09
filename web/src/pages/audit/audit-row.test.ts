import { expect, test } from 'vitest'
import { argumentsText, filterIn, latencyOf, reasonOf, recordKey, targetOf, timeOf } from './audit-row.ts'

const row = {
  time: '2026-03-01T12:00:00.005Z',
  lane: 'a',
  seq: 7,
  operation: 'call_tool',
  server: 'github',
  tool: 'delete_repository',
  decision: 'DENY',
  reason: 'tool_not_allowed',
  rule: 'agents.ci.deny.tools.github[0]',
  latency_ms: 0.4,
}

test('G10: fields of a record', () => {
  expect(recordKey(row)).toBe('a:7')
  expect(recordKey({ ...row, replica: 'r' })).toBe('r:a:7')
  expect(targetOf(row)).toBe('github.delete_repository')
  expect(timeOf(row)).toBe(Date.UTC(2026, 2, 1, 12, 0, 0, 5))
  expect(reasonOf(row)).toBe('tool_not_allowed · agents.ci.deny.tools.github[0]')
  expect(latencyOf(row)).toBe(0.4)
  expect(argumentsText({ ...row, arguments: { a: 1 } })).toBe('{"a":1}')
  expect(argumentsText({ ...row, arguments: {} })).toBe('call_tool')
})

test('G10: a record with unknown fields is shown, too', () => {
  const odd = { operation: 'gap', time: 'never', seq: { a: 1 }, latency_ms: null }
  expect([recordKey(odd), targetOf(odd), timeOf(odd), reasonOf(odd), latencyOf(odd)]).toEqual([':', 'gap', 0, '', null])
})

test('G10: the link from a key to its audit records filters by principal', () => {
  const filter = filterIn(new URLSearchParams('principal=key:limited&q=&from=2026-03-01T12:00:00Z'))
  const given = Object.entries(filter).filter(([, value]) => value !== undefined)
  expect(given).toEqual([
    ['principal', 'key:limited'],
    ['from', Date.UTC(2026, 2, 1, 12)],
  ])
})
