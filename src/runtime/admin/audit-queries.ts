import { Worker } from 'node:worker_threads'
import { type AuditPageQuery, searchAudit } from '../../audit/reader.ts'
import type { VerifyProblem } from '../../audit/verify/chain-check.ts'
import type { Archive } from '../../core/audit-archive.ts'
import type { Clock } from '../../core/clock.ts'
import { type ErrorCode, errorKinds, ToolwayError } from '../../core/errors.ts'
import type { AuditPage, CallDetail, ChainView } from '../../serve/admin/contract.ts'
import type { AdminService } from '../../serve/admin/service.ts'
import type { PostgresAudit } from '../../stores/postgres/audit.ts'
import { moduleFile } from '../package-paths.ts'
import { type ReplayedPolicy, type ReplayProgress, recordsInArchive, replayRecords } from '../policy-replay.ts'
import type { AuditRequests, AuditResponse, AuditWorkerResponse } from './audit-worker.ts'
import type { AdminContext } from './context.ts'
import type { InboxEntry } from './inbox.ts'

/** Searches and verifies the audit log in a worker thread. Searches use the archive while it is reachable. */
export interface AuditQueries extends AsyncDisposable {
  search(query: AuditPageQuery): Promise<AuditPage>
  recordsOf(call: string): Promise<CallDetail['audit']>
  verify(key: string): Promise<AuditResponse<'verify'>>
  /** Applies a policy to the calls recorded since a time. Rejects if `signal` is aborted. */
  replay(policy: ReplayedPolicy, options: AuditReplayOptions): Promise<AuditResponse<'replay'>>
}

export interface AuditReplayOptions {
  /** In milliseconds since the epoch. */
  readonly since: number
  readonly maxRecords: number
  readonly signal: AbortSignal
  progress(done: ReplayProgress): void
}

export interface AuditQueriesOptions {
  readonly folder: string
  /** The folder that contains the audit log's high-water marks. */
  readonly marks?: string
  /** Resolves when all records written so far are on disk. */
  flushed(): Promise<void>
  readonly archive?: Pick<PostgresAudit, 'ask' | 'status'> | undefined
  readonly clock: Clock
}

interface PendingRequest {
  resolve(output: never): void
  reject(error: Error): void
  readonly progress: AuditReplayOptions['progress'] | undefined
}

/** An idle worker is terminated after this time to free its memory. */
const idleMs = 60_000

const unavailable =
  'PostgreSQL, where this search began, cannot be reached. Try again later, or start a new search to see only the records on this replica.'

export function createAuditQueries({ folder, marks, flushed, archive, clock }: AuditQueriesOptions): AuditQueries {
  const pending = new Map<number, PendingRequest>()
  let worker: Worker | undefined
  let idleTimer: Disposable | undefined
  let lastId = 0
  let disposed = false

  const rejectPending = (error: () => Error) => {
    for (const { reject } of pending.values()) reject(error())
    pending.clear()
  }

  const workerEnded = (ended: Worker, error: Error) => {
    if (worker !== ended) return
    worker = undefined
    rejectPending(() => error)
  }

  const startWorker = (): Worker => {
    const started = new Worker(moduleFile('runtime/admin/audit-worker'), { execArgv: [], name: 'audit' })
    started.unref()
    started.on('message', received)
    started.on('error', (cause) => workerEnded(started, failure(cause)))
    started.on('exit', () => workerEnded(started, failure(new Error('the worker thread ended'))))
    return started
  }

  const received = (response: AuditWorkerResponse) => {
    const request = pending.get(response.id)
    if ('progress' in response) return request?.progress?.(response.progress as ReplayProgress)
    pending.delete(response.id)
    if ('error' in response) request?.reject(errorOf(response.error))
    else request?.resolve(response.output as never)
    if (pending.size > 0) return
    idleTimer?.[Symbol.dispose]()
    idleTimer = clock.after(idleMs, () => void close())
  }

  const close = async () => {
    const last = worker
    worker = undefined
    idleTimer?.[Symbol.dispose]()
    rejectPending(shuttingDown)
    await last?.terminate()
  }

  const request = async <Name extends keyof AuditRequests>(
    name: Name,
    input: Parameters<AuditRequests[Name]>[1],
    { signal, progress }: Partial<Pick<AuditReplayOptions, 'signal' | 'progress'>> = {},
  ): Promise<AuditResponse<Name>> => {
    // Search even if some records could not be written; that failure is reported elsewhere.
    await flushed().catch(() => {})
    if (disposed) throw shuttingDown()
    idleTimer?.[Symbol.dispose]()
    worker ??= startWorker()
    const id = ++lastId
    const { promise, resolve, reject } = Promise.withResolvers<AuditResponse<Name>>()
    pending.set(id, { resolve, reject, progress })
    worker.postMessage({ id, folder, name, input })
    signal?.addEventListener('abort', () => worker?.postMessage({ cancel: id }), { once: true })
    return promise
  }

  return {
    async search(query) {
      if (archive) await flushed().catch(() => {})
      const sources = {
        archive: archive && ((page: AuditPageQuery) => archive.ask(({ search }) => search(page))),
        local: (page: AuditPageQuery) => request('query', page),
        unavailable: () => unavailable,
      }
      const { rows, next, source } = await searchAudit(sources, query)
      const page = { rows: rows as unknown as AuditPage['rows'], nextCursor: next, source }
      if (!archive || source !== 'postgres') return page
      const { behindRecords, behindSeconds } = archive.status()
      return { ...page, behind: { records: behindRecords ?? null, seconds: behindSeconds } }
    },
    recordsOf: (call) => request('records', { call }),
    verify: (key) => request('verify', { key, marks }),
    async replay(policy, { since, maxRecords, ...control }) {
      const { status, ask } = archive ?? {}
      if (!ask || !status?.().up) return request('replay', { ...policy, since, maxRecords }, control)
      await flushed().catch(() => {})
      const arrivals: Archive['arrivals'] = async (query) => {
        control.signal.throwIfAborted()
        const page = await ask((from) => from.arrivals(query))
        if (page) return page
        throw new ToolwayError('SERVER_UNAVAILABLE', 'PostgreSQL cannot be reached: try again later.')
      }
      return replayRecords(recordsInArchive({ arrivals }, { since }), policy, { maxRecords, ...control })
    },
    [Symbol.asyncDispose]() {
      disposed = true
      return close()
    },
  }
}

/** Recreates an error from the worker. Errors with a code keep it; all others become INTERNAL and are logged. */
const errorOf = ({ code, message }: { readonly code?: string; readonly message: string }): Error =>
  code !== undefined && code in errorKinds ? new ToolwayError(code as ErrorCode, message) : failure(new Error(message))

const shuttingDown = () => new ToolwayError('OVERLOADED', 'This gateway is shutting down.')

const failure = (cause: Error) =>
  new ToolwayError('INTERNAL', "The audit log could not be read. See the gateway's log for the cause.", { cause })

interface ChainVerificationOptions extends Pick<AdminContext, 'auditKey' | 'clock' | 'log'> {
  readonly queries: Pick<AuditQueries, 'verify'>
}

interface ChainVerification extends Pick<AdminService, 'chain' | 'verifyChain'> {
  /** The result of the last check that ended. Starts another one if that was long ago. */
  verified(): ChainView
}

/** Delay of the first automatic check. */
const firstCheckMs = 60_000
/** How long a result is reused if no check is requested. */
const recheckMs = 600_000
/** The time until the next check, as a multiple of what the last one took: a long log is checked less often. */
const recheckFactor = 50

export function createChainVerification({
  queries,
  auditKey,
  clock,
  log,
}: ChainVerificationOptions): ChainVerification {
  let verified: ChainView = { state: 'unknown', checkedAt: null, records: null, problems: [] }
  let checking = false
  let dueAt = clock.monotonic() + firstCheckMs

  const check = async () => {
    const { ok, records, problems, problemCount } = await queries.verify(await auditKey())
    const more = problemCount - problems.length
    const sentences = [...problems.map(sentenceOf), ...(more > 0 ? [`and ${more} more`] : [])]
    verified = { state: ok ? 'intact' : 'broken', checkedAt: clock.now(), records, problems: sentences }
  }

  const chain = (): ChainView => (checking ? { ...verified, state: 'checking' } : verified)

  const verifyChain = (): ChainView => {
    if (checking) return chain()
    checking = true
    const begin = clock.monotonic()
    check()
      .catch((cause) => {
        log.error({ err: cause }, 'audit log could not be verified')
        const problems = ["The audit log could not be verified. See the gateway's log for the cause."]
        verified = { ...verified, problems }
      })
      .finally(() => {
        checking = false
        const end = clock.monotonic()
        dueAt = end + Math.max(recheckMs, recheckFactor * (end - begin))
      })
    return chain()
  }

  return {
    verified() {
      if (clock.monotonic() >= dueAt) verifyChain()
      return verified
    },
    chain,
    verifyChain,
  }
}

/** The inbox item for a log that failed its last verification. */
export const brokenChain = ({ state, checkedAt, problems }: ChainView): readonly InboxEntry[] =>
  state !== 'broken'
    ? []
    : [
        {
          id: 'audit:chain',
          kind: 'audit',
          severity: 'critical',
          title: 'The audit log was modified after it was written',
          detail: problems.slice(0, 3).join('; '),
          since: checkedAt ?? undefined,
          revision: problems.join(),
          link: '/audit',
          actions: [{ name: 'Verify again', path: 'audit/chain/verify' }],
        },
      ]

/** Formats a problem with its location, such as `1/000000000001.jsonl:7: …`. */
function sentenceOf({ lane, file, line, message }: VerifyProblem): string {
  const place = [lane, file].filter((part) => part !== undefined).join('/')
  return place === '' ? message : `${place}${line === undefined ? '' : `:${line}`}: ${message}`
}
