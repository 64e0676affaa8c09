import { userInfo } from 'node:os'
import { expect, test } from 'vitest'
import { type Config, configSchema } from '../config/schema.ts'
import type { AuditBegin, AuditEnd } from '../core/audit.ts'
import { ToolwayError } from '../core/errors.ts'
import { auditAction, ConfigAudit } from './audit-events.ts'
import { compareConfigs } from './config-difference.ts'

const configOf = (written: object) => configSchema.parse(written) as unknown as Config

function setUp() {
  const records: (AuditBegin | AuditEnd)[] = []
  const keep = (event: AuditBegin | AuditEnd) => {
    records.push(event)
    return undefined
  }
  const audit = { begin: keep, end: keep }
  const record = new ConfigAudit(audit, 'a secret', (text) => text.replace('hunter2', '[redacted]'))
  return { audit, record, records }
}

test('F11: start, stop and each reload are audited, with a hash of the configuration and the changes', async () => {
  const { record, records } = setUp()
  const before = configOf({})
  const after = configOf({ mcpServers: { a: { command: 'x' } } })
  record.started(before)
  record.applied(after, compareConfigs(before, after).difference)
  record.refused('line 3: password hunter2 is wrong')
  await record.stopped(after)
  const given = records.map((event) => ('arguments' in event ? event.arguments : undefined))
  expect(records.filter((event) => 'decision' in event)).toMatchObject([
    { operation: 'gateway_start', decision: 'ALLOW', principal: `os:${userInfo().username}` },
    { operation: 'reload', decision: 'ALLOW' },
    { operation: 'reload', decision: 'ERROR', detail: 'line 3: password [redacted] is wrong' },
    { operation: 'gateway_stop', decision: 'ALLOW' },
  ])
  expect(given[2]).toMatchObject({ servers: { added: ['a'] } })
  expect(given[0]?.configuration).toMatch(/^[0-9a-f]{64}$/)
  expect(given[0]?.configuration).not.toBe(given[2]?.configuration)
  expect(given[6]?.configuration).toBe(given[2]?.configuration)
})

test('F11: an action that the caller may not perform is recorded as a denial, with its rule', async () => {
  const { audit, records } = setUp()
  const action = { agent: 'a', principal: 'key:a', operation: 'answer_approval', rule: 'admin' }
  const refused = new ToolwayError('DENIED_BY_POLICY', 'You may not answer.', { rule: 'agents.a.approve[0]' })
  await expect(auditAction(audit, action, () => Promise.reject(refused))).rejects.toBe(refused)
  await expect(auditAction(audit, action, () => Promise.reject(new Error('no space')))).rejects.toThrow('no space')
  expect(records.filter((record) => 'decision' in record)).toMatchObject([
    { decision: 'DENY', code: 'DENIED_BY_POLICY', rule: 'agents.a.approve[0]', is_error: true },
    { decision: 'ERROR', code: 'INTERNAL', rule: undefined, is_error: true },
  ])
})
