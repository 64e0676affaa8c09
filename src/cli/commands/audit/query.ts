import {
  type AuditPageQuery,
  type AuditSearchPage,
  type AuditSources,
  archivePage,
  emptyPage,
  searchAudit,
} from '../../../audit/reader.ts'
import type { CatchUpOptions } from '../../../audit/search/catch-up.ts'
import { searchLog } from '../../../audit/search/search.ts'
import { harmlessJson } from '../../../core/audit-export.ts'
import { type Clock, systemClock } from '../../../core/clock.ts'
import { ToolwayError } from '../../../core/errors.ts'
import { postgresErrorReason } from '../../../stores/postgres/connection.ts'
import {
  commandName,
  createOutput,
  createProgress,
  type ExitCode,
  exit,
  type Output,
  type Shell,
  UsageError,
} from '../../kit.ts'
import type { CommonOptions } from '../../load.ts'
import type { FilterOptions, LogLocationOptions } from './options.ts'
import { printJson, printRows } from './print.ts'
import {
  askArchive,
  auditFolder,
  type ConfiguredArchive,
  configuredArchive,
  filterOf,
  hasRecords,
} from './select-log.ts'

export interface QueryOptions extends CommonOptions, LogLocationOptions, FilterOptions {
  readonly limit: number
  readonly before?: string
  readonly raw?: boolean
  readonly local?: boolean
}

/** Prints the matching records, newest first: from PostgreSQL if it is configured, otherwise from the local log. */
export async function queryAudit(shell: Shell, options: QueryOptions, clock: Clock = systemClock): Promise<ExitCode> {
  const { limit, before, raw = false } = options
  const output = createOutput(shell, options.json)
  const folder = await auditFolder(shell, options)
  const query = { ...filterOf(options, clock.now()), limit, raw, before }
  if (options.postgres) {
    if (options.local) throw new UsageError("--local selects this machine's log and cannot be used with --postgres.")
    const page = await askArchive(shell, options, ({ search }) => search(query))
    print(archivePage(page, raw), raw, shell, output)
    return exit.ok
  }
  const archive = await configuredArchive(shell, options)
  let hasLog = true
  const local = async (query: AuditPageQuery) => {
    hasLog = hasRecords(folder, output, shell)
    const page = hasLog ? await showingProgress(shell, (progress) => searchLog(folder, query, progress)) : emptyPage
    return archive ? { ...page, source: 'local' as const } : page
  }
  const page = await searchAudit({ local, ...fromArchive(options.local ? undefined : archive, output) }, query)
  if (hasLog || (options.json && !raw)) print(page, raw, shell, output, hasLog)
  return exit.ok
}

/** The archive as a source. If it is unreachable, a note says that only the local log is searched. */
function fromArchive(
  archive: ConfiguredArchive | undefined,
  output: Output,
): Pick<AuditSources, 'archive' | 'unavailable'> {
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

function print(
  { rows, lines, next, source }: AuditSearchPage,
  raw: boolean,
  shell: Shell,
  output: Output,
  hasLog = true,
): void {
  if (raw) for (const line of lines) output.print(harmlessJson(line))
  else if (output.json) printJson({ rows, next, source }, output)
  else if (rows.length === 0) {
    if (hasLog) output.note('No matching records.')
  } else {
    printRows(rows, output)
    if (next) output.note(output.paintNote('dim', `More: ${commandName(shell.env)} audit query … --before ${next}`))
  }
}

/** Shows progress while the log is being indexed, which may take a long time after many new records. */
export async function showingProgress<T>(shell: Shell, work: (options: CatchUpOptions) => Promise<T>): Promise<T> {
  using progress = createProgress(shell)
  return await work({
    signal: shell.interrupted,
    onProgress: (records) => progress.show(`Reading the log: ${records} new records …`),
  })
}
