import { type ArchiveRow, archiveRows, followArrivals } from '../../audit/archive/arrivals.ts'
import type { Archive, Arrived } from '../../core/audit-archive.ts'
import type { AuditFilter } from '../../core/audit-filter.ts'
import type { Clock } from '../../core/clock.ts'
import type { Output } from '../output.ts'
import type { Shell } from '../shell.ts'
import { oneLine } from '../width.ts'
import type { TailOptions } from './audit-options.ts'
import { harmlessJson, jsonLine, rowLine } from './audit-print.ts'

/** Shows what arrived last from any replica, and what arrives. */
export async function tailArchive(
  archive: Archive,
  filter: AuditFilter,
  { lines, follow = false, raw = false }: TailOptions,
  { output, clock, shell }: { readonly output: Output; readonly clock: Clock; readonly shell: Shell },
): Promise<void> {
  const asLine = (row: ArchiveRow) =>
    output.json ? jsonLine(row) : `${rowLine(row, output.paint)}  ${output.paint('dim', oneLine(row.host))}`
  // Those that go on while we look will be shown when they end.
  const isShown = (row: ArchiveRow) => row.ended || !follow
  const show = (arrived: readonly Arrived[]) => {
    if (raw) for (const { line } of arrived) output.print(harmlessJson(line))
    else for (const row of archiveRows(arrived)) if (isShown(row)) output.print(asLine(row))
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
