import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { readAllArrivals } from '../../../audit/archive/arrivals.ts'
import {
  type AuditPageQuery,
  type AuditSearchPage,
  type AuditSources,
  archivePage,
  archiveRows,
  emptyPage,
  searchAudit,
} from '../../../audit/reader.ts'
import type { CatchUpOptions } from '../../../audit/search/catch-up.ts'
import type { OperationRow } from '../../../audit/search/index-file.ts'
import { type AuditQuery, type AuditSearch, openCurrentSearch, searchLog } from '../../../audit/search/search.ts'
import type { Archive, AuditFilter } from '../../../core/audit-archive.ts'
import {
  archiveCsvHeading,
  archiveCsvLine,
  csvHeading,
  csvLine,
  harmful,
  harmlessJson,
  jsonLine,
} from '../../../core/audit-export.ts'
import { ToolwayError } from '../../../core/errors.ts'
import { postgresErrorReason } from '../../../stores/postgres/connection.ts'
import type { OptionsOf } from '../../command-table.ts'
import { createOutput, createProgress, type Output, type Paint, type Shell, UsageError } from '../../kit.ts'
import { oneLine } from '../../table.ts'
import {
  askArchive,
  auditFolder,
  type ConfiguredArchive,
  configuredArchive,
  filterOf,
  hasRecords,
} from './select-log.ts'

/** Prints the matching records, newest first: from PostgreSQL if it is configured, otherwise from the local log. */
export async function queryAudit(shell: Shell, options: OptionsOf<'audit query'>): Promise<void> {
  const { limit, before, raw = false } = options
  const output = createOutput(shell, options.json)
  const folder = await auditFolder(shell, options)
  const query = { ...filterOf(options), limit, raw, before }
  if (options.postgres) {
    if (options.local) throw new UsageError("--local selects this machine's log and cannot be used with --postgres.")
    const page = await askArchive(shell, options, ({ search }) => search(query))
    print(archivePage(page, raw), raw, shell, output)
    return
  }
  const archive = await configuredArchive(shell, options)
  let hasLog = true
  const local = async (query: AuditPageQuery) => {
    hasLog = hasRecords(folder, output, shell)
    const page = hasLog ? await showingProgress(shell, (progress) => searchLog(folder, query, progress)) : emptyPage
    return archive ? { ...page, source: 'local' as const } : page
  }
  const page = await searchAudit({ local, ...fromArchive(options.local ? undefined : archive, output) }, query)
  if (hasLog || (options.json && !raw)) print(page, raw, shell, output)
}

/** The archive as a source. If it is unreachable, a note says that only the local log is searched. */
function fromArchive(archive: ConfiguredArchive | undefined, output: Output): Omit<AuditSources, 'local'> {
  let reason = ''
  return {
    archive:
      archive &&
      (async (query) => {
        try {
          return await archive.ask(({ search }) => search(query))
        } catch (thrown) {
          if (thrown instanceof ToolwayError) throw thrown
          reason = `${archive.where} cannot be reached (${postgresErrorReason(thrown)})`
          if (query.before === undefined) output.note(`${reason}: only this machine's records are shown.`)
          return undefined
        }
      }),
    unavailable: () => `${reason}, and this search began there; try again later.`,
  }
}

function print({ rows, lines, next, source }: AuditSearchPage, raw: boolean, shell: Shell, output: Output): void {
  if (raw) for (const line of lines) output.print(harmlessJson(line))
  else if (output.json) printJson({ rows, next, source }, output)
  else if (rows.length === 0) output.note('No matching records.')
  else {
    printRows(rows, output)
    if (next) output.note(output.paintNote('dim', `More: ${shell.command} audit query … --before ${next}`))
  }
}

/** Shows progress while the log is being indexed, which may take a long time after many new records. */
async function showingProgress<T>(shell: Shell, work: (options: CatchUpOptions) => Promise<T>): Promise<T> {
  using progress = createProgress(shell)
  return await work({
    signal: shell.interrupted,
    onProgress: (records) => progress.show(`Reading the log: ${records} new records …`),
  })
}

/** Like `output.value`, with harmful characters escaped. */
export const printJson = (value: object, { print, terminal }: Output): void =>
  print(harmlessJson(JSON.stringify(value, undefined, terminal ? 2 : undefined)))

const plain = (text: string): string => oneLine(text.replace(harmful, ''))

const target = ({ server, tool, operation }: OperationRow): string =>
  server === undefined && tool === undefined ? operation : [server, tool].filter(Boolean).join('.')

const outcome = ({ decision, ended, is_error }: OperationRow): string => {
  if (!ended) return 'no end recorded'
  return is_error && decision === 'ALLOW' ? 'ALLOW (tool error)' : (decision ?? '')
}

const why = ({ reason, code, rule, operation, decision, ...row }: OperationRow): string => {
  const own = decision === undefined && operation === 'gap' ? 'records are missing here:' : ''
  const approval = row.approval ? `approval: ${row.approval} by ${row.approver}` : ''
  const more = row.suppressed ? `(and ${row.suppressed} more)` : ''
  const detail = row.detail ? `(${row.detail})` : ''
  return [own, reason ?? code ?? '', rule ?? '', approval, detail, more].filter(Boolean).join(' ')
}

const latency = ({ latency_ms: ms }: OperationRow): string =>
  ms === undefined ? '' : `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`

const colour = ({ decision, ended, is_error, operation }: OperationRow) => {
  if (!ended || operation === 'gap') return 'yellow'
  if (decision === 'ALLOW') return is_error ? 'yellow' : 'green'
  return 'red'
}

/** One row as text: `2026-03-01T12:00:00.005Z  dev  ALLOW  fs.read_file  5 ms  agents.dev.allow.servers[0]` */
export function rowLine(row: OperationRow, paint: Paint): string {
  const cells = [
    paint('dim', plain(row.time)),
    plain(row.agent ?? ''),
    paint(colour(row), plain(outcome(row))),
    plain(target(row)),
    paint('dim', latency(row)),
    plain(why(row)),
  ]
  return cells.filter((cell) => oneLine(cell) !== '').join('  ')
}

const printRows = (rows: readonly OperationRow[], { table, paint }: Output): void =>
  table<OperationRow>(rows, [
    { title: 'TIME', value: ({ time }) => plain(time), style: (cell) => paint('dim', cell), whole: true },
    { title: 'AGENT', value: ({ agent }) => plain(agent ?? '') },
    { title: 'DECISION', value: (row) => plain(outcome(row)), style: (cell, row) => paint(colour(row), cell) },
    { title: 'WHAT', value: (row) => plain(target(row)) },
    { title: 'TOOK', value: latency },
    { title: 'WHY', value: (row) => plain(why(row)) },
    { title: 'ARGUMENTS', value: (row) => plain(argumentsText(row)), style: (cell) => paint('dim', cell) },
  ])

const argumentsText = ({ arguments: args }: OperationRow): string => (args === undefined ? '' : JSON.stringify(args))

type ExportOptions = OptionsOf<'audit export'>

/** Exports the records, oldest first; pauses while the reader is slow. */
export async function exportAudit(shell: Shell, options: ExportOptions): Promise<void> {
  const { format, raw } = options
  if (raw && format === 'csv') throw new UsageError('--raw prints JSON lines; it needs --format jsonl.')
  const output = createOutput(shell, options.json)
  const filter = filterOf(options)
  const write = (lines: Lines) => writeLines(lines, shell, options, output)
  if (options.postgres) {
    await askArchive(shell, options, (archive) => write(archiveLines(archive, filter, options)))
    return
  }
  const folder = await auditFolder(shell, options)
  if (!hasRecords(folder, output, shell)) return
  using search = await showingProgress(shell, (progress) => openCurrentSearch(folder, progress))
  await write(linesOf(search, { ...filter, order: 'oldest' }, options))
}

function* linesOf(search: AuditSearch, query: AuditQuery, { format, raw }: ExportOptions): Generator<string> {
  if (format === 'csv') yield csvHeading
  if (raw) for (const { text } of search.records(query)) yield harmlessJson(text)
  else for (const row of search.query(query)) yield format === 'csv' ? csvLine(row) : jsonLine(row)
}

async function* archiveLines(
  archive: Archive,
  filter: AuditFilter,
  { format, raw = false }: ExportOptions,
): AsyncGenerator<string> {
  if (format === 'csv') yield archiveCsvHeading
  for await (const arrived of readAllArrivals(archive, { ...filter, raw })) {
    if (raw) for (const { line } of arrived) yield harmlessJson(line)
    else for (const row of archiveRows(arrived)) yield format === 'csv' ? archiveCsvLine(row) : jsonLine(row)
  }
}

type Lines = Iterable<string> | AsyncIterable<string>

async function writeLines(lines: Lines, shell: Shell, { format, raw, out }: ExportOptions, output: Output) {
  const ending = format === 'csv' ? '\r\n' : '\n'
  const { stdout, interrupted } = shell
  if (out === undefined) return void (await writeTo(stdout, lines, ending, interrupted))
  // The file is readable by the owner only, like the log.
  const file = createWriteStream(resolve(shell.cwd, out), { mode: 0o600 }).on('error', () => {})
  try {
    const count = await writeTo(file, lines, ending, interrupted)
    await finished(file.end())
    output.note(`Wrote ${out} (${format === 'csv' ? count - 1 : count} ${raw ? 'records' : 'operations'}).`)
  } catch (thrown) {
    if (thrown !== file.errored) throw thrown
    const { code, message } = thrown as NodeJS.ErrnoException
    throw new UsageError(`Cannot write ${out}: ${code === 'ENOENT' ? 'its folder does not exist' : message}.`)
  }
}

/** Writes lines with backpressure, so that a large log does not fill up memory. Returns the number of lines. */
async function writeTo(target: Writable, lines: Lines, ending: string, stop: AbortSignal): Promise<number> {
  let count = 0
  let block = ''
  const flush = async () => {
    const full = !target.write(block)
    block = ''
    if (full && !target.destroyed) await drained(target, stop)
  }
  for await (const line of lines) {
    stop.throwIfAborted()
    if (target.destroyed) break
    block += line + ending
    count++
    if (block.length > 64 * 1024) await flush()
  }
  await flush()
  return count
}

/** Resolves when the reader has drained the buffer or closed the stream. */
async function drained(target: Writable, stop: AbortSignal): Promise<void> {
  const waited = new AbortController()
  const signal = AbortSignal.any([stop, waited.signal])
  try {
    await Promise.race([once(target, 'drain', { signal }), once(target, 'close', { signal })])
  } catch (error) {
    throw stop.aborted ? stop.reason : error
  } finally {
    waited.abort()
  }
}
