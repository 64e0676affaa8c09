import { type AuditPageQuery, searchAudit } from '../../audit/reader.ts'
import type { OperationRow } from '../../audit/search/index-file.ts'
import type { VerifyProblem } from '../../audit/verify/chain-check.ts'
import type { KilledProcess } from '../../audit/write/recover.ts'
import type { Archive } from '../../core/audit-archive.ts'
import { archiveCsvHeading, archiveCsvLine, csvHeading, csvLine, jsonLine } from '../../core/audit-export.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import {
  type ReplayedPolicy,
  type ReplayProgress,
  recordsInArchive,
  replayRecords,
} from '../../runtime/policy-replay.ts'
import { dropWhenStalled } from '../../serve/http/sse-stream.ts'
import { afterDrain } from '../../serve/openai/chat.ts'
import type { PostgresAudit } from '../../stores/postgres/audit.ts'
import * as schema from '../calls/schema.ts'
import type { AdminContext } from '../context.ts'
import type { AuditListQuery, AuditPage, CallDetail, ChainView } from '../contract.ts'
import type { InboxEntry, InboxSource } from '../inbox/inbox.ts'
import { adminRoute, type Route, responseSent } from '../router.ts'
import type { ThreadMethods } from '../thread/admin-thread.ts'
import { createThreadClient } from '../thread/thread-client.ts'

type AuditReplayOptions = Parameters<typeof replayRecords>[2] & {
  /** In milliseconds since the epoch. */
  readonly since: number
}

interface AuditQueriesOptions {
  readonly folder: string
  /** The folder that contains the audit log's high-water marks. */
  readonly marks?: string
  /** Resolves when all records written so far are on disk. */
  flushed(): Promise<void>
  readonly archive?: Pick<PostgresAudit, 'ask' | 'status'> | undefined
  readonly clock: Clock
}

/** Searches and verifies the audit log in a worker thread. Searches use the archive while it is reachable. */
export class AuditQueries implements AsyncDisposable {
  readonly #options: AuditQueriesOptions
  readonly #thread: ReturnType<typeof createThreadClient>
  readonly #replays = new Map<number, AuditReplayOptions['progress']>()
  #lastReplay = 0

  constructor(options: AuditQueriesOptions) {
    this.#options = options
    const methods = { progress: (id: number, done: ReplayProgress) => this.#replays.get(id)?.(done) }
    const prepare = () => this.#flushed()
    this.#thread = createThreadClient({ name: 'audit', methods, prepare, failure: unreadableLog, clock: options.clock })
  }

  async search(query: AuditPageQuery): Promise<AuditPage> {
    const { folder, archive } = this.#options
    if (archive) await this.#flushed()
    const sources = {
      archive: archive && ((page: AuditPageQuery) => archive.ask(({ search }) => search(page))),
      local: (page: AuditPageQuery) => this.#thread.request('query', folder, page),
      unavailable: () => archiveUnreachable,
    }
    const { rows, next, source } = await searchAudit(sources, query)
    const page = { rows: rows as unknown as AuditPage['rows'], nextCursor: next, source }
    if (!archive || source !== 'postgres') return page
    const { behindRecords, behindSeconds } = archive.status()
    return { ...page, behind: { records: behindRecords ?? null, seconds: behindSeconds } }
  }

  recordsOf(call: string): Promise<CallDetail['audit']> {
    return this.#thread.request('records', this.#options.folder, call)
  }

  unended(killed: KilledProcess): Promise<readonly OperationRow[]> {
    return this.#thread.request('unended', this.#options.folder, killed)
  }

  verify(key: string): ReturnType<ThreadMethods['verify']> {
    const { folder, marks } = this.#options
    return this.#thread.request('verify', { folder, key, marks })
  }

  /** Applies a policy to recorded calls. Rejects if `signal` is aborted. */
  async replay(policy: ReplayedPolicy, options: AuditReplayOptions): ReturnType<ThreadMethods['replay']> {
    const { archive } = this.#options
    if (!archive?.status().up) return this.#replayHere(policy, options)
    const { since, ...control } = options
    await this.#flushed()
    const arrivals: Archive['arrivals'] = async (query) => {
      control.signal.throwIfAborted()
      const page = await archive.ask((from) => from.arrivals(query))
      if (page) return page
      throw new ToolwayError('SERVER_UNAVAILABLE', 'PostgreSQL cannot be reached: try again later.')
    }
    return replayRecords(recordsInArchive({ arrivals }, { since }), policy, control)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#thread[Symbol.asyncDispose]()
  }

  /** Search even if some records could not be written; that failure is reported elsewhere. */
  #flushed(): Promise<void> {
    return this.#options.flushed().catch(() => {})
  }

  async #replayHere(policy: ReplayedPolicy, { since, maxRecords, signal, progress }: AuditReplayOptions) {
    const id = ++this.#lastReplay
    this.#replays.set(id, progress)
    signal.addEventListener('abort', () => this.#thread.notify('cancel', id), { once: true })
    const { folder } = this.#options
    return this.#thread
      .request('replay', id, { ...policy, folder, since, maxRecords })
      .finally(() => void this.#replays.delete(id))
  }
}

const archiveUnreachable =
  'PostgreSQL, where this search began, cannot be reached. Try again later, or start a new search to see only the records on this replica.'

const unreadableLog = (cause: Error) =>
  new ToolwayError('INTERNAL', "The audit log could not be read. See the gateway's log for the cause.", { cause })

const firstCheckMs = 60_000
/** How long a result is reused if no check is requested. */
const chainRecheckMs = 600_000
/** The time until the next check, as a multiple of what the last one took: a long log is checked less often. */
const recheckFactor = 50

/** Checks of the whole audit log, one at a time. */
export class ChainVerification {
  readonly #queries: Pick<AuditQueries, 'verify'>
  readonly #context: Pick<AdminContext, 'auditKey' | 'clock' | 'log'>
  #verified: ChainView = { state: 'unknown', checkedAt: null, records: null, problems: [] }
  #checking = false
  #dueAt: number

  constructor(queries: Pick<AuditQueries, 'verify'>, context: Pick<AdminContext, 'auditKey' | 'clock' | 'log'>) {
    this.#queries = queries
    this.#context = context
    this.#dueAt = context.clock.monotonic() + firstCheckMs
  }

  /** The result of the last check that ended. Starts another one if that was long ago. */
  verified(): ChainView {
    if (this.#context.clock.monotonic() >= this.#dueAt) this.verifyChain()
    return this.#verified
  }

  chain(): ChainView {
    return this.#checking ? { ...this.#verified, state: 'checking' } : this.#verified
  }

  /** Starts a check of the audit log, unless one is running. */
  verifyChain(): ChainView {
    if (!this.#checking) void this.#check()
    return this.chain()
  }

  async #check(): Promise<void> {
    const { auditKey, clock, log } = this.#context
    this.#checking = true
    const begin = clock.monotonic()
    try {
      const { ok, records, problems, problemCount } = await this.#queries.verify(await auditKey())
      const more = problemCount - problems.length
      const sentences = [...problems.map(problemSentence), ...(more > 0 ? [`and ${more} more`] : [])]
      this.#verified = { state: ok ? 'intact' : 'broken', checkedAt: clock.now(), records, problems: sentences }
    } catch (cause) {
      log.error({ err: cause }, 'audit log could not be verified')
      const problems = ["The audit log could not be verified. See the gateway's log for the cause."]
      this.#verified = { ...this.#verified, problems }
    }
    this.#checking = false
    const end = clock.monotonic()
    this.#dueAt = end + Math.max(chainRecheckMs, recheckFactor * (end - begin))
  }
}

export type AuditService = ReturnType<typeof createAuditAdmin>

export const createAuditAdmin = (queries: AuditQueries, verification: ChainVerification) => ({
  audit: (query: AuditListQuery): Promise<AuditPage> => queries.search(pageQueryOf(query)),
  chain: (): ChainView => verification.chain(),
  verifyChain: (): ChainView => verification.verifyChain(),
})

/** Converts the API's parameters to search parameters. Undefined ones are dropped. */
function pageQueryOf({ from, to, cursor, decision, limit, ...query }: AuditListQuery): AuditPageQuery {
  const wanted = { ...query, since: from, until: to, before: cursor, decision: decision?.toUpperCase() }
  return { ...Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined)), limit }
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
  let items: readonly InboxEntry[] | undefined
  const ask = async (found: KilledProcess) => {
    const calls = await queries.unended(found).catch((cause: unknown) => {
      log.warn({ err: cause }, 'cannot read which calls have no outcome')
      return []
    })
    items = [uncleanEndItem(found, calls)]
  }
  return {
    items() {
      if (killed && !items) void ask(killed)
      items ??= []
      return items
    },
  }
}

const maxNamedCalls = 10

function uncleanEndItem({ time }: KilledProcess, calls: readonly OperationRow[]): InboxEntry {
  const named = calls.slice(0, maxNamedCalls).map(({ time: begun, agent, operation, server, tool, call }) => {
    const target = [server, tool].filter(Boolean).join('.') || operation
    return `${target} by ${agent} at ${begun} (${call})`
  })
  const more = calls.length > maxNamedCalls ? [`${calls.length - maxNamedCalls} or more others`] : []
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
  }
}

/** Formats a problem with its location, such as `1/000000000001.jsonl:7: …`. */
function problemSentence({ lane, file, line, message }: VerifyProblem): string {
  const place = [lane, file].filter((part) => part !== undefined).join('/')
  return place === '' ? message : `${place}${line === undefined ? '' : `:${line}`}: ${message}`
}

const mediaTypes = { jsonl: 'application/jsonl', csv: 'text/csv' } as const

const exportPage = 200

export const auditRoutes = (admin: AuditService): readonly Route[] => [
  adminRoute('GET', 'audit', 'Operations in the audit log, newest first', {
    query: schema.auditListQuery,
    answer: schema.auditPage,
    run: ({ query }) => admin.audit(query),
  }),
  adminRoute('GET', 'audit/export', 'The operations in the audit log as a file, newest first', {
    query: schema.auditExportQuery,
    stream: true,
    mediaTypes: Object.values(mediaTypes),
    async run({ user, query: { format, ...filter }, response }, { watch }) {
      watch(user, response)
      for await (const block of exportLines(admin, filter, format)) {
        if (response.destroyed) return responseSent
        if (!response.headersSent) {
          response.writeHead(200, {
            'Content-Type': `${mediaTypes[format]}; charset=utf-8`,
            'Content-Disposition': `attachment; filename="toolway-audit.${format}"`,
          })
          dropWhenStalled(response)
        }
        response.write(block)
        await afterDrain(response)
      }
      response.end()
      return responseSent
    },
  }),
  adminRoute('GET', 'audit/chain', 'Whether the audit log is unchanged, as of the last check', {
    answer: schema.chainView,
    run: () => admin.chain(),
  }),
  adminRoute(
    'POST',
    'audit/chain/verify',
    'Starts a check of the whole audit log; GET audit/chain returns the outcome',
    {
      answer: schema.chainView,
      run: () => admin.verifyChain(),
    },
  ),
]

/** The lines of an export, a page at a time. The first block is the heading, which is empty in JSON Lines. */
async function* exportLines(
  admin: Pick<AuditService, 'audit'>,
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
