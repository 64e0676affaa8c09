import * as z from 'zod'
import { HttpError, rpcCodes } from '../../errors.ts'
import { adminRoute, type Route, userRoute } from '../router.ts'
import * as calls from '../schemas/calls.ts'
import { tryResult } from '../schemas/catalog.ts'

/** Recent calls. */
export const callsRoutes: readonly Route[] = [
  userRoute('GET', 'calls', 'The latest calls, including those in the history, newest first', {
    query: calls.callsQuery,
    answer: z.array(calls.callView),
    run: ({ caller, query }, { admin }) => admin.pastCalls(caller, query),
  }),
  userRoute('GET', 'calls/{id}', 'One call: its timeline, inner calls, audit records and captured content', {
    answer: calls.callDetail,
    async run({ caller, target }, { admin }) {
      const call = await admin.call(caller, target)
      if (call) return call
      const sentence =
        'Call not found: calls are kept for a limited time (`history.keep`). The audit log has all of them.'
      throw new HttpError(404, rpcCodes.request, sentence)
    },
  }),
  adminRoute('POST', 'calls/{id}/run', 'Makes a call again, with its captured arguments', {
    answer: tryResult,
    run: ({ caller, target, signal }, { admin }) => admin.runAgain(caller, target, signal),
  }),
]

/** Calls that wait for a person. Not for admins only: `approvals.by` may name other people. */
export const approvalsRoutes: readonly Route[] = [
  userRoute('GET', 'approvals', "Calls that wait for a person's approval; for non-admins, those they may answer", {
    answer: z.array(calls.approvalView),
    run: ({ caller }, { admin }) => admin.approvals(caller),
  }),
  userRoute('POST', 'approvals/{id}', 'Answers an approval; the first answer counts', {
    body: calls.answerApproval,
    answer: calls.answeredApproval,
    run: ({ caller, target, body }, { admin }) => admin.answerApproval(caller, target, body),
  }),
]
