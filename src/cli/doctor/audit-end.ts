import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { keptAuditKey } from '../../stores/audit-key.ts'
import { type ReadHead, readHead } from '../../telemetry/audit/head.ts'
import { type Signer, signerOf, type Verifier, verifiersOf } from '../../telemetry/audit/keys.ts'
import { createLaneCheck } from '../../telemetry/audit/lane-check.ts'
import { lanesOf, publicKeyFile, segmentsOf } from '../../telemetry/audit/layout.ts'
import { linesOf } from '../../telemetry/audit/lines.ts'
import type { VerifyProblem } from '../../telemetry/audit/problem.ts'

/** The newest file of one lane of the audit log, as it was found. */
export interface LaneEnd {
  readonly lane: string
  readonly records: number
  /** When the last record was written. */
  readonly last: string | undefined
  readonly problems: readonly VerifyProblem[]
}

/** Reads the newest file of each lane: little enough to be read every time, and where damage shows first. */
export async function readEnds(folder: string, keyFolder: string): Promise<LaneEnd[]> {
  // Only read: looking must not make a key.
  const secret = existsSync(join(keyFolder, 'audit-key')) ? await keptAuditKey(keyFolder) : undefined
  const signer = secret === undefined ? undefined : signerOf(secret)
  const beside = existsSync(publicKeyFile(folder)) ? verifiersOf(readFileSync(publicKeyFile(folder), 'utf8')) : []
  const verifiers = [...(signer ? [signer] : []), ...beside]
  const ends: LaneEnd[] = []
  for (const lane of lanesOf(folder)) ends.push(await readEnd(folder, lane, signer, verifiers))
  return ends
}

async function readEnd(
  folder: string,
  lane: string,
  signer: Signer | undefined,
  verifiers: readonly Verifier[],
): Promise<LaneEnd> {
  const problems: VerifyProblem[] = []
  // First of all: the log may only be longer than this.
  const read = await steadyHead(folder, lane, signer)
  const head = read.state === 'read' ? read.head : undefined
  const check = createLaneCheck({ lane, heads: [head], verifiers, problem: (one) => problems.push(one) })
  // One that was only just made holds nothing yet.
  const newest = segmentsOf(folder, lane).findLast((file) => statSync(join(folder, lane, file)).size > 0)
  if (newest !== undefined) {
    check.file(newest)
    for await (const lines of linesOf(join(folder, lane, newest))) for (const line of lines) check.line(line)
  }
  const { records, last } = check.end()
  if (head && head.seq > (last?.seq ?? 0)) {
    const message = `the lane ends with record ${last?.seq ?? 0}, but record ${head.seq} was on disk`
    problems.push({ kind: 'cut', lane, message })
  }
  if (read.state === 'invalid')
    problems.push({ kind: 'head', lane, message: 'the file `head` is not as it was written' })
  return { lane, records, last: last?.time, problems }
}

/** Somebody may be rewriting it right now. */
async function steadyHead(folder: string, lane: string, signer: Signer | undefined): Promise<ReadHead> {
  for (let attempts = 5; ; attempts--) {
    const read = readHead(folder, lane, signer)
    if (read.state !== 'invalid' || attempts === 0) return read
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
}
