import type { StoredRecord } from '../../audit/log-files.ts'
import { type AuditRow, createPairs, rowOfRecord, satisfies } from '../../audit/search/rows.ts'
import { followRecords, readRecent } from '../../audit/search/tail.ts'
import type { AuditFilter } from '../../core/audit-filter.ts'
import { type Clock, systemClock } from '../../core/clock.ts'
import { type ExitCode, exit } from '../exit.ts'
import { createOutput } from '../output.ts'
import type { Shell } from '../shell.ts'
import { askReplicas } from './audit-archive.ts'
import { auditFolder, filterOf, hasRecords } from './audit-filter.ts'
import type { TailOptions } from './audit-options.ts'
import { harmlessJson, jsonLine, rowLine } from './audit-print.ts'
import { tailArchive } from './audit-tail-archive.ts'

/** Shows the last operations, and those that come, straight from the files: no index is needed for it. */
export async function tailAudit(shell: Shell, options: TailOptions, clock: Clock = systemClock): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const filter = filterOf(options, clock.now())
  if (options.postgres) {
    await askReplicas(shell, options, (archive) => tailArchive(archive, filter, options, { output, clock, shell }))
    return exit.ok
  }
  const folder = await auditFolder(shell, options)
  if (!hasRecords(folder, output, shell) && !options.follow) return exit.ok
  const asLine = (row: AuditRow) => (options.json ? jsonLine(row) : rowLine(row, output.paint))
  const createView = options.raw ? () => recordsView(filter) : () => operationsView(filter, asLine)

  const { view, lines, positions } = await backlog(folder, options.lines, createView, options.follow === true)
  for (const line of lines) output.print(line)
  if (!options.follow) return exit.ok

  for await (const records of followRecords({ folder, from: positions, clock, signal: shell.interrupted })) {
    for (const stored of records) {
      const shown = view.add(stored)
      if (shown) output.print(shown.line)
    }
  }
  return exit.ok
}

interface Shown {
  readonly time: string
  readonly line: string
}

/** What is shown of records as they come. */
interface View {
  add(stored: StoredRecord): Shown | undefined
  /** What has begun and not ended. */
  open(): Shown[]
}

function operationsView(filter: AuditFilter, asLine: (row: AuditRow) => string): View {
  const pairs = createPairs()
  const shown = (row: AuditRow) => ({ time: row.time, line: asLine(row) })
  return {
    add(stored) {
      const row = pairs.add(stored)
      return row && satisfies(row, filter) ? shown(row) : undefined
    },
    open: () =>
      pairs
        .open()
        .filter((row) => satisfies(row, filter))
        .map(shown),
  }
}

const recordsView = (filter: AuditFilter): View => ({
  add: ({ lane, record, text }) =>
    satisfies(rowOfRecord(lane, record), filter) ? { time: record.time, line: harmlessJson(text) } : undefined,
  open: () => [],
})

/** Beyond this many records nobody waits for the last few that fit a filter: `query` finds them faster. */
const maxRecords = 1_000_000

/** Reads further and further back until enough is found. */
async function backlog(folder: string, count: number, createView: () => View, live: boolean) {
  for (let window = 4 * count + 64; ; window *= 8) {
    const { records, positions, whole } = await readRecent(folder, window)
    const view = createView()
    const ended = records.flatMap((stored) => view.add(stored) ?? [])
    // Those that go on while we look will be shown when they end.
    const shown = live ? ended : [...ended, ...view.open()].sort(byTime)
    if (shown.length < count && !whole && window < maxRecords) continue
    return { view, positions, lines: shown.slice(Math.max(0, shown.length - count)).map(({ line }) => line) }
  }
}

const byTime = (a: Shown, b: Shown): number => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0)
