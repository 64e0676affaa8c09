import { archiveCsvHeading, archiveCsvLine, csvHeading, csvLine, jsonLine } from '../../../core/audit-export.ts'
import { dropWhenStalled } from '../../http/sse-stream.ts'
import { drained } from '../../openai/chat.ts'
import type { AuditListQuery, AuditPage } from '../contract.ts'
import { adminRoute, answered, type Route } from '../router.ts'
import * as calls from '../schemas/calls.ts'
import type { AdminService } from '../service.ts'

const mediaTypes = { jsonl: 'application/jsonl', csv: 'text/csv' } as const

/** Operations that an export reads at a time. */
const exportPage = 200

/** The audit log. */
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
