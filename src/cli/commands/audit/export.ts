import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { readAllArrivals } from '../../../audit/archive/arrivals.ts'
import { archiveRows } from '../../../audit/reader.ts'
import { type AuditQuery, type AuditSearch, openCurrentSearch } from '../../../audit/search/search.ts'
import type { Archive, AuditFilter } from '../../../core/audit-archive.ts'
import {
  archiveCsvHeading,
  archiveCsvLine,
  csvHeading,
  csvLine,
  harmlessJson,
  jsonLine,
} from '../../../core/audit-export.ts'
import { type Clock, systemClock } from '../../../core/clock.ts'
import type { OptionsOf } from '../../command-table.ts'
import { createOutput, type Output, type Shell, UsageError } from '../../kit.ts'
import { showingProgress } from './query.ts'
import { askArchive, auditFolder, filterOf, hasRecords } from './select-log.ts'

type ExportOptions = OptionsOf<'audit export'>

/** Exports the records, oldest first; pauses while the reader is slow. */
export async function exportAudit(shell: Shell, options: ExportOptions, clock: Clock = systemClock): Promise<void> {
  const { format, raw } = options
  if (raw && format === 'csv') throw new UsageError('--raw prints JSON lines; it needs --format jsonl.')
  const output = createOutput(shell, options.json)
  const filter = filterOf(options, clock.now())
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
  // The file is readable by the owner only, like the log.
  const file = out === undefined ? undefined : createWriteStream(resolve(shell.cwd, out), { mode: 0o600 })
  const target = file?.on('error', () => {})
  const failed = (error: NodeJS.ErrnoException): never => {
    if (error !== file?.errored) throw error
    throw new UsageError(
      `Cannot write ${out}: ${error.code === 'ENOENT' ? 'its folder does not exist' : error.message}.`,
    )
  }
  const count = await writeTo(target ?? shell.stdout, lines, ending, shell.interrupted).catch(failed)
  if (!target) return
  target.end()
  await finished(target).catch(failed)
  output.note(`Wrote ${out} (${format === 'csv' ? count - 1 : count} ${raw ? 'records' : 'operations'}).`)
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
