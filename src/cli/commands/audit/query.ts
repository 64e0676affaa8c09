import { archiveRows } from '../../../audit/archive/arrivals.ts'
import type { AuditRow } from '../../../audit/search/rows.ts'
import { type AuditQuery, type AuditSearch, cursorOf, openSearch } from '../../../audit/search/search.ts'
import type { ArchivePage } from '../../../core/audit-archive.ts'
import { type Clock, systemClock } from '../../../core/clock.ts'
import { ToolwayError } from '../../../core/errors.ts'
import { reasonOf } from '../../../stores/postgres/connection.ts'
import { isArchiveCursor } from '../../../stores/postgres/where.ts'
import {
  createOutput,
  createProgress,
  type ExitCode,
  exit,
  type Output,
  type Shell,
  spelling,
  UsageError,
} from '../../kit.ts'
import type { CommonOptions } from '../../load.ts'
import type { FilterOptions, PlaceOptions } from './options.ts'
import { harmlessJson, rowTable } from './print.ts'
import { askReplicas, auditFolder, configuredArchive, filterOf, hasRecords } from './select-log.ts'

export interface QueryOptions extends CommonOptions, PlaceOptions, FilterOptions {
  readonly limit: number
  readonly before?: string
  readonly raw?: boolean
  readonly local?: boolean
}

/** What was found, and where: that is told only where there is a choice. */
interface Answer {
  readonly rows: readonly AuditRow[]
  /** The records themselves, where they are wanted. */
  readonly lines: readonly string[]
  readonly next: string | null
  readonly source?: 'postgres' | 'local'
}

type Asked = AuditQuery & { readonly limit: number; readonly raw: boolean }

/** Finds operations, newest first: those of all replicas where PostgreSQL has them, else those of this machine. */
export async function queryAudit(shell: Shell, options: QueryOptions, clock: Clock = systemClock): Promise<ExitCode> {
  const { limit, before, raw = false } = options
  const output = createOutput(shell, options.json)
  const folder = await auditFolder(shell, options)
  const asked: Asked = { ...filterOf(options, clock.now()), limit, raw, ...(before !== undefined && { before }) }
  if (options.postgres) {
    if (options.local) throw new UsageError('--local asks the log of this machine; it does not go with --postgres.')
    const page = await askReplicas(shell, options, ({ search }) => search(asked))
    print(answerOf(page, raw), raw, shell, output)
    return exit.ok
  }
  const shared = await inArchive(shell, options, asked, output)
  if (shared.answer) {
    print(shared.answer, raw, shell, output)
    return exit.ok
  }
  const there = hasRecords(folder, output, shell)
  const answer = there ? await inFolder(folder, asked, shell) : nothing
  if (there || (options.json && !raw)) {
    print({ ...answer, ...(shared.configured && { source: 'local' as const }) }, raw, shell, output, there)
  }
  return exit.ok
}

const nothing: Answer = { rows: [], lines: [], next: null }

async function inFolder(folder: string, { limit, raw, ...query }: Asked, shell: Shell): Promise<Answer> {
  using search = await openCurrent(folder, shell)
  if (raw) return { ...nothing, lines: [...search.records({ ...query, limit })].map(({ text }) => text) }
  const found = [...search.query({ ...query, limit: limit + 1 })]
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  return { ...nothing, rows, next: found.length > limit && last ? cursorOf(last) : null }
}

/** A search goes on where it began; a new one asks PostgreSQL first. */
async function inArchive(
  shell: Shell,
  options: QueryOptions,
  asked: Asked,
  output: Output,
): Promise<{ readonly configured: boolean; readonly answer?: Answer }> {
  const archive = await configuredArchive(shell, options)
  if (!archive) return { configured: false }
  const fromThere = asked.before !== undefined && isArchiveCursor(asked.before)
  if (options.local || (asked.before !== undefined && !fromThere)) return { configured: true }
  try {
    return { configured: true, answer: answerOf(await archive.ask(({ search }) => search(asked)), asked.raw) }
  } catch (thrown) {
    if (thrown instanceof ToolwayError) throw thrown
    const why = `${archive.where} cannot be asked (${reasonOf(thrown)})`
    if (fromThere) throw new ToolwayError('AUDIT_UNAVAILABLE', `${why}, and this search began there; try again later.`)
    output.note(`${why}: this is only what this machine recorded.`)
    return { configured: true }
  }
}

const answerOf = ({ found, next }: ArchivePage, raw: boolean): Answer => ({
  rows: raw ? [] : archiveRows(found),
  lines: raw ? found.map(({ line }) => line) : [],
  next,
  source: 'postgres',
})

function print({ rows, lines, next, source }: Answer, raw: boolean, shell: Shell, output: Output, told = true): void {
  if (raw) for (const line of lines) output.print(harmlessJson(line))
  else if (output.json) {
    const answer = { rows, next, ...(source && { source }) }
    output.print(harmlessJson(JSON.stringify(answer, undefined, output.terminal ? 2 : undefined)))
  } else if (rows.length === 0) {
    if (told) output.note('Nothing that was recorded fits.')
  } else {
    for (const line of rowTable(rows, output)) output.print(line)
    if (next)
      output.note(output.paintNote('dim', `There is more: ${spelling(shell.env)} audit query … --before ${next}`))
  }
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
