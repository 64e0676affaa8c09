import { followArrivals } from '../../../audit/archive/arrivals.ts'
import type { StoredRecord } from '../../../audit/log-files.ts'
import { type ArchiveRow, archiveRows } from '../../../audit/reader.ts'
import { createRecordPairing, matchesFilter, type OperationRow, rowOf } from '../../../audit/search/index-file.ts'
import { followRecords, readRecent } from '../../../audit/search/tail.ts'
import type { Archive, ArchiveArrival, AuditFilter } from '../../../core/audit-archive.ts'
import { harmlessJson, jsonLine } from '../../../core/audit-export.ts'
import { type Clock, systemClock } from '../../../core/clock.ts'
import type { OptionsOf } from '../../command-table.ts'
import { createOutput, type Output, type Shell } from '../../kit.ts'
import { oneLine } from '../../table.ts'
import { rowLine } from './query.ts'
import { askArchive, auditFolder, filterOf, hasRecords } from './select-log.ts'

type TailOptions = OptionsOf<'audit tail'>

/** Prints the latest records. Reads the log files directly, without the index. */
export async function tailAudit(shell: Shell, options: TailOptions, clock: Clock = systemClock): Promise<void> {
  const output = createOutput(shell, options.json)
  const filter = filterOf(options)
  if (options.postgres) {
    await askArchive(shell, options, (archive) => tailArchive(archive, filter, options, { output, clock, shell }))
    return
  }
  const folder = await auditFolder(shell, options)
  if (!hasRecords(folder, output, shell) && !options.follow) return
  const asLine = (row: OperationRow) => (options.json ? jsonLine(row) : rowLine(row, output.paint))
  const openView = () => createView(filter, options.raw ? undefined : asLine)
  const { view, lines, positions } = await backlog(folder, options.lines, openView, options.follow === true)
  for (const line of lines) output.print(line)
  if (!options.follow) return

  for await (const records of followRecords({ folder, from: positions, clock, signal: shell.interrupted })) {
    for (const { line } of records.flatMap(view.add)) output.print(line)
  }
}

interface Shown {
  readonly time: string
  readonly line: string
}

/** Shows the matching operations as `asLine` does, or, without it, all matching records. */
function createView(filter: AuditFilter, asLine: ((row: OperationRow) => string) | undefined) {
  const pairs = createRecordPairing()
  const shownRow = (row: OperationRow, line: (row: OperationRow) => string): Shown[] =>
    matchesFilter(row, filter) ? [{ time: row.time, line: line(row) }] : []
  return {
    add(stored: StoredRecord): Shown[] {
      if (!asLine) return shownRow(rowOf(stored.lane, stored.record), () => harmlessJson(stored.text))
      const row = pairs.add(stored)
      return row ? shownRow(row, asLine) : []
    },
    open: (): Shown[] => (asLine ? pairs.open().flatMap((row) => shownRow(row, asLine)) : []),
  }
}

/** Maximum number of records to search. `query` finds rare matches faster. */
const maxRecords = 1_000_000

/** Finds the latest rows, reading further back until there are enough. */
async function backlog(folder: string, count: number, openView: () => ReturnType<typeof createView>, live: boolean) {
  for (let window = 4 * count + 64; ; window *= 8) {
    const { records, positions, whole } = await readRecent(folder, window)
    const view = openView()
    const ended = records.flatMap(view.add)
    // With `--follow`, an operation in progress is shown when it ends, so leave it out here.
    const shown = live ? ended : [...ended, ...view.open()].sort(byTime)
    if (shown.length < count && !whole && window < maxRecords) continue
    return { view, positions, lines: shown.slice(Math.max(0, shown.length - count)).map(({ line }) => line) }
  }
}

const byTime = (a: Shown, b: Shown): number => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0)

async function tailArchive(
  archive: Archive,
  filter: AuditFilter,
  { lines, follow = false, raw = false }: TailOptions,
  { output, clock, shell }: { readonly output: Output; readonly clock: Clock; readonly shell: Shell },
): Promise<void> {
  const asLine = (row: ArchiveRow) =>
    output.json ? jsonLine(row) : `${rowLine(row, output.paint)}  ${output.paint('dim', oneLine(row.host))}`
  const show = (arrived: readonly ArchiveArrival[]) => {
    if (raw) for (const { line } of arrived) output.print(harmlessJson(line))
    else for (const row of archiveRows(arrived)) if (row.ended || !follow) output.print(asLine(row))
  }
  const wanted = { ...filter, raw }
  const [newest] = follow ? await archive.arrivals({ which: 'last', limit: 1, raw: true }) : []
  const last = await archive.arrivals({ ...wanted, which: 'last', limit: lines })
  show(last)
  if (!follow) return
  const from = newest?.position ?? 0
  const signal = shell.interrupted
  for await (const arrived of followArrivals({ archive, wanted, from, known: last, clock, signal })) show(arrived)
}
