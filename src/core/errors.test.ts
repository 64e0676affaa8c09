import { expect, test } from 'vitest'
import { errorKinds, ToolwayError } from './errors.ts'

/** The error codes of E2, in the order of the requirement. Other people's scripts rely on these names. */
const contract =
  `TOOL_NOT_FOUND SERVER_NOT_FOUND SERVER_UNAVAILABLE SERVER_UNHEALTHY SERVER_DISABLED CIRCUIT_OPEN DENIED_BY_POLICY
  NAMESPACE_NOT_ALLOWED TOOL_BLOCKED WRITE_NOT_ALLOWED AUTH_REQUIRED RATE_LIMITED INVALID_ARGUMENTS INVALID_PATH
  UNSAFE_SQL UNSAFE_URL INVALID_AGENT_ID FALLBACK_AGENT_NOT_IN_RULES NO_FALLBACK_CONFIGURED TIMEOUT CANCELLED
  OUTCOME_UNKNOWN OVERLOADED QUARANTINED AUDIT_UNAVAILABLE INTERNAL`.split(/\s+/)

test('E2: the table has exactly the codes of the contract', () => {
  expect(Object.keys(errorKinds)).toEqual(contract)
})

test('E1: our own numbers are distinct and outside the range that JSON-RPC reserves', () => {
  const own = Object.values(errorKinds)
    .map(({ rpc }) => rpc as number)
    .filter((rpc) => rpc !== -32602 && rpc !== -32603)
  expect(new Set(own).size).toBe(own.length)
  expect(own.filter((rpc) => rpc >= -32768 && rpc <= -32000)).toEqual([])
})

test('E1: an unknown tool or server is a malformed request, everything else a refusal', () => {
  const malformed = Object.entries(errorKinds).filter(([, kind]) => 'malformed' in kind)
  expect(malformed.map(([code]) => code)).toEqual(['TOOL_NOT_FOUND', 'SERVER_NOT_FOUND'])
})

test('E2: errors that a repeated call may avoid are retryable, and a disabled server is not one of them', () => {
  const retryable = Object.entries(errorKinds).filter(([, kind]) => kind.retryable)
  expect(retryable.map(([code]) => code)).toEqual(
    `SERVER_UNAVAILABLE SERVER_UNHEALTHY CIRCUIT_OPEN RATE_LIMITED TIMEOUT OVERLOADED AUDIT_UNAVAILABLE`.split(' '),
  )
})

test('E1: the data has code, rule, server and retry time, and no unknown members', () => {
  expect(new ToolwayError('TIMEOUT', 'too late').data).toEqual({ code: 'TIMEOUT' })
  const details = { rule: 'limits.perMinute', server: 'a', retryAfterMs: 5, cause: new Error('secret') }
  expect(new ToolwayError('RATE_LIMITED', 'slow down', details).data).toEqual({
    code: 'RATE_LIMITED',
    rule: 'limits.perMinute',
    server: 'a',
    retryAfterMs: 5,
  })
})

test('E1: the retry time is a whole number of milliseconds, at least one', () => {
  const retryAfterMs = (given: number) =>
    new ToolwayError('OVERLOADED', 'later', { retryAfterMs: given }).data.retryAfterMs
  expect([0.2, 0, -5, 12.001, 7, Number.NaN, Number.POSITIVE_INFINITY].map(retryAfterMs)).toEqual([
    1,
    1,
    1,
    13,
    7,
    undefined,
    undefined,
  ])
})

test('an unexpected error becomes INTERNAL and shows nothing of its cause', () => {
  const error = ToolwayError.from(new Error('password=hunter2'))
  expect(error.code).toBe('INTERNAL')
  expect(error.message).not.toContain('hunter2')
  expect(ToolwayError.from(error)).toBe(error)
})
