import * as z from 'zod'
import type { AuditPage, AuditRow, CallDetail, CallView, ChainView } from '../contract.ts'
import { fits } from './fits.ts'

export const outcome = z.enum(['running', 'answered', 'tool_error', 'denied', 'failed'])

const fields = {
  id: z.string(),
  parent: z.string().nullable(),
  at: z.number(),
  ms: z.number().min(0).nullable().describe('Null while it runs.'),
  agent: z.string(),
  principal: z.string(),
  operation: z.string(),
  server: z.string(),
  name: z.string(),
  outcome,
  code: z.string().nullable(),
  cache: z.enum(['hit', 'miss', 'joined']).nullable(),
}

export const callView = fits<CallView>('CallView', 'A call.')(z.strictObject(fields))

const auditRow = fits<AuditRow>(
  'AuditRow',
  'A record of the audit log; its fields are those of docs/audit.',
)(z.record(z.string(), z.unknown()))

const step = z.strictObject({
  name: z.string(),
  startMs: z.number().describe('After the call began.'),
  ms: z.number().min(0).nullable(),
  error: z.string().nullable(),
})

export const callDetail = fits<CallDetail>(
  'CallDetail',
  'A call, its timeline and its audit records.',
)(
  z.strictObject({
    ...fields,
    steps: z.array(step),
    children: z.array(callView),
    audit: z
      .strictObject({ begin: auditRow.nullable(), end: auditRow.nullable() })
      .describe('As they are on disk; null while they are not there yet, and for whoever is no admin.'),
  }),
)

export const auditPage = fits<AuditPage>(
  'AuditPage',
  'Some of the operations in the audit log, newest first.',
)(
  z.strictObject({
    rows: z.array(auditRow),
    nextCursor: z.string().nullable(),
    source: z.enum(['postgres', 'local']).optional(),
    behind: z.strictObject({ records: z.number().nullable(), seconds: z.number() }).optional(),
  }),
)

export const chainView = fits<ChainView>(
  'ChainView',
  'Whether the audit log is as it was written, as far as it was checked.',
)(
  z.strictObject({
    state: z.enum(['unknown', 'checking', 'intact', 'broken']),
    checkedAt: z.number().nullable(),
    records: z.int().min(0).nullable(),
    problems: z.array(z.string()),
  }),
)
