import { readAllArrivals } from '../audit/archive/arrivals.ts'
import { readRecords } from '../audit/log-files.ts'
import { type AuditRecord, parseRecord } from '../audit/record.ts'
import type { Archive, AuditFilter } from '../core/audit-archive.ts'
import { Policy, type PolicyOptions } from '../policy/decide.ts'
import { createReplay, type Replayed } from '../policy/replay.ts'

/** A proposed policy. It contains no functions, so that it can be sent to a worker thread. */
export interface ReplayedPolicy {
  readonly config: PolicyOptions['config']
  /** Whether the servers are part of the proposal. If not, no entry counts as gone. */
  readonly serversProposed: boolean
}

export interface ReplayProgress {
  readonly records: number
}

interface ReplayRecordsOptions {
  /** The number of records after which the replay ends early. */
  readonly maxRecords?: number
  readonly signal: AbortSignal
  progress(done: ReplayProgress): void
}

/** How many records are read between two reports of progress. */
const reportEvery = 10_000

/** Applies a proposed policy to recorded calls. `complete` is false if there are more records than allowed. */
export async function replayRecords(
  records: AsyncIterable<AuditRecord>,
  { config, serversProposed }: ReplayedPolicy,
  { maxRecords = Number.POSITIVE_INFINITY, signal, progress }: ReplayRecordsOptions,
): Promise<Replayed & { readonly complete: boolean }> {
  const replay = createReplay({ policy: new Policy({ config }), servers: config.mcpServers, serversProposed })
  let seen = 0
  for await (const record of records) {
    if (seen === maxRecords) return { ...replay.result(), complete: false }
    if (++seen % reportEvery === 0) {
      signal.throwIfAborted()
      progress({ records: seen })
    }
    if (record.phase === 'after') replay.add(record)
  }
  return { ...replay.result(), complete: true }
}

/** The records of a time range in a log on disk. */
export async function* recordsInFolder(folder: string, { since, until }: AuditFilter): AsyncGenerator<AuditRecord> {
  for await (const { record } of readRecords(folder)) {
    const time = Date.parse(record.time)
    if (time >= (since ?? Number.NEGATIVE_INFINITY) && time < (until ?? Number.POSITIVE_INFINITY)) yield record
  }
}

/** The records of a time range in PostgreSQL. They are read page by page, so calls are served in between. */
export async function* recordsInArchive(
  archive: Pick<Archive, 'arrivals'>,
  filter: AuditFilter,
): AsyncGenerator<AuditRecord> {
  for await (const arrived of readAllArrivals(archive, filter)) {
    for (const { line } of arrived) {
      const record = parseRecord(line)
      if (record) yield record
    }
  }
}
