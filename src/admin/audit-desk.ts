import { Worker } from 'node:worker_threads'
import type { Clock } from '../core/clock.ts'
import { type ErrorCode, errorKinds, ToolwayError } from '../core/errors.ts'
import { moduleFile } from '../runtime/package-paths.ts'
import type { AuditPage, CallDetail } from '../serve/admin/contract.ts'
import type { AuditQuery } from '../telemetry/audit-search/search.ts'
import { type AuditArchive, askArchive } from './audit-archive.ts'
import type { AuditAnswer, AuditTask, AuditWork } from './audit-work.ts'

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
    const started = new Worker(moduleFile('admin/audit-worker'), { execArgv: [], name: 'audit' })
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
