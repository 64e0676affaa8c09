import { join } from 'node:path'
import type { ChainEnd } from '../../core/audit-archive.ts'
import type { Clock } from '../../core/clock.ts'
import { canonical } from '../../json/canonical-json.ts'
import { dayMs } from '../../lib/duration.ts'
import { firstSeqOf, segmentFileName } from '../log-files.ts'
import {
  type ChainedRecord,
  type ControlRecord,
  type RecordBody,
  type RecordPosition,
  type SegmentRecord,
  type Signer,
  sealLine,
} from '../record.ts'
import type { RecoveredLane } from './recover.ts'
import { appendLine, type FileSystem, openSegment, type Segment } from './segment-file.ts'

/** `Omit`, applied to each member of a union. */
type Without<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never
/** A control record before it is signed and chained. */
export type ControlFields = Without<ControlRecord, keyof ChainedRecord | 'lane' | 'key' | 'signature' | 'phase'>

export interface ChainOptions {
  readonly folder: string
  readonly lane: string
  readonly resumption: RecoveredLane
  readonly signer: Signer
  readonly files: FileSystem
  readonly clock: Clock
  readonly segmentBytes: number
  readonly segmentMs: number
  opened(segment: Segment): void
  /** Called if held records could not be written and are lost. */
  lost(records: number): void
}

export type RecordChain = ReturnType<typeof createChain>

/** The hash chain of one lane. A failed write leaves it unchanged. */
export function createChain(options: ChainOptions) {
  const { lane, resumption, signer, files, clock } = options
  const folder = join(options.folder, lane)
  let { seq, hash } = resumption
  let segment: Segment | undefined
  let abandoned = resumption.segment !== undefined && resumption.needsNewSegment
  let previous: SegmentRecord['previous'] = resumption.segment && endOf(resumption.segment)
  let written: ChainEnd = { seq, hash }
  let held = ''

  const timeNow = isoTime()
  const next = (): RecordPosition => ({ time: timeNow(clock.now()), seq: seq + 1, prev: hash })

  const hold = (body: string) => {
    const sealed = sealLine(body)
    held += sealed.line
    seq++
    hash = sealed.hash
    return seq
  }

  /** Rolls back to the last written record and reports held records as lost. */
  const drop = (promised: number) => {
    held = ''
    ;({ seq, hash } = written)
    if (promised > 0) options.lost(promised)
  }

  const writeTo = (target: Segment, promised: number) => {
    try {
      appendLine(files, target, held)
    } catch (error) {
      drop(promised)
      throw error
    }
    held = ''
    written = { seq, hash }
  }

  /** Writes the held records. If that throws, they are lost. */
  const write = () => {
    if (segment && held !== '') writeTo(segment, seq - written.seq)
  }

  const put = (target: Segment, body: string) => {
    const promised = seq - written.seq
    const number = hold(body)
    writeTo(target, promised)
    return number
  }

  const putOwn = (target: Segment, fields: object) => {
    const record = { ...fields, ...next(), lane, key: signer.id }
    return put(target, canonical({ ...record, signature: signer.sign(record) }))
  }

  const retire = (old: Segment) => {
    previous = endOf(old)
    old.done = true
    segment = undefined
  }

  /** Starts a new segment. Creates it with its first record before retiring the old one. */
  const begin = (reason: SegmentRecord['reason']): Segment => {
    write()
    const fresh = openSegment(files, folder, { file: segmentFileName(seq + 1), openedMs: clock.now() })
    try {
      putOwn(fresh, { operation: 'segment', reason, previous: segment ? endOf(segment) : previous })
    } catch (error) {
      files.closeSync(fresh.fd)
      files.unlinkSync(fresh.path)
      throw error
    }
    if (segment) retire(segment)
    abandoned = false
    segment = fresh
    options.opened(fresh)
    return fresh
  }

  const current = (): Segment => {
    if (segment?.spoiled) abandon()
    if (!segment) return begin(abandoned ? 'abandoned' : 'first')
    if (segment.bytes + held.length >= options.segmentBytes) return begin('size')
    if (isOld(segment.openedMs, clock.now(), options.segmentMs)) return begin('age')
    return segment
  }

  const abandon = () => {
    if (!segment) return
    drop(seq - written.seq)
    retire(segment)
    abandoned = true
  }

  if (resumption.segment && !resumption.needsNewSegment) {
    segment = openSegment(files, folder, resumption.segment)
    options.opened(segment)
  }

  return {
    get seq() {
      return seq
    },
    /** The last record in the file. Held records come after it. */
    get written() {
      return written
    },
    /**
     * Appends a record and returns its number. Rethrows file system errors. A held record is written together with the
     * next record that is not held, or by `write`, because one large write is cheaper than many.
     */
    append: (body: RecordBody, later?: 'held'): number => {
      const target = current()
      return later ? hold(body(next())) : put(target, body(next()))
    },
    write,
    appendControl: (fields: ControlFields): number => putOwn(current(), fields),
    abandon,
    /** Starts a new segment if the current one is old and not empty, even if there is no record to write. */
    rotateIfOld: (): void => {
      if (segment && seq > firstSeqOf(segment.file)) current()
    },
  }
}

const endOf = ({ file, bytes }: Pick<Segment, 'file' | 'bytes'>) => ({ file, bytes })

/** Creates a function that formats times and caches the part that stays the same for a second. */
function isoTime(): (ms: number) => string {
  let second = Number.NaN
  let text = ''
  return (ms) => {
    const now = Math.floor(ms / 1000)
    if (now !== second) {
      second = now
      text = new Date(now * 1000).toISOString().slice(0, -4)
    }
    return `${text}${String(ms - now * 1000).padStart(3, '0')}Z`
  }
}

/**
 * Whether a segment must end. Segments end with the UTC day, or earlier if the retention time is short. They also end
 * when a wrong clock is corrected, because the age of a file that begins in the future is unknown.
 */
const isOld = (openedMs: number, nowMs: number, maxMs: number): boolean =>
  Math.floor(nowMs / dayMs) !== Math.floor(openedMs / dayMs) || Math.abs(nowMs - openedMs) >= maxMs
