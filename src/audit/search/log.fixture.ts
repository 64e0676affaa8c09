import { createHash } from 'node:crypto'
import { appendFileSync, mkdirSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AuditBegin, AuditEnd } from '../../core/audit.ts'
import { segmentFileName } from '../log-files.ts'

export interface Written extends Partial<Omit<AuditBegin & AuditEnd, 'call' | 'arguments'>> {
  readonly call: string
  readonly lane?: string
  /** When it began, in milliseconds since the epoch. */
  readonly at?: number
  readonly arguments?: unknown
  /** Only the record of the beginning. */
  readonly open?: boolean
}

export const start = Date.parse('2026-03-01T12:00:00Z')

/** A folder with a log in it that a test writes record by record. */
export async function logFolder() {
  const made = await mkdtempDisposable(join(tmpdir(), 'toolway-audit-'))
  const folder = join(made.path, 'audit')
  const lanes = new Map<string, { seq: number; file: string; prev: string }>()

  /** What is to be written to each file, while writing is held back. */
  let held: Map<string, string> | undefined

  const laneOf = (name: string) => {
    const known = lanes.get(name)
    if (known) return known
    mkdirSync(join(folder, name), { recursive: true })
    const lane = { seq: 0, file: segmentFileName(1), prev: '0'.repeat(64) }
    lanes.set(name, lane)
    return lane
  }

  /** Any record, in the form of the log. */
  const put = (fields: object, at: number, name = '1') => {
    const lane = laneOf(name)
    const record = { ...fields, time: new Date(at).toISOString(), seq: ++lane.seq, prev: lane.prev }
    const hash = createHash('sha256').update(JSON.stringify(record)).digest('hex')
    lane.prev = hash
    const line = `${JSON.stringify({ ...record, hash })}\n`
    const file = join(folder, name, lane.file)
    if (held) held.set(file, (held.get(file) ?? '') + line)
    else appendFileSync(file, line)
  }

  return {
    folder,
    put,
    /** Writes thousands of records at once, which takes a fraction of the time. */
    atOnce: (write: () => void) => {
      held = new Map()
      write()
      for (const [file, lines] of held) appendFileSync(file, lines)
      held = undefined
    },
    /** An operation: its two records, or only the first. */
    write: ({ lane = '1', at = start, open = false, ...given }: Written) => {
      const { arguments: args, decision, reason, rule, code, is_error, latency_ms = 5, ...rest } = given
      const subject = { agent: 'dev', principal: 'local', operation: 'call_tool', write: false, ...rest }
      put({ ...subject, phase: 'before', ...(args !== undefined && { arguments: args }) }, at, lane)
      if (open) return
      const end = { decision: decision ?? 'ALLOW', is_error: is_error ?? false, latency_ms }
      const why = { ...(reason && { reason }), ...(rule && { rule }), ...(code && { code }) }
      put({ ...subject, phase: 'after', ...end, ...why }, at + latency_ms, lane)
    },
    /** Starts a new segment and returns its name. */
    rotate: (name = '1') => {
      const lane = laneOf(name)
      lane.file = segmentFileName(lane.seq + 1)
      return lane.file
    },
    path: (lane = '1') => join(folder, lane, laneOf(lane).file),
    [Symbol.asyncDispose]: () => made[Symbol.asyncDispose](),
  }
}
