import { join } from 'node:path'
import type { Clock } from '../../core/clock.ts'
import type { Body, Place } from './body.ts'
import { canonical } from './canonical.ts'
import type { Files } from './files.ts'
import type { Signer } from './keys.ts'
import { firstSeqOf, segmentFile } from './layout.ts'
import type { Link, OwnRecord, SegmentRecord } from './record.ts'
import type { Resumption } from './recover.ts'
import { sealLine } from './seal-line.ts'
import { appendLine, openSegment, type Segment } from './segment.ts'

/** Left out one by one, so that a union stays one. */
type Without<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never
/** What the log says about itself, before it is signed and has its place in the chain. */
export type OwnFields = Without<OwnRecord, keyof Link | 'lane' | 'key' | 'signature' | 'phase'>

export interface ChainOptions {
  readonly folder: string
  readonly lane: string
  readonly resumption: Resumption
  readonly signer: Signer
  readonly files: Files
  readonly clock: Clock
  readonly segmentBytes: number
  /** A segment that has been open for longer than this gets no more records. */
  readonly segmentMs: number
  /** A segment was begun. */
  opened(segment: Segment): void
}

/** One lane's chain of records. Nothing of it changes where a record could not be written. */
export interface Chain {
  readonly seq: number
  readonly hash: string
  readonly segment: Segment | undefined
  /** Appends a record and returns its number; throws what the file system threw. */
  append(body: Body): number
  appendOwn(fields: OwnFields): number
  /** Nothing more goes into the segment of now. */
  abandon(): void
  /** Begins a new segment if the one of now is old and holds anything, though nothing is to be recorded. */
  rotateIfOld(): void
}

const dayMs = 24 * 60 * 60 * 1000

export function createChain(options: ChainOptions): Chain {
  const { lane, resumption, signer, files, clock } = options
  const folder = join(options.folder, lane)
  let { seq, hash } = resumption
  let segment: Segment | undefined
  let abandoned = resumption.segment !== undefined && resumption.anew
  let previous: SegmentRecord['previous'] = resumption.segment && {
    file: resumption.segment.file,
    bytes: resumption.segment.bytes,
  }

  const next = (): Place => ({ time: new Date(clock.now()).toISOString(), seq: seq + 1, prev: hash })

  const put = (target: Segment, body: string) => {
    const sealed = sealLine(body)
    appendLine(files, target, sealed.line)
    seq++
    hash = sealed.hash
    return seq
  }

  const putOwn = (target: Segment, fields: object) => {
    const record = { ...fields, ...next(), lane, key: signer.id }
    return put(target, canonical({ ...record, signature: signer.sign(record) }))
  }

  const retire = (old: Segment) => {
    previous = { file: old.file, bytes: old.bytes }
    old.done = true
    segment = undefined
  }

  /** The new segment is there, with its first record, before the old one is left. */
  const begin = (reason: SegmentRecord['reason']): Segment => {
    const fresh = openSegment(files, folder, { file: segmentFile(seq + 1), openedMs: clock.now() })
    const before = segment ? { file: segment.file, bytes: segment.bytes } : previous
    try {
      putOwn(fresh, { operation: 'segment', reason, ...(before && { previous: before }) })
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
    if (segment.bytes >= options.segmentBytes) return begin('size')
    if (isOld(segment.openedMs, clock.now(), options.segmentMs)) return begin('age')
    return segment
  }

  const abandon = () => {
    if (!segment) return
    retire(segment)
    abandoned = true
  }

  if (resumption.segment && !resumption.anew) {
    segment = openSegment(files, folder, resumption.segment)
    options.opened(segment)
  }

  return {
    get seq() {
      return seq
    },
    get hash() {
      return hash
    },
    get segment() {
      return segment
    },
    append: (body) => {
      const target = current()
      return put(target, body(next()))
    },
    appendOwn: (fields) => putOwn(current(), fields),
    abandon,
    rotateIfOld: () => {
      if (segment && seq > firstSeqOf(segment.file)) current()
    },
  }
}

/** Segments end with the day (UTC), or sooner where records are kept for a short time only. */
const isOld = (openedMs: number, nowMs: number, mostMs: number): boolean =>
  Math.floor(nowMs / dayMs) > Math.floor(openedMs / dayMs) || nowMs - openedMs >= mostMs
