import { firstSeqOf, type LogLine } from '../log-files.ts'
import {
  type AuditRecord,
  type ControlRecord,
  type GapRecord,
  isEvent,
  parseSealedLine,
  type SegmentRecord,
  type Verifier,
  zeroHash,
} from '../record.ts'
import type { LogHead } from '../write/head.ts'

export interface ChainCheckOptions {
  readonly lane: string
  /** Records that are known to have been on disk. */
  readonly heads: readonly (LogHead | undefined)[]
  readonly verifiers: readonly Verifier[]
  problem(problem: VerifyProblem): void
}

interface RecordPlace {
  readonly seq: number
  readonly time: string
}

export interface ChainFacts {
  readonly records: number
  readonly first: RecordPlace | undefined
  readonly last: RecordPlace | undefined
  /** The last record removed by retention. 0 if none was. */
  readonly removedTo: number
  readonly signatures: number
  readonly unsigned: number
  readonly unproven: number
  /** The number of outages that the log itself reports. */
  readonly outages: number
  /** A partial line that a killed process left, or that is being written now. */
  readonly torn: { readonly file: string; readonly bytes: number } | undefined
  /** All lanes that are named in start records. */
  readonly lanes: ReadonlySet<string>
}

/** Checks the records of one lane, line by line. */
export class ChainCheck {
  readonly #options: ChainCheckOptions
  #file = ''
  #number = 0
  /** The previous file. `fragment` is the number of bytes after its last newline. */
  #before: { readonly file: string; readonly bytes: number; readonly fragment: number } | undefined
  #bytes = 0
  #fragment = 0
  #expected: { readonly seq: number; readonly prev: string | undefined } | undefined
  #isFinal = false
  #isUnreadable = false
  readonly #found = {
    records: 0,
    first: undefined as RecordPlace | undefined,
    last: undefined as RecordPlace | undefined,
    removedTo: 0,
    signatures: 0,
    unsigned: 0,
    unproven: 0,
    outages: 0,
    lanes: new Set<string>(),
  }

  constructor(options: ChainCheckOptions) {
    this.#options = options
  }

  /** Starts the next file. Not called for records from an archive, for which the file checks are skipped. */
  file(name: string): void {
    if (this.#file !== '') this.#before = { file: this.#file, bytes: this.#bytes, fragment: this.#fragment }
    this.#file = name
    this.#number = 0
    this.#bytes = 0
    this.#fragment = 0
  }

  line(line: LogLine): void {
    this.#number++
    this.#bytes = line.offset + line.bytes.length + (line.whole ? 1 : 0)
    if (!line.whole) {
      this.#fragment = line.bytes.length
      return
    }
    const parsed = parseSealedLine(line.bytes)
    if (!parsed.record) {
      // Report consecutive unreadable lines as one problem, so that junk does not hide other problems.
      if (!this.#isUnreadable) this.#problem('unreadable', 'not a valid record')
      this.#isUnreadable = true
      if (this.#expected) this.#expected = { seq: this.#expected.seq + 1, prev: undefined }
      return
    }
    this.#isUnreadable = false
    if (!parsed.ok) {
      const [kind, words] = lineProblems[parsed.wrong]
      this.#problem(kind, `record ${parsed.record.seq} ${words}`, parsed.record.seq)
    }
    this.#record(parsed.record)
  }

  end(): ChainFacts {
    const torn = this.#fragment > 0 ? { file: this.#file, bytes: this.#fragment } : undefined
    return { ...this.#found, torn }
  }

  #problem(kind: ProblemKind, message: string, seq?: number): void {
    const at = this.#file === '' ? {} : { file: this.#file, line: this.#number }
    this.#options.problem({ kind, lane: this.#options.lane, ...at, seq, message })
  }

  #record(record: AuditRecord): void {
    this.#found.records++
    this.#checkPlace(record)
    const isSigned = isEvent(record) ? this.#checkEvent(record) : this.#readControl(record)
    if (this.#options.heads.some((head) => head?.seq === record.seq && head.hash !== record.hash)) {
      this.#problem('changed', `record ${record.seq} was replaced: \`head\` has a different hash`, record.seq)
    }
    if (this.#number === 1 && this.#file !== '') this.#checkOpening(record, isSigned)
  }

  #checkEvent({ seq }: AuditRecord): false {
    this.#found.unsigned++
    if (this.#isFinal) this.#problem('order', `record ${seq} was added after the process closed its log`, seq)
    return false
  }

  #checkPlace({ seq, prev, hash, time }: AuditRecord): void {
    const expected = this.#expected
    if (!expected) {
      this.#found.first = { seq, time }
      if (seq === 1 && prev !== zeroHash) this.#problem('missing', 'the first record is not the start of the log', seq)
    } else if (seq < expected.seq) {
      const words = `found record ${seq} instead of record ${expected.seq}: it was moved, repeated or inserted`
      this.#problem('order', words, seq)
      return
    } else if (seq > expected.seq) {
      const gone = seq - 1 === expected.seq ? `record ${expected.seq} is` : `records ${expected.seq} to ${seq - 1} are`
      this.#problem('missing', `${gone} missing before record ${seq}`, seq)
    } else if (expected.prev !== undefined && prev !== expected.prev) {
      const message = `record ${seq} does not match the hash of the record before it: one of the two was changed or replaced`
      this.#problem('changed', message, seq)
    }
    this.#expected = { seq: seq + 1, prev: hash }
    this.#found.last = { seq, time }
  }

  /** Evaluates a record about the log itself. Returns whether it is signed; ignores the contents of unsigned ones. */
  #readControl(record: ControlRecord): boolean {
    if (!this.#isSigned(record)) return false
    const found = this.#found
    found.signatures++
    found.unsigned = 0
    if (record.operation === 'retention') found.removedTo = Math.max(found.removedTo, record.removed.to)
    if (record.operation === 'start') {
      found.unproven += record.unproven ?? 0
      for (const name of record.lanes) found.lanes.add(name)
    }
    if (record.operation === 'start' || record.operation === 'checkpoint') this.#isFinal = 'final' in record
    if (record.operation === 'gap') this.#readGap(record)
    return true
  }

  #isSigned({ hash: _, ...content }: ControlRecord): boolean {
    const { seq, key } = content
    const verifier = this.#options.verifiers.find(({ id }) => id === key)
    if (verifier && content.lane === this.#options.lane && verifier.verifies(content)) return true
    const by = typeof key === 'string' ? `with the unknown key ${key}` : 'with an unspecified key'
    const words = verifier ? `record ${seq} has an invalid signature` : `record ${seq} is signed ${by}`
    this.#problem('signature', words, seq)
    return false
  }

  #readGap({ reason, seq, time, missing }: GapRecord): void {
    if (reason === 'unrecorded') {
      this.#found.outages++
      return
    }
    const what = {
      records_missing: missing ? `records ${missing.from} to ${missing.to} were missing` : 'records were missing',
      records_changed: 'the last record was not the one that had been written',
      damaged: 'the end of the log was damaged',
      head_missing: 'the file `head` was missing',
      head_invalid: 'the file `head` was invalid',
    }[reason]
    this.#problem('found_before', `when Toolway started on ${time}, ${what}`, seq)
  }

  #checkOpening(record: AuditRecord, isSigned: boolean): void {
    const { seq } = record
    if (isEvent(record) || record.operation !== 'segment' || seq !== firstSeqOf(this.#file)) {
      this.#problem('segment', 'the file does not start with its segment record: it was truncated or renamed', seq)
    } else if (isSigned) this.#checkPrevious(record)
  }

  #checkPrevious({ previous, reason }: SegmentRecord): void {
    const before = this.#before
    if (!before) return
    if (previous?.file !== before.file) {
      const words = `a file is missing: this one follows ${previous?.file ?? 'no file'}, not ${before.file}`
      this.#problem('segment', words)
    } else if (previous.bytes !== (reason === 'abandoned' ? before.bytes - before.fragment : before.bytes)) {
      const closed = `the previous file, ${before.file}, had ${previous.bytes} bytes when it was closed`
      this.#problem('segment', `${closed} and now has ${before.bytes}`)
    }
  }
}

const lineProblems = {
  form: ['changed', 'does not have the format of a record'],
  hash: ['changed', 'was changed after it was written: its hash does not match'],
  canonical: ['not_canonical', 'is not in canonical form'],
} as const

/** The problem to report if a log does not start where retention stopped. Empty if it does. */
export function gapBefore(first: ChainFacts['first'], removedTo: number): VerifyProblem[] {
  if (!first || first.seq <= 1 || removedTo >= first.seq - 1) return []
  const message = `records ${removedTo + 1} to ${first.seq - 1} are missing, and retention did not remove them`
  return [{ kind: 'missing', seq: first.seq, message }]
}

type ProblemKind =
  | 'unreadable'
  | 'changed'
  /** The content is the same, but not in canonical form. */
  | 'not_canonical'
  | 'missing'
  /** A record is at the wrong position: moved, repeated or inserted. */
  | 'order'
  | 'signature'
  /** A file is not in the state in which Toolway left it. */
  | 'segment'
  | 'cut'
  /** The lane ends before its high-water mark. */
  | 'rolled_back'
  | 'head'
  /** Toolway found and recorded this problem itself when it started. */
  | 'found_before'
  | 'lane'
  | 'key'

export interface VerifyProblem {
  readonly kind: ProblemKind
  readonly lane?: string
  readonly file?: string
  readonly line?: number
  readonly seq?: number | undefined
  readonly message: string
}

const maxProblems = 1000

export function createProblems() {
  const problems = {
    list: [] as VerifyProblem[],
    count: 0,
    add: (problem: VerifyProblem): void => {
      problems.count++
      if (problems.list.length < maxProblems) problems.list.push(problem)
    },
  }
  return problems
}
