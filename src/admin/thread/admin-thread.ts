import { parentPort } from 'node:worker_threads'
import { listLanes, type StoredRecord } from '../../audit/log-files.ts'
import type { AuditPageQuery } from '../../audit/reader.ts'
import { openCurrentSearch, searchLog } from '../../audit/search/search.ts'
import { verifyAudit } from '../../audit/verify/verify.ts'
import type { KilledProcess } from '../../audit/write/recover.ts'
import { systemClock } from '../../core/clock.ts'
import type { ToolwayError } from '../../core/errors.ts'
import { createPortRpc } from '../../lib/port-rpc.ts'
import type { ReplayedPolicy, ReplayProgress } from '../../runtime/policy-replay.ts'
import type { ProposalRequest } from '../config/propose-edit.ts'
import type { AuditRow, CallDetail } from '../contract.ts'

// The thread for work of the admin API that is CPU-bound and would delay calls.

export type ThreadMethods = typeof threadMethods

export type ThreadOwnerMethods = { progress?(replay: number, done: ReplayProgress): void }

export interface ThreadError {
  readonly name: string
  readonly code?: string
  readonly message: string
}

const maxChainProblems = 100
const maxUnended = 1_000
/** A start of each process; each lane has its own. */
const maxStarts = 1_000

export interface ReplayInput extends ReplayedPolicy {
  readonly folder: string
  readonly since: number
  readonly maxRecords?: number | undefined
}

const replays = new Map<number, AbortController>()

const threadMethods = {
  query: (folder: string, query: AuditPageQuery) => searchLog(folder, query),
  async records(folder: string, call: string): Promise<CallDetail['audit']> {
    if (listLanes(folder).length === 0) return { begin: null, end: null }
    using search = await openCurrentSearch(folder)
    const records = [...search.records({ call, order: 'oldest', limit: 10 })].map(({ record }) => record)
    const inPhase = (phase: string) => (records.find((record) => record.phase === phase) ?? null) as AuditRow | null
    return { begin: inPhase('before'), end: inPhase('after') }
  },
  /** The operations that a killed process had begun, newest first. */
  async unended(folder: string, { lane, seq, time }: KilledProcess) {
    using search = await openCurrentSearch(folder)
    const until = Date.parse(time) + 1
    const isItsStart = ({ record, ...place }: StoredRecord) => place.lane === lane && record.seq < seq
    const start = [...search.records({ operation: 'start', until, limit: maxStarts })].find(isItsStart)
    const since = start && Date.parse(start.record.time)
    const rows = search.query({ open: true, until, ...(since !== undefined && { since }), limit: maxUnended })
    return [...rows].filter((row) => row.lane === lane)
  },
  async verify(options: Pick<Parameters<typeof verifyAudit>[0], 'folder' | 'key' | 'marks'>) {
    const { ok, records, problems, problemCount } = await verifyAudit(options)
    return { ok, records, problems: problems.slice(0, maxChainProblems), problemCount }
  },
  async replay(id: number, { folder, since, maxRecords, ...policy }: ReplayInput) {
    // Only here: it imports the policy, for which the thread would load the whole gateway.
    const { recordsInFolder, replayRecords } = await import('../../runtime/policy-replay.ts')
    const controller = new AbortController()
    replays.set(id, controller)
    const control = {
      signal: controller.signal,
      progress: (done: ReplayProgress) => owner?.notify('progress', id, done),
    }
    try {
      return await replayRecords(recordsInFolder(folder, { since }), policy, { maxRecords, ...control })
    } finally {
      replays.delete(id)
    }
  },
  cancel: (id: number) => replays.get(id)?.abort(),
  propose: async (request: ProposalRequest) => (await import('../config/propose-edit.ts')).proposeEdit(request),
}

const port = parentPort
const owner =
  port &&
  createPortRpc<Required<ThreadOwnerMethods>>({
    port: { send: (message) => port.postMessage(message), onMessage: (listener) => void port.on('message', listener) },
    methods: threadMethods,
    clock: systemClock,
    errors: {
      encode(thrown): ThreadError {
        const { name, message, code } = thrown as ToolwayError
        return { name, message, code }
      },
      decode: () => new Error(),
    },
  })
