import { join } from 'node:path'
import { isMissing, listLanes, listSegments, publicKeyFile, readIfExists, readLines } from '../log-files.ts'
import { type Signer, signerOf, type Verifier, verifiersOf } from '../record.ts'
import { type HeadState, readMarks, readSteadyHead } from '../write/head.ts'
import { ChainCheck, type ChainFacts, createProblems, gapBefore, type VerifyProblem } from './chain-check.ts'

export interface VerifyAuditOptions {
  readonly folder: string
  /** The secret. Without it, `head` cannot be checked. */
  readonly key?: Buffer | string
  /** Public keys in PEM form. If neither this nor `key` is given, the key file next to the log is trusted. */
  readonly publicKey?: string
  /** The folder with the high-water marks; see head.ts. */
  readonly marks?: string | undefined
  onProgress?(progress: { readonly lane: string; readonly file: string; readonly records: number }): void
}

export interface LaneReport extends Omit<ChainFacts, 'lanes'> {
  readonly lane: string
  readonly files: number
}

export interface VerifyReport {
  readonly ok: boolean
  /** Where the keys come from. The file next to the log could have been replaced together with the log. */
  readonly trust: 'secret' | 'public key' | 'key beside the log'
  readonly records: number
  readonly lanes: readonly LaneReport[]
  /** The first problems found; `problemCount` counts all of them. */
  readonly problems: readonly VerifyProblem[]
  readonly problemCount: number
}

/**
 * Verifies a whole log: finds changed, removed, moved, inserted and truncated records. Safe while other processes
 * write. Without marks, it cannot detect that a lane was restored, together with its `head`, to an earlier state. It
 * can never detect that a killed process lost the unsynced records of reads in its last second.
 */
export async function verifyAudit(options: VerifyAuditOptions): Promise<VerifyReport> {
  const { folder } = options
  const problems = createProblems()
  const signer = options.key === undefined ? undefined : signerOf(options.key)
  const verifiers = verifiersFor(options, signer, problems.add)
  const lanes: LaneReport[] = []
  const named = new Set<string>()
  // Read the marks before the log, because the log may grow in the meantime.
  const marks = readMarks(options.marks, signer)
  for (const lane of listLanes(folder)) {
    const mark = marks.get(lane)
    const { report, named: mentioned, found } = await verifyLane(lane, options, mark, signer, verifiers)
    lanes.push(report)
    const behind = mark && markProblem(lane, mark, report.last?.seq ?? 0)
    for (const name of mentioned) named.add(name)
    for (const problem of [behind, ...found]) if (problem) problems.add(problem)
  }
  const isGone = (lane: string) => !lanes.some((report) => report.lane === lane)
  for (const [lane, mark] of marks) {
    const gone = isGone(lane) ? markProblem(lane, mark, undefined) : undefined
    if (gone) problems.add(gone)
    named.delete(lane)
  }
  for (const lane of [...named].filter(isGone)) {
    problems.add({ kind: 'lane', lane, message: `lane ${lane} is missing: other lanes record that it existed` })
  }
  if (verifiers.length > 0 && lanes.length === 0 && marks.size === 0) {
    problems.add({
      kind: 'lane',
      message: 'there is no log, although its key exists: it was deleted, or it is elsewhere (audit.path)',
    })
  }
  return {
    ok: problems.count === 0,
    trust: signer ? 'secret' : options.publicKey === undefined ? 'key beside the log' : 'public key',
    records: lanes.reduce((sum, { records }) => sum + records, 0),
    lanes,
    problems: problems.list,
    problemCount: problems.count,
  }
}

function verifiersFor(
  { folder, publicKey }: VerifyAuditOptions,
  signer: Signer | undefined,
  add: (problem: VerifyProblem) => void,
): Verifier[] {
  const beside = verifiersOf(readIfExists(publicKeyFile(folder)) ?? '')
  const trusted = [...(signer ? [signer] : []), ...verifiersOf(publicKey ?? '')]
  if (trusted.length > 0) {
    const known = trusted.some(({ id }) => beside.some((key) => key.id === id))
    if (!known && listLanes(folder).length > 0) {
      add({ kind: 'key', message: "audit.pub does not contain this log's key: the file was removed or replaced" })
    }
    return trusted
  }
  if (beside.length === 0) add({ kind: 'key', message: 'no key to verify signatures with' })
  return beside
}

/** Verifies a lane. Reads the lane again if retention removes a file before it is read. */
async function verifyLane(...parameters: Parameters<typeof readLane>): ReturnType<typeof readLane> {
  for (let attempts = 5; ; attempts--) {
    try {
      return await readLane(...parameters)
    } catch (error) {
      if (!isMissing(error) || attempts === 0) throw error
    }
  }
}

async function readLane(
  lane: string,
  { folder, onProgress }: VerifyAuditOptions,
  mark: HeadState | undefined,
  signer: Signer | undefined,
  verifiers: readonly Verifier[],
) {
  const problems = createProblems()
  // Read the head before the log, because the log may grow in the meantime.
  const read = await readSteadyHead(folder, lane, signer)
  const files = listSegments(folder, lane)
  const heads = [read, mark].map((one) => (one?.state === 'read' ? one.head : undefined))
  const check = new ChainCheck({ lane, heads, verifiers, problem: problems.add })
  let records = 0
  for (const file of files) {
    check.file(file)
    for await (const lines of readLines(join(folder, lane, file))) {
      for (const line of lines) check.line(line)
      records += lines.length
      onProgress?.({ lane, file, records })
    }
  }
  const { lanes: named, ...facts } = check.end()
  for (const problem of endProblems(lane, read, facts)) problems.add(problem)
  return { report: { lane, files: files.length, ...facts }, named, found: problems.list }
}

function endProblems(
  lane: string,
  read: HeadState,
  { first, last, removedTo }: Omit<ChainFacts, 'lanes'>,
): VerifyProblem[] {
  const problems = gapBefore(first, removedTo).map((gap) => ({ ...gap, lane }))
  const end = last?.seq ?? 0
  if (read.state === 'read' && read.head.seq > end) {
    const { seq } = read.head
    const message = `the log ends with record ${end}, but record ${seq} was on disk: the end was deleted`
    problems.push({ kind: 'cut', lane, seq, message })
  }
  if (read.state === 'missing' && last) problems.push({ kind: 'head', lane, message: 'the file `head` is missing' })
  if (read.state === 'invalid') {
    problems.push({ kind: 'head', lane, message: 'the file `head` was changed, or written with another secret' })
  }
  return problems
}

/** The problem if a lane disagrees with its high-water mark. `last` is its last record; undefined if it is gone. */
function markProblem(lane: string, mark: HeadState, last: number | undefined): VerifyProblem | undefined {
  if (mark.state === 'missing') return undefined
  if (mark.state === 'invalid') {
    const message = 'its high-water mark was changed, or written with another secret'
    return { kind: 'head', lane, message }
  }
  const { seq } = mark.head
  if (last === undefined && seq > 0) {
    const message = `log ${lane} is missing: it was deleted after ${seq} records were written`
    return { kind: 'lane', lane, seq, message }
  }
  if (last === undefined || seq <= last) return undefined
  const message = `the log ends with record ${last}, but record ${seq} was written: the end was deleted, or the log was rolled back to an earlier state`
  return { kind: 'rolled_back', lane, seq, message }
}
