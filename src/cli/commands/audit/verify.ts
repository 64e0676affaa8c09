import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { listLanes } from '../../../audit/log-files.ts'
import type { VerifyProblem } from '../../../audit/verify/chain-check.ts'
import { type VerifyReport, verifyAudit } from '../../../audit/verify/verify.ts'
import { type ArchiveReport, compareWithArchive, verifyArchive } from '../../../audit/verify/verify-archive.ts'
import { marksFolder } from '../../../audit/write/head.ts'
import { pluralize } from '../../../lib/message-text.ts'
import { postgresErrorReason } from '../../../stores/postgres/connection.ts'
import { keptAuditKey } from '../../../stores/secret-file.ts'
import type { OptionsOf } from '../../command-table.ts'
import {
  createOutput,
  createProgress,
  type ExitCode,
  exit,
  type Output,
  type ProgressLine,
  readNamedFile,
  relativeTo,
  type Shell,
  UsageError,
} from '../../kit.ts'
import { load } from '../../load.ts'
import { oneLine } from '../../table.ts'
import { printJson } from './query.ts'
import { askArchive, auditFolder, type ConfiguredArchive, configuredArchive, hasRecords } from './select-log.ts'

type AuditVerifyOptions = OptionsOf<'audit verify'>

export async function verifyLog(shell: Shell, options: AuditVerifyOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const keys = await keysFor(shell, options)
  const checked = options.postgres
    ? await verifyPostgres(shell, options, keys)
    : await verifyFolder(shell, options, keys, output)
  if (!checked) return exit.ok
  const { source, place, report } = checked
  if (options.json) printJson({ ...source, ...report }, output)
  else printReport(report, place, output)
  return report.ok ? exit.ok : exit.failed
}

async function verifyFolder(shell: Shell, options: AuditVerifyOptions, keys: Keys, output: Output) {
  const folder = await auditFolder(shell, options)
  const hasMarks = keys.marks !== undefined && listLanes(keys.marks).length > 0
  const isExpected = hasMarks || keys.key !== undefined || options.publicKey !== undefined || options.path !== undefined
  if (!isExpected && !hasRecords(folder, output, shell)) return undefined
  // A log from version 0.1.0 or in a moved folder has no marks until the gateway starts again, so missing marks do not
  // prove that they were deleted.
  if (keys.key !== undefined && !hasMarks && listLanes(folder).length > 0) {
    output.note(
      'There are no high-water marks for this log (stores.path/audit-marks), so deleted lanes and restored old folders are not detected. The gateway writes the marks when it starts; if it has already run with this log, they were deleted.',
    )
  }
  using progress = createProgress(shell)
  const onProgress = ({ lane, file, records }: { lane: string; file: string; records: number }) =>
    showChecking(`lane ${lane}, ${file}`, records, progress, shell)
  const own = await verifyAudit({ folder, ...keys, onProgress })
  progress[Symbol.dispose]()
  const archive = await configuredArchive(shell, options)
  const report = archive ? await withArchive(own, folder, archive, output) : own
  const place = `${pluralize(report.lanes.length, 'lane')} of ${oneLine(relativeTo(folder, shell.cwd))}`
  return { source: { folder }, place, report }
}

async function verifyPostgres(shell: Shell, options: AuditVerifyOptions, keys: Keys) {
  using progress = createProgress(shell)
  const onProgress = ({ chain, records }: { chain: string; records: number }) =>
    showChecking(chain, records, progress, shell)
  return await askArchive(shell, options, async (archive, where) => {
    const report = await verifyArchive({ archive, ...keys, onProgress })
    const place = `${pluralize(report.chains.length, 'chain')} of ${oneLine(where)}`
    return { source: { database: where }, place, report }
  })
}

function showChecking(what: string, records: number, progress: ProgressLine, { interrupted }: Shell): void {
  interrupted.throwIfAborted()
  progress.show(`Checking ${what}: ${pluralize(records, 'record')} …`)
}

/** Adds a comparison with the copy in PostgreSQL; prints a note if PostgreSQL is unavailable. */
async function withArchive(
  report: VerifyReport,
  folder: string,
  archive: ConfiguredArchive,
  { note }: Output,
): Promise<VerifyReport> {
  try {
    const behind = compareWithArchive(folder, report.lanes, await archive.ask((one) => one.chains()))
    const problemCount = report.problemCount + behind.length
    return { ...report, ok: problemCount === 0, problems: [...report.problems, ...behind], problemCount }
  } catch (cause) {
    note(`Not compared with the copy in ${archive.where}: ${postgresErrorReason(cause)}.`)
    return report
  }
}

interface Keys {
  readonly publicKey?: string
  readonly key?: string
  readonly marks?: string
}

/**
 * The given public key or else, without `--path`, our own secret key, which allows the most checks. If neither is
 * returned, the public key next to the log is used.
 */
async function keysFor(shell: Shell, options: AuditVerifyOptions): Promise<Keys> {
  const { publicKey: file } = options
  if (file !== undefined) {
    const publicKey = await readNamedFile(file, shell)
    if (publicKey.includes('BEGIN PUBLIC KEY')) return { publicKey }
    throw new UsageError(
      `${file} contains no public key.`,
      "A log's public key is in the file audit.pub in the log folder.",
    )
  }
  if (options.path !== undefined) return {}
  const { config } = await load(shell, options)
  const marks = marksFolder(config.stores.path, config.audit.path)
  return { key: await existingAuditKey(config.stores.path), marks }
}

/** The audit log's key; undefined if there is none yet. A check must not create a key. */
export const existingAuditKey = async (folder: string): Promise<string | undefined> =>
  existsSync(join(folder, 'audit-key')) ? keptAuditKey(folder) : undefined

type Report = VerifyReport | ArchiveReport

const trust: Record<Report['trust'], string> = {
  secret: "checked with this gateway's secret",
  'public key': 'checked with the given public key',
  'key beside the log': 'checked with the key next to the log, which anyone who can rewrite the log can replace',
  'keys in the database': 'checked with the keys in the database, which anyone who can change the database can replace',
}

function printReport(report: Report, place: string, { print, paint }: Output): void {
  const { ok, records, problems, problemCount } = report
  const extent = `${pluralize(records, 'record')} in ${place}`
  if (ok) print(`${paint('green', '✓')} ${extent}: intact`)
  else print(`${paint('red', '✗')} ${pluralize(problemCount, 'problem')} in ${extent}:`)
  for (const problem of problems) print(`  ${paint('red', placeOf(problem))} ${oneLine(problem.message)}`)
  if (problemCount > problems.length) print(`  … and ${problemCount - problems.length} more`)
  print(paint('dim', `  ${trust[report.trust]}`))
}

/** The location of a problem: `1/000000000001.jsonl:7 (record 7):` */
function placeOf({ lane, file, line, seq }: VerifyProblem): string {
  const path = [lane, file].filter((part) => part !== undefined).join('/')
  const place = oneLine(path) + (line === undefined ? '' : `:${line}`)
  const record = seq === undefined ? '' : ` (record ${seq})`
  return place === '' && record === '' ? 'the log:' : `${place === '' ? 'the log' : place}${record}:`
}
