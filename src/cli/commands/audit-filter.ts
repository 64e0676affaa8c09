import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { lanesOf } from '../../audit/log-files.ts'
import type { AuditFilter } from '../../core/audit-filter.ts'
import { type CommonOptions, load } from '../load.ts'
import type { Output } from '../output.ts'
import { near, type Shell } from '../shell.ts'
import { UsageError } from '../usage.ts'
import type { FilterOptions, PlaceOptions } from './audit-options.ts'

/** The log that the user means: the one at `--path`, whatever the configuration says, or the configured one. */
export async function auditFolder(shell: Shell, options: CommonOptions & PlaceOptions): Promise<string> {
  if (options.path === undefined) return (await load(shell, options)).config.audit.path
  const folder = resolve(shell.cwd, options.path)
  if (statSync(folder, { throwIfNoEntry: false })?.isFile()) {
    throw new UsageError(`${options.path} is a file; --path takes the folder of a log.`)
  }
  return folder
}

/** Whether there is anything to read; if not, the user is told. */
export function hasRecords(folder: string, output: Output, { cwd }: Shell): boolean {
  if (lanesOf(folder).length > 0) return true
  output.note(`There is no audit log in ${near(folder, cwd)} yet: nothing has been recorded.`)
  return false
}

export function filterOf(options: FilterOptions, nowMs: number): AuditFilter {
  const { since, until, decision, errors, agent, principal, server, tool } = options
  const { reason, operation, code, call, parent, text } = options
  const given = {
    ...{ agent, principal, server, tool, reason, operation, code, call, parent, text },
    since: since === undefined ? undefined : moment(since, nowMs, '--since'),
    until: until === undefined ? undefined : moment(until, nowMs, '--until'),
    decision: decision?.toUpperCase(),
    is_error: errors,
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as AuditFilter
}

const factors: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
const calendar = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/i

/** `7d` ago, or a date. */
function moment(text: string, nowMs: number, option: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(s|m|h|d|w)$/.exec(text.trim()) ?? []
  if (unit !== undefined) return Math.round(nowMs - Number(number) * (factors[unit] as number))
  const time = calendar.test(text.trim()) ? Date.parse(text.trim()) : Number.NaN
  if (!Number.isNaN(time)) return time
  throw new UsageError(
    `${option} ${text} is no time.`,
    'Write it like 30m, 12h, 7d, 2026-03-01 or 2026-03-01T12:00:00Z.',
  )
}
