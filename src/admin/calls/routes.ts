import * as z from 'zod'
import { archiveCsvHeading, archiveCsvLine, csvHeading, csvLine, jsonLine } from '../../core/audit-export.ts'
import { HttpError, rpcCodes } from '../../serve/errors.ts'
import { dropWhenStalled } from '../../serve/http/sse-stream.ts'
import { drained } from '../../serve/openai/chat.ts'
import type { AuditListQuery, AuditPage } from '../contract.ts'
import { adminRoute, answered, type Route, userRoute } from '../router.ts'
import type { AdminService } from '../service.ts'
import { tryResult } from '../tools/schema.ts'
import * as calls from './schema.ts'

export const callsRoutes: readonly Route[] = [
  userRoute('GET', 'calls', 'Calls in memory and in the history', {
    query: calls.callsQuery,
    answer: calls.callPage,
    run: ({ caller, query }, { admin }) => admin.pastCalls(caller, query),
  }),
  userRoute('GET', 'calls/choices', 'The agents, servers, tools, operations and codes of calls, to filter by', {
    query: calls.callRange,
    answer: calls.callChoices,
    run: ({ caller, query }, { admin }) => admin.callChoices(caller, query),
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

const mediaTypes = { jsonl: 'application/jsonl', csv: 'text/csv' } as const

/** Operations that an export reads at a time. */
const exportPage = 200

export const auditRoutes: readonly Route[] = [
  adminRoute('GET', 'audit', 'Operations in the audit log, newest first', {
    query: calls.auditListQuery,
    answer: calls.auditPage,
    run: ({ query }, { admin }) => admin.audit(query),
  }),
  adminRoute('GET', 'audit/export', 'The operations in the audit log as a file, newest first', {
    query: calls.auditExportQuery,
    stream: true,
    mediaTypes: Object.values(mediaTypes),
    async run({ user, query: { format, ...filter }, response }, { admin, watch }) {
      watch(user, response)
      for await (const block of exported(admin, filter, format)) {
        if (response.destroyed) return answered
        if (!response.headersSent) {
          response.writeHead(200, {
            'Content-Type': `${mediaTypes[format]}; charset=utf-8`,
            'Content-Disposition': `attachment; filename="toolway-audit.${format}"`,
          })
          dropWhenStalled(response)
        }
        response.write(block)
        await drained(response)
      }
      response.end()
      return answered
    },
  }),
  adminRoute('GET', 'audit/chain', 'Whether the audit log is unchanged, as of the last check', {
    answer: calls.chainView,
    run: (_, { admin }) => admin.chain(),
  }),
  adminRoute(
    'POST',
    'audit/chain/verify',
    'Starts a check of the whole audit log; GET audit/chain returns the outcome',
    {
      answer: calls.chainView,
      run: (_, { admin }) => admin.verifyChain(),
    },
  ),
]

/** The lines of an export, a page at a time. The first block is the heading, which is empty in JSON Lines. */
async function* exported(
  admin: AdminService,
  filter: Omit<AuditListQuery, 'cursor' | 'limit'>,
  format: keyof typeof mediaTypes,
): AsyncGenerator<string> {
  let cursor: string | undefined
  let page: AuditPage
  do {
    page = await admin.audit({ ...filter, cursor, limit: exportPage })
    const isArchive = page.source === 'postgres'
    if (cursor === undefined) yield format === 'csv' ? `${isArchive ? archiveCsvHeading : csvHeading}\r\n` : ''
    const csv = isArchive ? archiveCsvLine : csvLine
    yield page.rows.map((row) => (format === 'csv' ? `${csv(row)}\r\n` : `${jsonLine(row)}\n`)).join('')
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
}
