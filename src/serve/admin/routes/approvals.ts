import * as z from 'zod'
import { type Route, userRoute } from '../router.ts'
import * as approvals from '../schemas/approvals.ts'

/** Calls that wait for a person. Not for admins only: `approvals.by` may name other people. */
export const approvalsRoutes: readonly Route[] = [
  userRoute('GET', 'approvals', "Calls that wait for a person's approval; for non-admins, those they may answer", {
    answer: z.array(approvals.approvalView),
    run: ({ caller }, { admin }) => admin.approvals(caller),
  }),
  userRoute('POST', 'approvals/{id}', 'Answers an approval; the first answer counts', {
    body: approvals.answerApproval,
    answer: approvals.answeredApproval,
    run: ({ caller, target, body }, { admin }) => admin.answerApproval(caller, target, body),
  }),
]
