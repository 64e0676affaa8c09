import { hash } from 'node:crypto'
import * as z from 'zod'
import type { PendingApproval } from '../../core/approval.ts'
import type { Caller } from '../../core/call.ts'
import { invalidArguments, ToolwayError } from '../../core/errors.ts'
import { speltOut } from '../../lib/characters.ts'
import { quote } from '../../lib/message-text.ts'
import { mayAnswer } from '../../policy/approvals.ts'
import * as calls from '../calls/schema.ts'
import { type AdminContext, auditOperation } from '../context.ts'
import type { AnswerApproval, AnsweredApproval, ApprovalView } from '../contract.ts'
import { type Route, userRoute } from '../router.ts'

export type ApprovalsService = ReturnType<typeof createApprovalsAdmin>

/** Lists and answers the approvals of all processes that together serve this gateway (V8). */
export function createApprovalsAdmin({ sharedApprovals, audit, current }: AdminContext) {
  const visible = (caller: Caller): readonly PendingApproval[] =>
    sharedApprovals.list().filter((approval) => caller.admin || mayAnswer(approval, caller))

  const viewOf = (caller: Caller, approval: PendingApproval): ApprovalView => {
    const { id, call, agent, principal, server, rule, askedAt, until } = approval
    return {
      ...{ id, call, agent, principal, server, rule, askedAt, until },
      arguments: approval.arguments,
      tool: speltOut(current().redactor.line(approval.tool)),
      // The id itself is not shown, because whoever knows it can use the session.
      session: hash('sha256', approval.session).slice(0, 8),
      mayAnswer: mayAnswer(approval, caller),
    }
  }

  return {
    /** Admins see all approvals, other callers those that they may answer. */
    approvals: (caller: Caller): readonly ApprovalView[] => visible(caller).map((approval) => viewOf(caller, approval)),
    async answerApproval(caller: Caller, id: string, { decision, reason }: AnswerApproval): Promise<AnsweredApproval> {
      const approval = sharedApprovals.list().find((one) => one.id === id)
      if (!approval) throw approvalGone(id)
      const { call, server, tool } = approval
      const action = { operation: 'answer_approval', server, tool, arguments: { approval: id, call, decision, reason } }
      await auditOperation(audit, caller, action, async () => {
        if (!mayAnswer(approval, caller)) throw notYours(approval, caller)
        const words = reason?.trim() || undefined
        if (!(await sharedApprovals.answer(id, { decision, by: caller.principal, reason: words })))
          throw approvalGone(id)
      })
      return { id, call, server, tool: viewOf(caller, approval).tool, decision }
    },
    onApprovals: (listener: () => void): Disposable => sharedApprovals.onChange(listener),
  }
}

const approvalGone = (id: string) =>
  invalidArguments(`No approval ${quote(id)} is waiting: it was answered or timed out, or its call has ended.`)

function notYours({ principal, by, rule }: PendingApproval, caller: Caller): ToolwayError {
  const people = [...new Set(by.flat())].join(', ')
  const why =
    principal === caller.principal
      ? 'The call was made with your own credential, so somebody else must answer (or add `own` to approvals.by).'
      : `You may not answer this approval: ${people} may (approvals.by).`
  return new ToolwayError('DENIED_BY_POLICY', why, { rule })
}

/** Calls that wait for a person. Not for admins only: `approvals.by` may name other people. */
export const approvalsRoutes = (admin: ApprovalsService): readonly Route[] => [
  userRoute('GET', 'approvals', "Calls that wait for a person's approval; for non-admins, those they may answer", {
    answer: z.array(calls.approvalView),
    run: ({ caller }) => admin.approvals(caller),
  }),
  userRoute('POST', 'approvals/{id}', 'Answers an approval; the first answer counts', {
    body: calls.answerApproval,
    answer: calls.answeredApproval,
    run: ({ caller, target, body }) => admin.answerApproval(caller, target, body),
  }),
]
