import * as z from 'zod'
import { named, namedSchemas, type ViewOf } from './figures.ts'

const outcome = z.enum(['running', 'answered', 'tool_error', 'denied', 'failed'])

const callFields = {
  id: z.string(),
  parent: z.string().nullable(),
  at: z.number(),
  ms: z.number().min(0).nullable().describe('Duration; null while the call is running.'),
  agent: z.string(),
  principal: z.string(),
  operation: z.string(),
  server: z.string(),
  name: z.string(),
  outcome,
  code: z.string().nullable(),
  cache: z.enum(['hit', 'miss', 'joined']).nullable(),
}

export const callView = named('CallView', 'A call.', callFields)
export type CallView = ViewOf<typeof callView>

const auditRow = z.record(z.string(), z.unknown()).register(namedSchemas, {
  id: 'AuditRow',
  description: 'An audit log record; docs/audit describes its fields.',
})
export type AuditRow = ViewOf<typeof auditRow>

const step = z.strictObject({
  name: z.string(),
  startMs: z.number().describe('Time since the start of the call.'),
  ms: z.number().min(0).nullable(),
  error: z.string().nullable(),
})

export const callDetail = named('CallDetail', 'A call, its timeline and its audit records.', {
  ...callFields,
  steps: z.array(step),
  children: z.array(callView),
  audit: z
    .strictObject({ begin: auditRow.nullable(), end: auditRow.nullable() })
    .describe('The records as written to disk; null until they are written, and for users who are not admins.'),
})
export type CallDetail = ViewOf<typeof callDetail>

export const auditPage = named('AuditPage', 'A page of operations in the audit log, newest first.', {
  rows: z.array(auditRow),
  nextCursor: z.string().nullable(),
  source: z
    .enum(['postgres', 'local'])
    .optional()
    .describe('With PostgreSQL: whether these records are from all replicas or only from this one.'),
  behind: z
    .strictObject({ records: z.number().nullable(), seconds: z.number() })
    .optional()
    .describe('Records from this replica that PostgreSQL does not have yet; null if the number is unknown.'),
})
export type AuditPage = ViewOf<typeof auditPage>

export const chainView = named('ChainView', 'Whether the audit log is unchanged, as of the last check.', {
  state: z.enum(['unknown', 'checking', 'intact', 'broken']),
  checkedAt: z.number().nullable(),
  records: z.int().min(0).nullable(),
  problems: z.array(z.string()),
})
export type ChainView = ViewOf<typeof chainView>

export const chatView = named('ChatView', 'The chat models.', {
  models: z.array(z.string()).describe('Model names, the default first; empty if none is configured.'),
  vision: z.array(z.string()).describe('The models that accept images (`models.NAME.vision`).'),
})
export type ChatView = ViewOf<typeof chatView>

const maxText = 500

const text = (description: string) => z.string().max(maxText).optional().describe(description)

const moment = (description: string) =>
  z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional().describe(description)

const limit = (usual: number, max: number) =>
  z.coerce.number().int().min(1).max(max).default(usual).describe('Maximum number of results.')

const cursor = text('The `nextCursor` from the previous page.')

export const timeRange = z.strictObject({
  from: moment('Start; one hour before the end by default.'),
  to: moment('End; now by default.'),
})
export type TimeRange = ViewOf<typeof timeRange>

export const callsQuery = z.strictObject({
  agent: text('Calls by this agent.'),
  server: text('Calls to this server.'),
  name: text('Calls to this tool, resource or prompt.'),
  operation: text('Calls with this operation, such as call_tool.'),
  outcome: outcome.optional().describe('Calls with this outcome.'),
  text: text('Calls with this text in the id, agent, server, name, principal or code.'),
  limit: limit(100, 1_000),
})
export type CallsQuery = ViewOf<typeof callsQuery>

export const auditListQuery = z.strictObject({
  agent: text('Operations by this agent; * is a wildcard, here and below.'),
  principal: text('Operations by this principal.'),
  server: text('Operations on this server.'),
  tool: text('Operations on this tool, as tool or server.tool.'),
  operation: text('Operations of this kind, such as call_tool, list or authenticate.'),
  decision: text('Operations with this decision: ALLOW, DENY, ERROR or TIMEOUT.'),
  reason: text('Operations with this reason, such as rate_limited.'),
  code: text('Operations with this error code, such as TOOL_BLOCKED.'),
  call: text('Operations that belong to the call with this id.'),
  parent: text('Operations caused by the chat or call with this id.'),
  text: text('Operations with this text in the arguments. It may have the form name=value.'),
  from: moment('Operations at or after this time.'),
  to: moment('Operations before this time.'),
  cursor,
  limit: limit(50, 500),
})
export type AuditListQuery = ViewOf<typeof auditListQuery>

export const toolsQuery = z.strictObject({
  query: text('Words that must all occur in the name, title, description or server.'),
  server: text('Tools on this server.'),
  cursor,
  limit: limit(100, 500),
})
export type ToolsQuery = ViewOf<typeof toolsQuery>

export const whyQuery = z.strictObject({
  agent: text("The agent to check. Default: the credential's agent."),
  tool: z.string().min(1).max(maxText).describe('The name of the tool, such as server.tool or server__tool.'),
})
export type WhyParams = ViewOf<typeof whyQuery>
