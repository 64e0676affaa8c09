import * as z from 'zod'
import { named, type ViewOf } from './figures.ts'

export const approvalView = named('ApprovalView', "A call that waits for a person's approval.", {
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

export const answeredApproval = named('AnsweredApproval', 'An approval that has been answered.', {
  id: z.string(),
  call: z.string(),
  server: z.string(),
  tool: z.string(),
  decision: approvalDecision,
})
export type AnsweredApproval = ViewOf<typeof answeredApproval>
