import { parentPort } from 'node:worker_threads'
import { lanesOf } from '../../audit/log-files.ts'
import { type AuditQuery, cursorOf, openSearch } from '../../audit/search/search.ts'
import { type VerifyReport, verifyAudit } from '../../audit/verify/verify.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { AuditPage, AuditRow, CallDetail } from '../../serve/admin/contract.ts'

/**
 * Reads the audit log in a thread of its own: entering new records into the index and checking signatures keep a
 * processor busy, and calls must not wait for that.
 */

type Run = {
  [Task in AuditTask]: (folder: string, asked: AuditWork[Task]['asked']) => Promise<AuditWork[Task]['answer']>
}

const run: Run = {
  async query(folder, { limit, ...asked }) {
    if (lanesOf(folder).length === 0) return { rows: [], nextCursor: null }
    using search = await opened(folder)
    const found = [...search.query({ ...asked, limit: limit + 1 })]
    const rows = found.slice(0, limit)
    const last = rows.at(-1)
    return { rows: rows.map(asRow), nextCursor: found.length > limit && last ? cursorOf(last) : null }
  },
  async records(folder, { call }) {
    if (lanesOf(folder).length === 0) return { begin: null, end: null }
    using search = await opened(folder)
    const records = [...search.records({ call, order: 'oldest', limit: 10 })].map(({ record }) => record)
    const phase = (wanted: string) => records.find((record) => record.phase === wanted)
    const [begin, end] = [phase('before'), phase('after')]
    return { begin: begin ? asRow(begin) : null, end: end ? asRow(end) : null }
  },
  async verify(folder, { key, marks }) {
    const { ok, records, problems, problemCount } = await verifyAudit({ folder, key, marks })
    return { ok, records, problems: problems.slice(0, 100), problemCount }
  },
}

async function opened(folder: string) {
  const search = openSearch({ folder })
  try {
    await search.catchUp()
    return search
  } catch (error) {
    search[Symbol.dispose]()
    throw error
  }
}

const asRow = (row: object): AuditRow => row as AuditRow

async function answerTo({ id, folder, task, asked }: AuditQuestion): Promise<AuditAnswer> {
  try {
    return { id, answer: await run[task](folder, asked as never) }
  } catch (thrown) {
    const { message } = thrown as Error
    return { id, error: thrown instanceof ToolwayError ? { code: thrown.code, message } : { message } }
  }
}

parentPort?.on('message', async (question: AuditQuestion) => parentPort?.postMessage(await answerTo(question)))

/** What can be asked about the audit log, and how each of it is answered. */
export interface AuditWork {
  query: { readonly asked: AuditQuery & { readonly limit: number }; readonly answer: AuditPage }
  records: { readonly asked: { readonly call: string }; readonly answer: CallDetail['audit'] }
  verify: {
    readonly asked: { readonly key: string; readonly marks: string | undefined }
    readonly answer: Pick<VerifyReport, 'ok' | 'records' | 'problems' | 'problemCount'>
  }
}

export type AuditTask = keyof AuditWork

/** A question to the worker; its answer has the same id. */
interface AuditQuestion<Task extends AuditTask = AuditTask> {
  readonly id: number
  readonly folder: string
  readonly task: Task
  readonly asked: AuditWork[Task]['asked']
}

export type AuditAnswer =
  | { readonly id: number; readonly answer: AuditWork[AuditTask]['answer'] }
  | { readonly id: number; readonly error: { readonly code?: string; readonly message: string } }
