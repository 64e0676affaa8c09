import { type AuditPageQuery, searchAudit } from '../../audit/reader.ts'
import type { OperationRow } from '../../audit/search/rows.ts'
import type { VerifyProblem } from '../../audit/verify/chain-check.ts'
import type { KilledProcess } from '../../audit/write/recover.ts'
import type { Archive } from '../../core/audit-archive.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import {
  type ReplayedPolicy,
  type ReplayProgress,
  recordsInArchive,
  replayRecords,
} from '../../runtime/policy-replay.ts'
import type { PostgresAudit } from '../../stores/postgres/audit.ts'
import type { AdminContext } from '../context.ts'
import type { AuditPage, CallDetail, ChainView } from '../contract.ts'
import type { InboxEntry, InboxSource } from '../inbox/inbox.ts'
import type { AdminService } from '../service.ts'
import type { ThreadMethods } from '../thread/admin-thread.ts'
import { createThreadClient } from '../thread/thread-client.ts'

/** Searches and verifies the audit log in a worker thread. Searches use the archive while it is reachable. */
export interface AuditQueries extends AsyncDisposable {
  search(query: AuditPageQuery): Promise<AuditPage>
  recordsOf(call: string): Promise<CallDetail['audit']>
  unended(killed: KilledProcess): ReturnType<ThreadMethods['unended']>
  verify(key: string): ReturnType<ThreadMethods['verify']>
  /** Applies a policy to the calls recorded since a time. Rejects if `signal` is aborted. */
  replay(policy: ReplayedPolicy, options: AuditReplayOptions): ReturnType<ThreadMethods['replay']>
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

const unavailable =
  'PostgreSQL, where this search began, cannot be reached. Try again later, or start a new search to see only the records on this replica.'

export function createAuditQueries({ folder, marks, flushed, archive, clock }: AuditQueriesOptions): AuditQueries {
  // Search even if some records could not be written; that failure is reported elsewhere.
  const prepare = () => flushed().catch(() => {})
  const replays = new Map<number, AuditReplayOptions['progress']>()
  const methods = { progress: (id: number, done: ReplayProgress) => replays.get(id)?.(done) }
  const thread = createThreadClient({ name: 'audit', methods, prepare, failure, clock })
  let lastReplay = 0

  const replayHere: AuditQueries['replay'] = async (policy, { since, maxRecords, signal, progress }) => {
    const id = ++lastReplay
    replays.set(id, progress)
    signal.addEventListener('abort', () => thread.notify('cancel', id), { once: true })
    return thread.request('replay', id, { ...policy, folder, since, maxRecords }).finally(() => void replays.delete(id))
  }

  return {
    async search(query) {
      if (archive) await prepare()
      const sources = {
        archive: archive && ((page: AuditPageQuery) => archive.ask(({ search }) => search(page))),
        local: (page: AuditPageQuery) => thread.request('query', folder, page),
        unavailable: () => unavailable,
      }
      const { rows, next, source } = await searchAudit(sources, query)
      const page = { rows: rows as unknown as AuditPage['rows'], nextCursor: next, source }
      if (!archive || source !== 'postgres') return page
      const { behindRecords, behindSeconds } = archive.status()
      return { ...page, behind: { records: behindRecords ?? null, seconds: behindSeconds } }
    },
    recordsOf: (call) => thread.request('records', folder, call),
    unended: (killed) => thread.request('unended', folder, killed),
    verify: (key) => thread.request('verify', { folder, key, marks }),
    async replay(policy, options) {
      const { status, ask } = archive ?? {}
      if (!ask || !status?.().up) return replayHere(policy, options)
      const { since, maxRecords, ...control } = options
      await prepare()
      const arrivals: Archive['arrivals'] = async (query) => {
        control.signal.throwIfAborted()
        const page = await ask((from) => from.arrivals(query))
        if (page) return page
        throw new ToolwayError('SERVER_UNAVAILABLE', 'PostgreSQL cannot be reached: try again later.')
      }
      return replayRecords(recordsInArchive({ arrivals }, { since }), policy, { maxRecords, ...control })
    },
    [Symbol.asyncDispose]: () => thread[Symbol.asyncDispose](),
  }
}

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

/** The inbox item after an unclean end: when it was, and which calls have no outcome. */
export function uncleanEnd({ audit, log }: Pick<AdminContext, 'audit' | 'log'>, queries: AuditQueries): InboxSource {
  const { killed } = audit.status()
  let asked = false
  let items: readonly InboxEntry[] = []
  const ask = async (found: KilledProcess) => {
    const calls = await queries.unended(found).catch((cause: unknown) => {
      log.warn({ err: cause }, 'cannot read which calls have no outcome')
      return []
    })
    items = [uncleanEndItem(found, calls)]
  }
  return {
    items() {
      if (killed && !asked) void ask(killed)
      asked = true
      return items
    },
  }
}

const maxNamed = 10

function uncleanEndItem({ time }: KilledProcess, calls: readonly OperationRow[]): InboxEntry {
  const named = calls.slice(0, maxNamed).map(({ time: begun, agent, operation, server, tool, call }) => {
    const target = [server, tool].filter(Boolean).join('.') || operation
    return `${target} by ${agent} at ${begun} (${call})`
  })
  const more = calls.length > maxNamed ? [`${calls.length - maxNamed} or more others`] : []
  const outcome = calls.length === 0 ? 'Every call has an outcome.' : 'Calls without an outcome, which may have run:'
  return {
    id: 'audit:unclean',
    kind: 'audit',
    severity: calls.length > 0 ? 'warning' : 'info',
    title: `Toolway ended without shutting down, at ${time}`,
    detail: `It was killed, or the machine failed. ${outcome} ${[...named, ...more].join('; ')}`.trim(),
    since: Date.parse(time),
    revision: time,
    link: `/audit?to=${encodeURIComponent(new Date(Date.parse(time) + 1_000).toISOString())}`,
    actions: [],
  }
}

/** Formats a problem with its location, such as `1/000000000001.jsonl:7: …`. */
function sentenceOf({ lane, file, line, message }: VerifyProblem): string {
  const place = [lane, file].filter((part) => part !== undefined).join('/')
  return place === '' ? message : `${place}${line === undefined ? '' : `:${line}`}: ${message}`
}
