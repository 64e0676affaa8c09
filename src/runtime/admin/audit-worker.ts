import { parentPort } from 'node:worker_threads'
import { listLanes } from '../../audit/log-files.ts'
import type { AuditPageQuery } from '../../audit/reader.ts'
import { openCurrentSearch, searchLog } from '../../audit/search/search.ts'
import { verifyAudit } from '../../audit/verify/verify.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { AuditRow, CallDetail } from '../../serve/admin/contract.ts'

export type AuditRequests = typeof handlers

export type AuditResponse<Name extends keyof AuditRequests> = Awaited<ReturnType<AuditRequests[Name]>>

/** A request to the worker. The response has the same `id`. */
interface WorkerRequest {
  readonly id: number
  readonly folder: string
  readonly name: keyof AuditRequests
  readonly input: unknown
}

export type AuditWorkerResponse =
  | { readonly id: number; readonly output: unknown }
  | { readonly id: number; readonly error: { readonly code?: string; readonly message: string } }

const maxProblems = 100

/** The worker's request handlers, in a thread because indexing and verifying are CPU-bound and would delay calls. */
const handlers = {
  query: (folder: string, query: AuditPageQuery) => searchLog(folder, query),
  async records(folder: string, { call }: { readonly call: string }): Promise<CallDetail['audit']> {
    if (listLanes(folder).length === 0) return { begin: null, end: null }
    using search = await openCurrentSearch(folder)
    const records = [...search.records({ call, order: 'oldest', limit: 10 })].map(({ record }) => record)
    const inPhase = (phase: string) => (records.find((record) => record.phase === phase) ?? null) as AuditRow | null
    return { begin: inPhase('before'), end: inPhase('after') }
  },
  async verify(folder: string, { key, marks }: { readonly key: string; readonly marks: string | undefined }) {
    const { ok, records, problems, problemCount } = await verifyAudit({ folder, key, marks })
    return { ok, records, problems: problems.slice(0, maxProblems), problemCount }
  },
}

async function respond({ id, folder, name, input }: WorkerRequest): Promise<AuditWorkerResponse> {
  try {
    return { id, output: await handlers[name](folder, input as never) }
  } catch (thrown) {
    const { message } = thrown as Error
    return { id, error: thrown instanceof ToolwayError ? { code: thrown.code, message } : { message } }
  }
}

parentPort?.on('message', async (request: WorkerRequest) => parentPort?.postMessage(await respond(request)))
