import { parentPort } from 'node:worker_threads'
import { ToolwayError } from '../core/errors.ts'
import type { AuditRow } from '../serve/admin/contract.ts'
import { lanesOf } from '../telemetry/audit/layout.ts'
import { verifyAudit } from '../telemetry/audit/verify.ts'
import { openSearch } from '../telemetry/audit-search/search.ts'
import { cursorOf } from '../telemetry/audit-search/where.ts'
import type { AuditAnswer, AuditQuestion, AuditTask, AuditWork } from './audit-work.ts'

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
