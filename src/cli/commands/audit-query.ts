import { type Clock, systemClock } from '../../core/clock.ts'
import { type AuditSearch, openSearch } from '../../telemetry/audit-search/search.ts'
import { cursorOf } from '../../telemetry/audit-search/where.ts'
import { type ExitCode, exit } from '../exit.ts'
import type { CommonOptions } from '../load.ts'
import { createOutput } from '../output.ts'
import { createProgress } from '../progress.ts'
import { type Shell, spelling } from '../shell.ts'
import { auditFolder, filterOf, hasRecords } from './audit-filter.ts'
import type { FilterOptions, PlaceOptions } from './audit-options.ts'
import { harmlessJson, rowTable } from './audit-print.ts'

export interface QueryOptions extends CommonOptions, PlaceOptions, FilterOptions {
  readonly limit: number
  readonly before?: string
  readonly raw?: boolean
}

/** Finds operations, newest first. */
export async function queryAudit(shell: Shell, options: QueryOptions, clock: Clock = systemClock): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const folder = await auditFolder(shell, options)
  const filter = filterOf(options, clock.now())
  const query = { ...filter, limit: options.limit + 1, ...(options.before !== undefined && { before: options.before }) }
  if (!hasRecords(folder, output, shell)) {
    if (options.json && !options.raw) output.value({ rows: [], next: null })
    return exit.ok
  }
  using search = await openCurrent(folder, shell)
  if (options.raw) {
    for (const { text } of search.records({ ...query, limit: options.limit })) output.print(harmlessJson(text))
    return exit.ok
  }
  const found = [...search.query(query)]
  const rows = found.slice(0, options.limit)
  const last = rows.at(-1)
  const next = found.length > rows.length && last ? cursorOf(last) : null
  if (options.json) {
    output.print(harmlessJson(JSON.stringify({ rows, next }, undefined, output.terminal ? 2 : undefined)))
  } else if (rows.length === 0) {
    output.note('Nothing that was recorded fits.')
  } else {
    for (const line of rowTable(rows, output)) output.print(line)
    if (next)
      output.note(output.paintNote('dim', `There is more: ${spelling(shell.env)} audit query … --before ${next}`))
  }
  return exit.ok
}

/** The index, brought up to date, with some patience where that takes long. */
export async function openCurrent(folder: string, shell: Shell): Promise<AuditSearch> {
  const search = openSearch({ folder })
  try {
    using progress = createProgress(shell)
    await search.catchUp({
      signal: shell.interrupted,
      onProgress: (records) => progress.show(`Reading the log: ${records} new records …`),
    })
    return search
  } catch (error) {
    search[Symbol.dispose]()
    throw error
  }
}
