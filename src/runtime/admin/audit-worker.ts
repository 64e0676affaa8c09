import { parentPort } from 'node:worker_threads'
import { listLanes } from '../../audit/log-files.ts'
import type { AuditPageQuery, AuditSearchPage } from '../../audit/reader.ts'
import { openCurrentSearch, searchLog } from '../../audit/search/search.ts'
import { type VerifyReport, verifyAudit } from '../../audit/verify/verify.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { AuditRow, CallDetail } from '../../serve/admin/contract.ts'

export interface AuditRequests {
  query: { readonly input: AuditPageQuery; readonly output: AuditSearchPage }
  records: { readonly input: { readonly call: string }; readonly output: CallDetail['audit'] }
  verify: {
    readonly input: { readonly key: string; readonly marks: string | undefined }
    readonly output: Pick<VerifyReport, 'ok' | 'records' | 'problems' | 'problemCount'>
  }
}

export type AuditRequestName = keyof AuditRequests

/** The response has the same id. */
interface WorkerRequest<Name extends AuditRequestName = AuditRequestName> {
  readonly id: number
  readonly folder: string
  readonly name: Name
  readonly input: AuditRequests[Name]['input']
}

export type AuditWorkerResponse =
  | { readonly id: number; readonly output: AuditRequests[AuditRequestName]['output'] }
  | { readonly id: number; readonly error: { readonly code?: string; readonly message: string } }

type Handlers = {
  [Name in AuditRequestName]: (
    folder: string,
    input: AuditRequests[Name]['input'],
  ) => Promise<AuditRequests[Name]['output']>
}

const maxProblems = 100

/** Runs in a worker thread: indexing and verifying signatures are CPU-bound and must not delay calls. */
const handlers: Handlers = {
  query: (folder, query) => searchLog(folder, query),
  async records(folder, { call }) {
    if (listLanes(folder).length === 0) return { begin: null, end: null }
    using search = await openCurrentSearch(folder)
    const records = [...search.records({ call, order: 'oldest', limit: 10 })].map(({ record }) => record)
    const inPhase = (phase: string) => (records.find((record) => record.phase === phase) ?? null) as AuditRow | null
    return { begin: inPhase('before'), end: inPhase('after') }
  },
  async verify(folder, { key, marks }) {
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
