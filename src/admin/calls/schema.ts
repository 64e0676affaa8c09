import * as z from 'zod'
import { callOrders } from '../../core/call-query.ts'
import { schemaRegistry, timeParameter, type ViewOf, view } from '../overview/schema.ts'

const callOutcome = z.enum(['running', 'answered', 'tool_error', 'denied', 'failed'])

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
  outcome: callOutcome,
  code: z.string().nullable(),
  cache: z.enum(['hit', 'miss', 'joined']).nullable(),
}

export const callView = view('CallView', 'A call.', callFields)
export type CallView = ViewOf<typeof callView>

export const callPage = view('CallPage', 'A page of calls.', {
  calls: z.array(callView),
  total: z.int().min(0).describe('The number of matches on all pages.'),
  nextCursor: z.string().nullable(),
})
export type CallPage = ViewOf<typeof callPage>

const choiceList = z.array(z.string()).describe('Sorted, at most 1,000 of the history.')

export const callChoices = view('CallChoices', 'The values that calls have.', {
  ...{ agent: choiceList, server: choiceList, name: choiceList, operation: choiceList, code: choiceList },
})
export type CallChoicesView = ViewOf<typeof callChoices>

const auditRow = z.record(z.string(), z.unknown()).register(schemaRegistry, {
  id: 'AuditRow',
  description: 'An audit log record; docs/audit describes its fields.',
})
export type AuditRow = ViewOf<typeof auditRow>

const callStep = z.strictObject({
  name: z.string(),
  startMs: z.number().describe('Time since the start of the call.'),
  ms: z.number().min(0).nullable(),
  error: z.string().nullable(),
})

const capturedText = view('CapturedText', 'A captured JSON value.', {
  text: z.string().describe('JSON, redacted; only its beginning if it was cut.'),
  bytes: z.int().min(0).describe('The size of the original.'),
  truncated: z.boolean(),
  redacted: z.boolean(),
})

const capturedContent = view('CapturedCall', 'What was sent and received in a call.', {
  arguments: capturedText,
  result: capturedText.nullable(),
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  progress: z.array(
    z.strictObject({
      ms: z.number().describe('Time since the start of the call.'),
      progress: z.number().nullable(),
      total: z.number().nullable(),
      message: z.string().nullable(),
    }),
  ),
  droppedProgress: z.int().min(0).describe('How many earlier progress messages were dropped.'),
})

const rerun = z.strictObject({
  possible: z.boolean(),
  reason: z.string().nullable().describe('Why the call cannot be made again.'),
  write: z.boolean().describe('Whether the call may change something, so that a person should confirm it.'),
})

export const callDetail = view('CallDetail', 'A call, its timeline, its audit records and its content.', {
  ...callFields,
  steps: z.array(callStep),
  children: z.array(callView).describe('The inner calls at any depth, oldest first, at most 500; `parent` links them.'),
  audit: z
    .strictObject({ begin: auditRow.nullable(), end: auditRow.nullable() })
    .describe('The records as written to disk; null until they are written, and for users who are not admins.'),
  captured: capturedContent.nullable().describe('Null if the call was not captured, and for users who are not admins.'),
  rerun: rerun.nullable().describe('Whether POST calls/ID/run can make the call again; admins only.'),
})
export type CallDetail = ViewOf<typeof callDetail>

export const auditPage = view('AuditPage', 'A page of operations in the audit log, newest first.', {
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

export const chainView = view('ChainView', 'Whether the audit log is unchanged, as of the last check.', {
  state: z.enum(['unknown', 'checking', 'intact', 'broken']),
  checkedAt: z.number().nullable(),
  records: z.int().min(0).nullable(),
  problems: z.array(z.string()),
})
export type ChainView = ViewOf<typeof chainView>

export const chatView = view('ChatView', 'The chat models.', {
  models: z.array(z.string()).describe('Model names, the default first; empty if none is configured.'),
  vision: z.array(z.string()).describe('The models that accept images (`models.NAME.vision`).'),
})
export type ChatView = ViewOf<typeof chatView>

const maxParameterLength = 500

const textParameter = (description: string) => z.string().max(maxParameterLength).optional().describe(description)

const limitParameter = (usual: number, max: number) =>
  z.coerce.number().int().min(1).max(max).default(usual).describe('Maximum number of results.')

const cursor = z.string().max(4_000).optional().describe('The `nextCursor` from the previous page.')

export const callRange = z.strictObject({
  from: timeParameter('Calls that began at or after this time.'),
  to: timeParameter('Calls that began before this time.'),
})
export type CallRange = ViewOf<typeof callRange>

/** A parameter that selects an order; descending with a minus sign. */
const sortBy = <const Key extends string>(keys: readonly Key[]) =>
  z.enum(keys.flatMap((key) => [key, `-${key}` as const]))

export const callsQuery = callRange.extend({
  agent: textParameter('Calls by this agent.'),
  server: textParameter('Calls to this server.'),
  name: textParameter('Calls to this tool, resource or prompt.'),
  operation: textParameter('Calls with this operation, such as call_tool.'),
  outcome: callOutcome.optional().describe('Calls with this outcome.'),
  code: textParameter('Calls with this error code.'),
  parent: textParameter('Calls caused by the call or chat with this id.'),
  slowerThan: z.coerce.number().min(0).optional().describe('Calls that took at least this many milliseconds.'),
  text: textParameter('Calls with this text in the id, agent, server, name, principal or code.'),
  sort: sortBy(callOrders).default('-time').describe('The order; descending with a minus sign.'),
  cursor,
  limit: limitParameter(100, 10_000),
})
export type CallsQuery = ViewOf<typeof callsQuery>

export const auditListQuery = z.strictObject({
  agent: textParameter('Operations by this agent; * is a wildcard, here and below.'),
  principal: textParameter('Operations by this principal.'),
  server: textParameter('Operations on this server.'),
  tool: textParameter('Operations on this tool, as tool or server.tool.'),
  operation: textParameter('Operations of this kind, such as call_tool, list or authenticate.'),
  decision: textParameter('Operations with this decision: ALLOW, DENY, ERROR or TIMEOUT.'),
  reason: textParameter('Operations with this reason, such as rate_limited.'),
  code: textParameter('Operations with this error code, such as TOOL_BLOCKED.'),
  call: textParameter('Operations that belong to the call with this id.'),
  parent: textParameter('Operations caused by the chat or call with this id.'),
  text: textParameter('Operations with this text in the arguments. It may have the form name=value.'),
  from: timeParameter('Operations at or after this time.'),
  to: timeParameter('Operations before this time.'),
  cursor,
  limit: limitParameter(50, 500),
})
export type AuditListQuery = ViewOf<typeof auditListQuery>

export const auditExportQuery = auditListQuery.omit({ cursor: true, limit: true }).extend({
  format: z.enum(['jsonl', 'csv']).default('jsonl').describe('JSON Lines, or CSV for spreadsheets.'),
})

const toolOrders = ['tool', 'server', 'access', 'definition', 'tokens'] as const

export const toolsQuery = z.strictObject({
  query: textParameter('Words that must all occur in the name, title, description or server.'),
  server: textParameter('Tools on this server.'),
  sort: sortBy(toolOrders)
    .optional()
    .describe('The order; descending with a minus sign. Default: the order in which the tools are served.'),
  cursor,
  limit: limitParameter(100, 500),
})
export type ToolsQuery = ViewOf<typeof toolsQuery>
export type ToolOrder = (typeof toolOrders)[number]

export const whyQuery = z.strictObject({
  anonymous: z.literal('true').optional().describe('For callers without a credential. Admins only.'),
  agent: textParameter("The agent to check. Default: the credential's agent."),
  tool: z
    .string()
    .min(1)
    .max(maxParameterLength)
    .describe('The name of the tool, such as server.tool or server__tool.'),
})
export type WhyParams = ViewOf<typeof whyQuery>

export const approvalView = view('ApprovalView', "A call that waits for a person's approval.", {
  id: z.string(),
  call: z.string().describe('The id of the call.'),
  agent: z.string(),
  principal: z.string(),
  session: z.string().describe("A digest of the session's id."),
  server: z.string(),
  tool: z.string(),
  arguments: z.string().describe('All arguments as JSON, redacted, with hidden characters spelt out.'),
  rule: z.string().describe('The rule that requires the approval.'),
  askedAt: z.number(),
  until: z.number().describe('When the call is refused if nobody has answered.'),
  mayAnswer: z.boolean().describe('Whether you may answer.'),
})
export type ApprovalView = ViewOf<typeof approvalView>

const approvalDecision = z
  .enum(['once', 'session', 'deny'])
  .describe('Allow this call, allow the tool in this session, or deny the call.')

export const answerApproval = z.strictObject({
  decision: approvalDecision,
  reason: z.string().max(1_000).optional().describe('Why the call was denied. The model reads it.'),
})
export type AnswerApproval = ViewOf<typeof answerApproval>

export const answeredApproval = view('AnsweredApproval', 'An approval that has been answered.', {
  id: z.string(),
  call: z.string(),
  server: z.string(),
  tool: z.string(),
  decision: approvalDecision,
})
export type AnsweredApproval = ViewOf<typeof answeredApproval>
