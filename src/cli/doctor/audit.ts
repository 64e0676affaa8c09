import { existsSync, readFileSync, statSync } from 'node:fs'
import { readdir, readlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { listLanes, listSegments, publicKeyFile, readLines } from '../../audit/log-files.ts'
import { type Signer, signerOf, type Verifier, verifiersOf } from '../../audit/record.ts'
import { ChainCheck, type VerifyProblem } from '../../audit/verify/chain-check.ts'
import { readSteadyHead } from '../../audit/write/head.ts'
import type { Config } from '../../config/schema.ts'
import { pluralize } from '../../lib/message-text.ts'
import { existingAuditKey } from '../commands/audit/verify.ts'
import { span } from '../table.ts'
import {
  type CheckContext,
  type CheckFinding,
  chownCommand,
  type Findings,
  findingsOr,
  isForeign,
  ok,
  problem,
  warning,
} from './finding.ts'

/** How far in the future a record's time may be. Two readings of the same machine's clock differ by less. */
const toleranceMs = 2_000

/** Checks that the newest records are unmodified. */
export function chainFindings(ends: readonly LaneEnd[], { command }: CheckContext): Findings {
  if (ends.length === 0) return ok('nothing has been recorded yet')
  const remedy = `${command} audit verify`
  const findings = ends.flatMap(({ lane, problems }) => {
    const [first] = problems.filter(({ kind }) => kind !== 'found_before')
    const more = problems.length > 1 ? `, and ${problems.length - 1} more` : ''
    if (first) return [problem(`in lane ${lane}: ${first.message}${more}`, remedy)]
    // This is only a warning: Toolway recorded the problem itself, and the log has not been modified since.
    return problems.length > 0 ? [warning(`in lane ${lane}: ${problems[0]?.message}`, remedy)] : []
  })
  const records = ends.reduce((sum, end) => sum + end.records, 0)
  const intact = `the newest ${pluralize(records, 'record')} in ${pluralize(ends.length, 'lane')}: intact`
  return findingsOr(findings, ok(intact))
}

/** Checks that no record is from the future. */
export function clockFinding(ends: readonly LaneEnd[], { clock }: Pick<CheckContext, 'clock'>): CheckFinding {
  const now = clock.now()
  const latest = ends
    .flatMap(({ last }) => last ?? [])
    .sort()
    .at(-1)
  const time = new Date(now).toISOString()
  if (latest === undefined) return ok(`it is ${time}`)
  const behind = Date.parse(latest) - now
  if (behind <= toleranceMs) return ok(`it is ${time}, after the last record`)
  const message = `it is ${time}, ${span(behind)} before the last audit record: record times and expiry dates are wrong`
  return problem(message, 'sudo timedatectl set-ntp true')
}

/** Reads only the newest file in each lane, which is small and shows damage first. `audit verify` reads all files. */
export async function readLaneEnds({ audit: { path: folder }, stores }: Config): Promise<LaneEnd[]> {
  const secret = await existingAuditKey(stores.path)
  const signer = secret === undefined ? undefined : signerOf(secret)
  const beside = existsSync(publicKeyFile(folder)) ? verifiersOf(readFileSync(publicKeyFile(folder), 'utf8')) : []
  const verifiers = [...(signer ? [signer] : []), ...beside]
  return Array.fromAsync(listLanes(folder), (lane) => readEnd(folder, lane, signer, verifiers))
}

type LaneEnd = Awaited<ReturnType<typeof readEnd>>

async function readEnd(folder: string, lane: string, signer: Signer | undefined, verifiers: readonly Verifier[]) {
  const problems: VerifyProblem[] = []
  // Read the head before the records: records that are added in between are not a problem.
  const read = await readSteadyHead(folder, lane, signer)
  const head = read.state === 'read' ? read.head : undefined
  const check = new ChainCheck({ lane, heads: [head], verifiers, problem: (one) => problems.push(one) })
  // Skip empty files: a file that was just created has no records yet.
  const newest = listSegments(folder, lane).findLast((file) => statSync(join(folder, lane, file)).size > 0)
  if (newest !== undefined) {
    check.file(newest)
    for await (const lines of readLines(join(folder, lane, newest))) for (const line of lines) check.line(line)
  }
  const { records, last } = check.end()
  if (head && head.seq > (last?.seq ?? 0)) {
    const message = `the log ends with record ${last?.seq ?? 0}, but record ${head.seq} was written`
    problems.push({ kind: 'cut', lane, message })
  }
  if (read.state === 'invalid')
    problems.push({ kind: 'head', lane, message: 'the file `head` was modified after it was written' })
  return { lane, records, last: last?.time, problems }
}

/** Checks that the audit log files belong to this user, and that no other program holds the log's locks. */
export async function findLogHolders({ audit: { path: folder } }: Config, { short }: CheckContext) {
  const lanes = listLanes(folder)
  const foreign = await foreignFile(folder, lanes)
  if (foreign !== undefined) {
    const message = `${short(foreign.path)} belongs to another user, so nothing can be recorded there`
    return problem(message, chownCommand(join(folder, foreign.lane), '-R'))
  }
  const holders = lanes.flatMap((lane) => {
    const pid = holderOf(join(folder, lane, 'lock'))
    return pid === undefined ? [] : [{ lane, pid }]
  })
  const found = await Promise.all(holders.map(({ lane, pid }) => holderFinding(lane, pid)))
  const processes = [...new Set(holders.map(({ pid }) => pid))].join(', ')
  const inUse = `${pluralize(holders.length, 'lane')} in use by Toolway (pid ${processes})`
  return findingsOr(found, ok(holders.length === 0 ? 'no process is writing to it' : inUse))
}

async function foreignFile(folder: string, lanes: readonly string[]) {
  for (const lane of lanes) {
    for (const name of ['', ...(await readdir(join(folder, lane)))]) {
      const path = join(folder, lane, name)
      if (isForeign(statSync(path, { throwIfNoEntry: false })?.uid ?? process.getuid?.() ?? 0)) return { lane, path }
    }
  }
  return undefined
}

/** First byte of the range that SQLite locks in a file. Other programs do not lock these bytes. */
const lockStart = 0x40000000

/** The process that holds a lane's lock. Taken from the kernel: opening the file could lock out a starting gateway. */
function holderOf(path: string): number | undefined {
  const inode = statSync(path, { throwIfNoEntry: false })?.ino
  const rows = existsSync('/proc/locks') ? readFileSync('/proc/locks', 'latin1').split('\n') : []
  for (const row of rows) {
    const [, , , , pid, file = '', start] = row.split(/\s+/)
    if (file.split(':')[2] === `${inode}` && Number(start) >= lockStart) return Number(pid)
  }
  return undefined
}

async function holderFinding(lane: string, pid: number): Promise<CheckFinding | undefined> {
  // Unknown if the process has exited or belongs to another user.
  const program = await readlink(`/proc/${pid}/exe`).then(basename, () => undefined)
  if (program === basename(process.execPath)) return undefined
  const who = program === undefined ? `process ${pid}, which is not Toolway` : `${program} (process ${pid})`
  return warning(`lane ${lane} is locked by ${who}; Toolway writes to another lane`, `ps -fp ${pid}`)
}
