import { existsSync, readFileSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { listLanes, listSegments, publicKeyFile, readLines } from '../../audit/log-files.ts'
import { type Signer, signerOf, type Verifier, verifiersOf } from '../../audit/record.ts'
import { createChainCheck, type VerifyProblem } from '../../audit/verify/chain-check.ts'
import { type HeadState, readHead } from '../../audit/write/head.ts'
import type { Config } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import { keptAuditKey } from '../../stores/secret-file.ts'
import { count, span } from '../table.ts'
import { type CheckFinding, type DoctorCheck, ok, problem, warning } from './finding.ts'
import { programOf } from './port.ts'
import { isForeign, ownAgain } from './private-file.ts'

/** Clocks of two readings on one machine differ by less. */
const toleranceMs = 2_000

export interface AuditCheckOptions {
  readonly command: string
  readonly clock: Clock
}

/** Whether the newest records are as they were written, and not from the future. */
export function auditChecks({ audit, stores }: Config, { command, clock }: AuditCheckOptions): DoctorCheck[] {
  // Both checks look at the same records: they are read once.
  let reading: Promise<LaneEnd[]> | undefined
  const ends = () => {
    reading ??= readEnds(audit.path, stores.path)
    return reading
  }
  return [
    { name: 'audit.chain', run: async () => chainFindings(await ends(), command) },
    { name: 'clock', run: async () => clockFinding(await ends(), clock.now()) },
  ]
}

function chainFindings(ends: readonly LaneEnd[], command: string): CheckFinding | CheckFinding[] {
  if (ends.length === 0) return ok('nothing has been recorded yet')
  const remedy = `${command} audit verify`
  const findings = ends.flatMap(({ lane, problems }) => {
    const [first] = problems.filter(({ kind }) => kind !== 'found_before')
    const more = problems.length > 1 ? `, and ${problems.length - 1} more` : ''
    if (first) return [problem(`in lane ${lane}: ${first.message}${more}`, remedy)]
    // It was found and written down before: nobody has been at the log since.
    return problems.length > 0 ? [warning(`in lane ${lane}: ${problems[0]?.message}`, remedy)] : []
  })
  if (findings.length > 0) return findings
  const records = ends.reduce((sum, end) => sum + end.records, 0)
  return ok(`the newest ${count(records, 'record')} in ${count(ends.length, 'lane')} are as they were written`)
}

function clockFinding(ends: readonly LaneEnd[], now: number): CheckFinding {
  const latest = ends
    .flatMap(({ last }) => last ?? [])
    .sort()
    .at(-1)
  const time = new Date(now).toISOString()
  if (latest === undefined) return ok(`it is ${time}`)
  const behind = Date.parse(latest) - now
  if (behind <= toleranceMs) return ok(`it is ${time}, after the last record`)
  const message = `it is ${time}, ${span(behind)} before the last audit record: records and expiries go wrong`
  return problem(message, 'sudo timedatectl set-ntp true')
}

/** The newest file of one lane of the audit log, as it was found. */
interface LaneEnd {
  readonly lane: string
  readonly records: number
  /** When the last record was written. */
  readonly last: string | undefined
  readonly problems: readonly VerifyProblem[]
}

/** Reads the newest file of each lane: little enough to be read every time, and where damage shows first. */
async function readEnds(folder: string, keyFolder: string): Promise<LaneEnd[]> {
  // Only read: looking must not make a key.
  const secret = existsSync(join(keyFolder, 'audit-key')) ? await keptAuditKey(keyFolder) : undefined
  const signer = secret === undefined ? undefined : signerOf(secret)
  const beside = existsSync(publicKeyFile(folder)) ? verifiersOf(readFileSync(publicKeyFile(folder), 'utf8')) : []
  const verifiers = [...(signer ? [signer] : []), ...beside]
  const ends: LaneEnd[] = []
  for (const lane of listLanes(folder)) ends.push(await readEnd(folder, lane, signer, verifiers))
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
  const check = createChainCheck({ lane, heads: [head], verifiers, problem: (one) => problems.push(one) })
  // One that was only just made holds nothing yet.
  const newest = listSegments(folder, lane).findLast((file) => statSync(join(folder, lane, file)).size > 0)
  if (newest !== undefined) {
    check.file(newest)
    for await (const lines of readLines(join(folder, lane, newest))) for (const line of lines) check.line(line)
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
async function steadyHead(folder: string, lane: string, signer: Signer | undefined): Promise<HeadState> {
  for (let attempts = 5; ; attempts--) {
    const read = readHead(folder, lane, signer)
    if (read.state !== 'invalid' || attempts === 0) return read
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
}

/** Whether the audit log is in our hands: its files our own, its locks held by Toolway or by nobody. */
export const auditLockCheck = ({ audit: { path: folder } }: Config, short: (path: string) => string): DoctorCheck => ({
  name: 'audit.lock',
  async run() {
    const lanes = listLanes(folder)
    const foreign = await foreignFile(folder, lanes)
    if (foreign !== undefined) {
      return problem(`${short(foreign)} belongs to another user, so nothing can be recorded there`, ownAgain(folder))
    }
    const holders = lanes.flatMap((lane) => {
      const pid = holderOf(join(folder, lane, 'lock'))
      return pid === undefined ? [] : [{ lane, pid }]
    })
    const findings = await Promise.all(holders.map(holderFinding))
    const strange = findings.filter((finding) => finding !== undefined)
    if (strange.length > 0) return strange
    if (holders.length === 0) return ok('nobody writes to it now')
    const processes = [...new Set(holders.map(({ pid }) => pid))].join(', ')
    return ok(`${count(holders.length, 'lane')} in use, by Toolway (process ${processes})`)
  },
})

async function foreignFile(folder: string, lanes: readonly string[]): Promise<string | undefined> {
  for (const lane of lanes) {
    for (const name of ['', ...(await readdir(join(folder, lane)))]) {
      const path = join(folder, lane, name)
      if (isForeign(statSync(path, { throwIfNoEntry: false })?.uid ?? process.getuid?.() ?? 0)) return path
    }
  }
  return undefined
}

/** Where SQLite locks a file: nobody else means these bytes. */
const lockStart = 0x40000000

/**
 * The process that holds the lock of a lane, as the kernel lists it. Opening the file to find out would be wrong: that
 * takes the lane from a gateway that starts at the same moment.
 */
function holderOf(path: string): number | undefined {
  const inode = statSync(path, { throwIfNoEntry: false })?.ino
  for (const row of lockRows()) {
    const [, , , , pid, file = '', start] = row.split(/\s+/)
    if (file.split(':')[2] === `${inode}` && Number(start) >= lockStart) return Number(pid)
  }
  return undefined
}

function lockRows(): string[] {
  try {
    return readFileSync('/proc/locks', 'latin1').split('\n')
  } catch {
    return []
  }
}

async function holderFinding({
  lane,
  pid,
}: {
  readonly lane: string
  readonly pid: number
}): Promise<CheckFinding | undefined> {
  const program = await programOf(pid)
  if (program === basename(process.execPath)) return undefined
  const who = program === undefined ? `process ${pid}, which is not ours` : `${program} (process ${pid})`
  return warning(`lane ${lane} is held by ${who}; Toolway writes to another one`, `ps -fp ${pid}`)
}
