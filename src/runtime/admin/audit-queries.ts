import { Worker } from 'node:worker_threads'
import { archiveRows } from '../../audit/archive/arrivals.ts'
import type { AuditQuery } from '../../audit/search/search.ts'
import type { VerifyProblem } from '../../audit/verify/chain-check.ts'
import type { Clock } from '../../core/clock.ts'
import { type ErrorCode, errorKinds, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { AuditPage, CallDetail, ChainView } from '../../serve/admin/contract.ts'
import type { PostgresAudit } from '../../stores/postgres/audit.ts'
import { isArchiveCursor } from '../../stores/postgres/where.ts'
import { moduleFile } from '../package-paths.ts'
import type { AuditAnswer, AuditTask, AuditWork } from './audit-worker.ts'

/** Where questions about the audit log are answered, without holding up anything else. */
export interface AuditDesk extends AsyncDisposable {
  search(asked: AuditQuery & { readonly limit: number }): Promise<AuditPage>
  recordsOf(call: string): Promise<CallDetail['audit']>
  verify(key: string): Promise<AuditWork['verify']['answer']>
}

export interface AuditDeskOptions {
  /** Where the log is. */
  readonly folder: string
  /** Where its high-water marks are. */
  readonly marks?: string
  /** Settles when all that was recorded up to now can be read. */
  flushed(): Promise<void>
  /** The records of all replicas, where they are kept together. */
  readonly archive?: AuditArchive
  readonly clock: Clock
}

interface Waiting {
  resolve(answer: never): void
  reject(error: Error): void
}

/** A thread that nobody has asked anything for this long gives its memory back. */
const idleMs = 60_000

export function createAuditDesk({ folder, marks, flushed, archive, clock }: AuditDeskOptions): AuditDesk {
  const waiting = new Map<number, Waiting>()
  let worker: Worker | undefined
  let idle: Disposable | undefined
  let questions = 0
  let over = false

  const ended = (gone: Worker, error: Error) => {
    if (worker !== gone) return
    worker = undefined
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
  }

  const start = (): Worker => {
    const started = new Worker(moduleFile('runtime/admin/audit-worker'), { execArgv: [], name: 'audit' })
    started.unref()
    started.on('message', answered)
    started.on('error', (cause) => ended(started, failure(cause)))
    started.on('exit', () => ended(started, failure(new Error('the thread has ended'))))
    return started
  }

  const answered = (message: AuditAnswer) => {
    const asked = waiting.get(message.id)
    waiting.delete(message.id)
    if ('error' in message) asked?.reject(errorOf(message.error))
    else asked?.resolve(message.answer as never)
    if (waiting.size > 0) return
    idle?.[Symbol.dispose]()
    idle = clock.after(idleMs, () => void close())
  }

  const close = async () => {
    const last = worker
    worker = undefined
    idle?.[Symbol.dispose]()
    for (const { reject } of waiting.values()) reject(shuttingDown())
    waiting.clear()
    await last?.terminate()
  }

  const ask = async <Task extends AuditTask>(
    task: Task,
    asked: AuditWork[Task]['asked'],
  ): Promise<AuditWork[Task]['answer']> => {
    // What cannot be written is missing, and the log of the log says so.
    await flushed().catch(() => {})
    if (over) throw shuttingDown()
    idle?.[Symbol.dispose]()
    worker ??= start()
    const id = ++questions
    const { promise, resolve, reject } = Promise.withResolvers<AuditWork[Task]['answer']>()
    waiting.set(id, { resolve, reject })
    worker.postMessage({ id, folder, task, asked })
    return promise
  }

  return {
    async search(asked) {
      if (!archive) return ask('query', asked)
      await flushed().catch(() => {})
      return (await askArchive(archive, asked)) ?? { ...(await ask('query', asked)), source: 'local' }
    },
    recordsOf: (call) => ask('records', { call }),
    verify: (key) => ask('verify', { key, marks }),
    [Symbol.asyncDispose]() {
      over = true
      return close()
    },
  }
}

/** What was wrong with the question is told; what was wrong with the log is for the log of the gateway. */
const errorOf = ({ code, message }: { readonly code?: string; readonly message: string }): Error =>
  code !== undefined && code in errorKinds ? new ToolwayError(code as ErrorCode, message) : failure(new Error(message))

const shuttingDown = () => new ToolwayError('OVERLOADED', 'This gateway is shutting down.')

const failure = (cause: Error) =>
  new ToolwayError('INTERNAL', 'The audit log could not be read; the log of the gateway has the cause.', { cause })

/** The records of all replicas, as far as a search needs them. */
type AuditArchive = Pick<PostgresAudit, 'ask' | 'status'>

/** What the records of all replicas answer; undefined where the local ones have to. A search goes on where it began. */
async function askArchive(
  archive: AuditArchive,
  asked: AuditQuery & { readonly limit: number },
): Promise<AuditPage | undefined> {
  const fromThere = asked.before !== undefined && isArchiveCursor(asked.before)
  if (asked.before !== undefined && !fromThere) return undefined
  const page = await archive.ask(({ search }) => search(asked))
  if (!page) {
    if (fromThere) throw new ToolwayError('AUDIT_UNAVAILABLE', gone, { retryAfterMs: 1_000 })
    return undefined
  }
  const { behindRecords, behindSeconds } = archive.status()
  return {
    rows: archiveRows(page.found) as unknown as AuditPage['rows'],
    nextCursor: page.next,
    source: 'postgres',
    behind: { records: behindRecords ?? null, seconds: behindSeconds },
  }
}

const gone =
  'PostgreSQL, where this search began, cannot be asked now; try again later, or begin anew to see the records of this replica.'

/** Whether the audit log is as it was written, as far as somebody wanted to know. */
interface Chain {
  state(): ChainView
  /** Checks it from its beginning, unless that is under way. */
  verify(): ChainView
}

interface ChainOptions {
  readonly desk: Pick<AuditDesk, 'verify'>
  auditKey(): Promise<string>
  readonly clock: Clock
  readonly log: Log
}

export function createChain({ desk, auditKey, clock, log }: ChainOptions): Chain {
  let view: ChainView = { state: 'unknown', checkedAt: null, records: null, problems: [] }

  const check = async () => {
    const { ok, records, problems, problemCount } = await desk.verify(await auditKey())
    const more = problemCount - problems.length
    const told = [...problems.map(sentenceOf), ...(more > 0 ? [`and ${more} more`] : [])]
    view = { state: ok ? 'intact' : 'broken', checkedAt: clock.now(), records, problems: told }
  }

  return {
    state: () => view,
    verify() {
      if (view.state === 'checking') return view
      const before = view
      view = { ...before, state: 'checking' }
      check().catch((cause) => {
        log.error({ cause }, 'The audit log could not be checked')
        view = { ...before, problems: ['It could not be checked: the log of the gateway says why.'] }
      })
      return view
    },
  }
}

/** `1/000000000001.jsonl:7: …` */
function sentenceOf({ lane, file, line, message }: VerifyProblem): string {
  const place = [lane, file].filter((part) => part !== undefined).join('/')
  return place === '' ? message : `${place}${line === undefined ? '' : `:${line}`}: ${message}`
}
