import { parentPort } from 'node:worker_threads'
import { listLanes } from '../../audit/log-files.ts'
import type { AuditPageQuery } from '../../audit/reader.ts'
import { openCurrentSearch, searchLog } from '../../audit/search/search.ts'
import { verifyAudit } from '../../audit/verify/verify.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { AuditRow, CallDetail } from '../../serve/admin/contract.ts'
import type { ReplayedPolicy, ReplayProgress } from '../policy-replay.ts'

export type AuditRequests = typeof handlers

export type AuditResponse<Name extends keyof AuditRequests> = Awaited<ReturnType<AuditRequests[Name]>>

/** A request to the worker. The response has the same `id`. */
interface WorkerRequest {
  readonly id: number
  readonly folder: string
  readonly name: keyof AuditRequests
  readonly input: unknown
}

/** Asks the worker to abandon a request. */
interface WorkerCancellation {
  readonly cancel: number
}

export type AuditWorkerResponse =
  | { readonly id: number; readonly output: unknown }
  | { readonly id: number; readonly progress: unknown }
  | { readonly id: number; readonly error: { readonly code?: string; readonly message: string } }

const maxProblems = 100

interface ReplayInput extends ReplayedPolicy {
  readonly since: number
  readonly maxRecords: number
}

/** What a handler gets besides its input. */
interface RequestControl {
  readonly signal: AbortSignal
  progress(done: ReplayProgress): void
}

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
  async replay(folder: string, { since, maxRecords, ...policy }: ReplayInput, control: RequestControl) {
    // Only here: it imports the policy, for which the thread would load the whole gateway.
    const { recordsInFolder, replayRecords } = await import('../policy-replay.ts')
    return replayRecords(recordsInFolder(folder, { since }), policy, { maxRecords, ...control })
  },
}

const running = new Map<number, AbortController>()

async function respond({ id, folder, name, input }: WorkerRequest): Promise<AuditWorkerResponse> {
  const controller = new AbortController()
  running.set(id, controller)
  const control: RequestControl = {
    signal: controller.signal,
    progress: (progress) => parentPort?.postMessage({ id, progress } satisfies AuditWorkerResponse),
  }
  try {
    return { id, output: await handlers[name](folder, input as never, control) }
  } catch (thrown) {
    const { message } = thrown as Error
    return { id, error: thrown instanceof ToolwayError ? { code: thrown.code, message } : { message } }
  } finally {
    running.delete(id)
  }
}

parentPort?.on('message', async (request: WorkerRequest | WorkerCancellation) => {
  if ('cancel' in request) running.get(request.cancel)?.abort()
  else parentPort?.postMessage(await respond(request))
})
