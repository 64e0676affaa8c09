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

export interface ChainFacts {
  readonly records: number
  readonly first: { readonly seq: number; readonly time: string } | undefined
  readonly last: { readonly seq: number; readonly time: string } | undefined
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

export function createChainCheck({ lane, heads, verifiers, problem: report }: ChainCheckOptions) {
  let file = ''
  let number = 0
  /** The previous file. `fragment` is the number of bytes after its last newline. */
  let before: { readonly file: string; readonly bytes: number; readonly fragment: number } | undefined
  let bytes = 0
  let fragment = 0
  let expected: { readonly seq: number; readonly prev: string | undefined } | undefined
  let first: ChainFacts['first']
  let last: ChainFacts['last']
  let records = 0
  let removedTo = 0
  let signatures = 0
  let unsigned = 0
  let outages = 0
  let unproven = 0
  let final = false
  let unreadable = false
  const lanes = new Set<string>()

  const problem = (kind: ProblemKind, message: string, seq?: number) =>
    report({ kind, lane, ...(file === '' ? {} : { file, line: number }), seq, message })

  const record = (found: AuditRecord) => {
    records++
    place(found)
    const signed = isEvent(found) ? event(found) : own(found)
    if (heads.some((head) => head?.seq === found.seq && head.hash !== found.hash)) {
      problem('changed', `record ${found.seq} was replaced: \`head\` has a different hash`, found.seq)
    }
    if (number === 1 && file !== '') opening(found, signed)
  }

  const event = ({ seq }: AuditRecord): false => {
    unsigned++
    if (final) problem('order', `record ${seq} was added after the process closed its log`, seq)
    return false
  }

  const place = ({ seq, prev, hash, time }: AuditRecord) => {
    if (!expected) {
      first = { seq, time }
      if (seq === 1 && prev !== zeroHash) problem('missing', 'the first record is not the start of the log', seq)
    } else if (seq < expected.seq) {
      problem('order', `found record ${seq} instead of record ${expected.seq}: it was moved, repeated or inserted`, seq)
      return
    } else if (seq > expected.seq) {
      const gone = seq - 1 === expected.seq ? `record ${expected.seq} is` : `records ${expected.seq} to ${seq - 1} are`
      problem('missing', `${gone} missing before record ${seq}`, seq)
    } else if (expected.prev !== undefined && prev !== expected.prev) {
      const message = `record ${seq} does not match the hash of the record before it: one of the two was changed or replaced`
      problem('changed', message, seq)
    }
    expected = { seq: seq + 1, prev: hash }
    last = { seq, time }
  }

  /** Evaluates a record about the log itself. Returns whether it is signed; ignores the contents of unsigned ones. */
  const own = (found: ControlRecord): boolean => {
    if (!isSigned(found)) return false
    signatures++
    unsigned = 0
    if (found.operation === 'retention') removedTo = Math.max(removedTo, found.removed.to)
    if (found.operation === 'start') {
      unproven += found.unproven ?? 0
      for (const name of found.lanes) lanes.add(name)
    }
    if (found.operation === 'start' || found.operation === 'checkpoint') final = 'final' in found
    if (found.operation === 'gap') gap(found)
    return true
  }

  const isSigned = ({ hash: _, ...content }: ControlRecord): boolean => {
    const { seq, key } = content
    const verifier = verifiers.find(({ id }) => id === key)
    if (verifier && content.lane === lane && verifier.verifies(content)) return true
    const by = typeof key === 'string' ? `with the unknown key ${key}` : 'with an unspecified key'
    const words = verifier ? `record ${seq} has an invalid signature` : `record ${seq} is signed ${by}`
    problem('signature', words, seq)
    return false
  }

  const gap = ({ reason, seq, time, missing }: GapRecord) => {
    if (reason === 'unrecorded') {
      outages++
      return
    }
    const what = {
      records_missing: missing ? `records ${missing.from} to ${missing.to} were missing` : 'records were missing',
      records_changed: 'the last record was not the one that had been written',
      damaged: 'the end of the log was damaged',
      head_missing: 'the file `head` was missing',
      head_invalid: 'the file `head` was invalid',
    }[reason]
    problem('found_before', `when Toolway started on ${time}, ${what}`, seq)
  }

  const opening = (found: AuditRecord, signed: boolean) => {
    const { seq } = found
    if (isEvent(found) || found.operation !== 'segment' || seq !== firstSeqOf(file)) {
      problem('segment', 'the file does not start with its segment record: it was truncated or renamed', seq)
    } else if (before && signed) previous(found, before)
  }

  const previous = (found: SegmentRecord, was: NonNullable<typeof before>) => {
    const counted = was.bytes - was.fragment
    if (found.previous?.file !== was.file) {
      problem('segment', `a file is missing: this one follows ${found.previous?.file ?? 'no file'}, not ${was.file}`)
    } else if (found.previous.bytes !== (found.reason === 'abandoned' ? counted : was.bytes)) {
      const closed = `the previous file, ${was.file}, had ${found.previous.bytes} bytes when it was closed`
      problem('segment', `${closed} and now has ${was.bytes}`)
    }
  }

  return {
    /** Starts the next file. Not called for records from an archive, for which the file checks are skipped. */
    file: (name: string): void => {
      if (file !== '') before = { file, bytes, fragment }
      file = name
      number = 0
      bytes = 0
      fragment = 0
    },
    line: (line: LogLine): void => {
      number++
      bytes = line.offset + line.bytes.length + (line.whole ? 1 : 0)
      if (!line.whole) {
        fragment = line.bytes.length
        return
      }
      const parsed = parseSealedLine(line.bytes)
      if (!parsed.record) {
        // Report consecutive unreadable lines as one problem, so that junk does not hide other problems.
        if (!unreadable) problem('unreadable', 'not a valid record')
        unreadable = true
        if (expected) expected = { seq: expected.seq + 1, prev: undefined }
        return
      }
      unreadable = false
      if (!parsed.ok) {
        const [kind, words] = lineProblems[parsed.wrong]
        problem(kind, `record ${parsed.record.seq} ${words}`, parsed.record.seq)
      }
      record(parsed.record)
    },
    end: (): ChainFacts => {
      const torn = fragment > 0 ? { file, bytes: fragment } : undefined
      return { records, first, last, removedTo, signatures, unsigned, unproven, outages, torn, lanes }
    },
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
