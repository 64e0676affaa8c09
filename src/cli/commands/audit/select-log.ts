import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { listLanes } from '../../../audit/log-files.ts'
import type { Archive, AuditFilter } from '../../../core/audit-archive.ts'
import { systemClock } from '../../../core/clock.ts'
import { ToolwayError } from '../../../core/errors.ts'
import { durationUnits } from '../../../lib/duration.ts'
import { createArchive } from '../../../stores/postgres/archive.ts'
import { connectPostgres, displayAddress, postgresErrorReason } from '../../../stores/postgres/connection.ts'
import type { AuditFilterOptions, LogPlaceOptions } from '../../command-table.ts'
import { type Output, relativeTo, type Shell, UsageError } from '../../kit.ts'
import { load } from '../../load.ts'

/** The log folder. `--path` takes precedence over the configuration. */
export async function auditFolder(shell: Shell, options: LogPlaceOptions): Promise<string> {
  if (options.path === undefined) return (await load(shell, options)).config.audit.path
  const folder = resolve(shell.cwd, options.path)
  if (statSync(folder, { throwIfNoEntry: false })?.isFile()) {
    throw new UsageError(`${options.path} is a file; --path must be a log folder.`)
  }
  return folder
}

/** Whether there is a log; prints a note if there is none. */
export function hasRecords(folder: string, output: Output, { cwd }: Shell): boolean {
  if (listLanes(folder).length > 0) return true
  output.note(`There is no audit log in ${relativeTo(folder, cwd)} yet: nothing has been recorded.`)
  return false
}

export function filterOf(options: AuditFilterOptions): AuditFilter {
  const { since, until, decision, errors, agent, principal, server, tool } = options
  const { reason, operation, code, call, parent, text } = options
  const filter = {
    ...{ agent, principal, server, tool, reason, operation, code, call, parent, text },
    since: since === undefined ? undefined : moment(since, '--since'),
    until: until === undefined ? undefined : moment(until, '--until'),
    decision: decision?.toUpperCase(),
    is_error: errors,
  }
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)) as AuditFilter
}

const calendar = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$/i

/** The time that an option specifies, in milliseconds: `7d` means seven days ago; a date and a time are also accepted. */
function moment(text: string, option: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(s|m|h|d|w)$/.exec(text.trim()) ?? []
  const units: Readonly<Record<string, number>> = { ...durationUnits, w: 7 * durationUnits.d }
  if (unit !== undefined) return Math.round(systemClock.now() - Number(number) * units[unit]!)
  const [written, zone] = calendar.exec(text.trim()) ?? []
  // Without a time zone, UTC applies, as in the log.
  const time = written === undefined ? Number.NaN : Date.parse(zone || written.length === 10 ? written : `${written}Z`)
  if (!Number.isNaN(time)) return time
  throw new UsageError(
    `Invalid time "${text}" (${option}).`,
    'Use a form such as 30m, 12h, 7d, 2026-03-01 or 2026-03-01T12:00:00Z.',
  )
}

/** The archive; undefined if none is configured, or if `--path` selects another log. */
export async function configuredArchive(shell: Shell, options: LogPlaceOptions) {
  if (options.path !== undefined) return undefined
  const { postgres } = (await load(shell, options)).config.stores
  if (!postgres || postgres.disabled) return undefined
  const { url } = postgres
  return {
    where: displayAddress(url),
    /** Connects and runs one query; does not convert PostgreSQL errors. */
    async ask<T>(question: (archive: Archive) => Promise<T>): Promise<T> {
      await using connection = await connectPostgres(url)
      return await question(createArchive(connection))
    },
  }
}

export type ConfiguredArchive = NonNullable<Awaited<ReturnType<typeof configuredArchive>>>

/** Queries the archive for `--postgres`. If the archive is unavailable, fails instead of reading the local log. */
export async function askArchive<T>(
  shell: Shell,
  options: LogPlaceOptions,
  question: (archive: Archive, where: string) => Promise<T>,
): Promise<T> {
  if (options.path !== undefined) throw new UsageError('--path names a log on disk and cannot be used with --postgres.')
  const configured = await configuredArchive(shell, options)
  if (!configured) {
    throw new UsageError('PostgreSQL is not configured.', 'Set stores.postgres.url, or omit --postgres.')
  }
  const { where, ask } = configured
  return ask((archive) => question(archive, where)).catch((cause) => {
    if (shell.interrupted.aborted || cause instanceof ToolwayError || cause instanceof UsageError) throw cause
    const message = `${where} could not be read: ${postgresErrorReason(cause)}.`
    throw new ToolwayError('SERVER_UNAVAILABLE', message, { cause })
  })
}
