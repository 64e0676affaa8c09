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

/** The hash chain of one lane. A failed write leaves it unchanged. */
export class RecordChain {
  readonly #options: ChainOptions
  readonly #folder: string
  readonly #timeOf = isoTime()
  #seq: number
  #hash: string
  #segment: Segment | undefined
  #isAbandoned: boolean
  #previous: SegmentRecord['previous']
  #written: ChainEnd
  #held = ''

  constructor(options: ChainOptions) {
    const { seq, hash, segment, needsNewSegment } = options.resumption
    this.#options = options
    this.#folder = join(options.folder, options.lane)
    this.#seq = seq
    this.#hash = hash
    this.#written = { seq, hash }
    this.#isAbandoned = segment !== undefined && needsNewSegment
    this.#previous = segment && endOf(segment)
    if (segment && !needsNewSegment) {
      this.#segment = openSegment(options.files, this.#folder, segment)
      options.opened(this.#segment)
    }
  }

  get seq(): number {
    return this.#seq
  }

  /** The last record in the file. Held records come after it. */
  get written(): ChainEnd {
    return this.#written
  }

  /**
   * Appends a record and returns its number. Rethrows file system errors. A held record is written together with the
   * next record that is not held, or by `write`, because one large write is cheaper than many.
   */
  append(body: RecordBody, later?: 'held'): number {
    const now = this.#options.clock.now()
    const segment = this.#current(now)
    const text = body(this.#next(now))
    return later ? this.#hold(text) : this.#put(segment, text)
  }

  appendControl(fields: ControlFields): number {
    const now = this.#options.clock.now()
    return this.#putControl(this.#current(now), fields, now)
  }

  /** Writes the held records. If that throws, they are lost. */
  write(): void {
    if (this.#segment && this.#held !== '') this.#writeTo(this.#segment, this.#seq - this.#written.seq)
  }

  abandon(): void {
    if (!this.#segment) return
    this.#drop(this.#seq - this.#written.seq)
    this.#retire(this.#segment)
    this.#isAbandoned = true
  }

  /** Starts a new segment if the current one is old and not empty, even if there is no record to write. */
  rotateIfOld(): void {
    if (this.#segment && this.#seq > firstSeqOf(this.#segment.file)) this.#current(this.#options.clock.now())
  }

  #next(now: number): RecordPosition {
    return { time: this.#timeOf(now), seq: this.#seq + 1, prev: this.#hash }
  }

  #hold(body: string): number {
    const { line, hash } = sealLine(body)
    this.#held += line
    this.#hash = hash
    return ++this.#seq
  }

  /** Rolls back to the last written record and reports held records as lost. */
  #drop(promised: number): void {
    this.#held = ''
    this.#seq = this.#written.seq
    this.#hash = this.#written.hash
    if (promised > 0) this.#options.lost(promised)
  }

  #writeTo(segment: Segment, promised: number): void {
    try {
      appendLine(this.#options.files, segment, this.#held)
    } catch (error) {
      this.#drop(promised)
      throw error
    }
    this.#held = ''
    this.#written = { seq: this.#seq, hash: this.#hash }
  }

  #put(segment: Segment, body: string): number {
    const promised = this.#seq - this.#written.seq
    const seq = this.#hold(body)
    this.#writeTo(segment, promised)
    return seq
  }

  #putControl(segment: Segment, fields: object, now: number): number {
    const { lane, signer } = this.#options
    const record = { ...fields, ...this.#next(now), lane, key: signer.id }
    return this.#put(segment, canonical({ ...record, signature: signer.sign(record) }))
  }

  #retire(segment: Segment): void {
    this.#previous = endOf(segment)
    segment.done = true
    this.#segment = undefined
  }

  #current(now: number): Segment {
    const { segmentBytes, segmentMs } = this.#options
    if (this.#segment?.spoiled) this.abandon()
    const segment = this.#segment
    if (!segment) return this.#begin(this.#isAbandoned ? 'abandoned' : 'first', now)
    if (segment.bytes + this.#held.length >= segmentBytes) return this.#begin('size', now)
    return isOld(segment.openedMs, now, segmentMs) ? this.#begin('age', now) : segment
  }

  /** Starts a new segment. Creates it with its first record before retiring the old one. */
  #begin(reason: SegmentRecord['reason'], now: number): Segment {
    const { files, opened } = this.#options
    this.write()
    const old = this.#segment
    const fresh = openSegment(files, this.#folder, { file: segmentFileName(this.#seq + 1), openedMs: now })
    try {
      this.#putControl(fresh, { operation: 'segment', reason, previous: old ? endOf(old) : this.#previous }, now)
    } catch (error) {
      files.closeSync(fresh.fd)
      files.unlinkSync(fresh.path)
      throw error
    }
    if (old) this.#retire(old)
    this.#isAbandoned = false
    this.#segment = fresh
    opened(fresh)
    return fresh
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
