import { expect, test } from 'vitest'
import { silentLog } from '../core/log.ts'
import { openPipeline, refusing } from './pipeline.fixture.ts'

test('F11: requests that a front end rejects are recorded', () => {
  const { rejected, ends } = openPipeline()
  rejected({ address: '192.0.2.1', code: 'AUTH_REQUIRED' })
  rejected({ principal: 'key:ci', code: 'INVALID_AGENT_ID' })
  expect(ends()).toMatchObject([
    {
      operation: 'authenticate',
      decision: 'DENY',
      reason: 'auth_required',
      principal: 'unknown',
      address: '192.0.2.1',
    },
    { operation: 'authenticate', decision: 'DENY', reason: 'invalid_agent_id', principal: 'key:ci' },
  ])
})

test('F11: a flood of rejected requests does not fill the disk', () => {
  const { rejected, ends, clock } = openPipeline()
  for (let count = 0; count < 1_000; count++) rejected({ code: 'AUTH_REQUIRED' })
  expect(ends()).toHaveLength(10)
  clock.advance(1_000)
  rejected({ code: 'AUTH_REQUIRED' })
  expect(ends()).toHaveLength(11)
})

test('F11: the record of a refused agent names that agent', () => {
  const { rejected, ends } = refusing()
  rejected({ principal: 'key:ci', asked: 'admin', code: 'INVALID_AGENT_ID' })
  expect(ends()).toMatchObject([{ principal: 'key:ci', agent: '(none)', asked: 'admin', brief: true }])
})

test('F11, B7: unauthenticated requests share ten records a second, and the next one counts the suppressed ones', () => {
  const { rejected, ends, clock } = refusing()
  for (let count = 0; count < 1_000; count++) rejected({ address: `192.0.2.${count % 200}`, code: 'AUTH_REQUIRED' })
  expect(ends()).toHaveLength(10)
  clock.advance(999)
  rejected({ code: 'AUTH_REQUIRED' })
  expect(ends()[10]).toMatchObject({ operation: 'authenticate', suppressed: 990 })
})

test('F11, B7: unauthenticated requests do not suppress records of authenticated ones', () => {
  const { rejected, ends } = refusing()
  for (let count = 0; count < 1_000; count++) rejected({ code: 'AUTH_REQUIRED' })
  // Whatever they call themselves: that is not a credential of a stranger.
  rejected({ principal: 'unknown', code: 'INVALID_AGENT_ID' })
  expect(ends()).toHaveLength(11)
  expect(ends()[10]).toMatchObject({ reason: 'invalid_agent_id' })
  expect(ends()[10]).not.toHaveProperty('suppressed')
})

test('F11: a flood of wrong tokens hides neither a refused host nor a malformed request', () => {
  const { rejected, ends } = refusing()
  for (let count = 0; count < 1_000; count++) rejected({ code: 'AUTH_REQUIRED' })
  rejected({ code: 'DENIED_BY_POLICY', detail: 'host: evil.example' })
  rejected({ code: 'INVALID_ARGUMENTS', malformed: true, detail: 'not JSON' })
  expect(ends().slice(10)).toMatchObject([{ detail: 'host: evil.example' }, { detail: 'not JSON' }])
})

test('F11: a malformed request is recorded and logged with its fault, shortened and without control characters', () => {
  const warned: object[] = []
  const log = { ...silentLog, warn: (fields: object) => void warned.push(fields) }
  const { rejected, ends } = openPipeline({ log })
  rejected({ principal: 'key:ci', code: 'INVALID_ARGUMENTS', malformed: true, detail: 'Unknown method "\\x".' })
  rejected({ code: 'DENIED_BY_POLICY', detail: `host: evil\n${'x'.repeat(10_000)}` })
  expect(ends()).toMatchObject([
    { operation: 'malformed_request', decision: 'ERROR', reason: 'malformed_request', detail: 'Unknown method "\\x".' },
    { operation: 'authenticate', decision: 'DENY', detail: expect.stringMatching(/^host: evil\\u\{a\}x{10,300}…$/) },
  ])
  expect(warned).toMatchObject([{ principal: 'key:ci', detail: 'Unknown method "\\x".' }, { code: 'DENIED_BY_POLICY' }])
  for (let count = 0; count < 1000; count++) rejected({ code: 'AUTH_REQUIRED' })
  expect(warned.length).toBeLessThan(20)
})
