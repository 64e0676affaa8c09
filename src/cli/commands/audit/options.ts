import { type Command, InvalidArgumentError, Option } from 'commander'
import type { CommonOptions } from '../../load.ts'

export interface FilterOptions {
  readonly since?: string
  readonly until?: string
  readonly agent?: string
  readonly principal?: string
  readonly server?: string
  readonly tool?: string
  readonly decision?: string
  readonly reason?: string
  readonly operation?: string
  readonly code?: string
  readonly call?: string
  readonly parent?: string
  readonly text?: string
  readonly errors?: boolean
}

export interface LogLocationOptions {
  readonly path?: string
  readonly postgres?: boolean
}

export function recordCount(text: string): number {
  const number = Number(text)
  if (/^\d+$/.test(text) && number <= 1_000_000) return number
  throw new InvalidArgumentError('Expected a number from 0 to 1000000.')
}

export function pageSize(text: string): number {
  if (/^\d+$/.test(text) && Number(text) > 0) return recordCount(text)
  throw new InvalidArgumentError('Expected a number from 1 to 1000000.')
}

const decisions = ['allow', 'deny', 'error', 'timeout']

function decision(text: string): string {
  if (decisions.includes(text.toLowerCase())) return text.toLowerCase()
  throw new InvalidArgumentError(`Expected one of ${decisions.join(', ')}.`)
}

export const withLogOptions = (command: Command): Command =>
  command
    .option('--path <folder>', 'log folder (default: as configured)')
    .option('--postgres', "read all replicas' records from PostgreSQL, in order of arrival")

/** Adds the filter options and those of `withLogOptions`. */
export const withFilterOptions = (command: Command): Command =>
  withLogOptions(command)
    .option('--since <when>', 'no older than this: 30m, 7d, 2026-03-01, 2026-03-01T12:00 (UTC)')
    .option('--until <when>', 'older than this')
    .option('--agent <name>', 'by this agent; * is a wildcard, here and below')
    .option('--principal <name>', 'by this principal')
    .option('--server <name>', 'on this server')
    .option('--tool <name>', 'of this tool, as tool or server.tool')
    .addOption(new Option('--decision <decision>', 'with this decision').choices(decisions).argParser(decision))
    .option('--reason <word>', 'for this reason')
    .option('--operation <name>', 'call_tool, read_resource, list …')
    .option('--code <code>', 'with this error code')
    .option('--call <id>', 'with this id')
    .option('--parent <id>', 'made within this call')
    .option('--text <text>', 'with this text in the arguments; also as name=value')
    .option('--errors', 'only calls in which the tool reported an error')

export interface TailOptions extends CommonOptions, LogLocationOptions, FilterOptions {
  readonly lines: number
  readonly follow?: boolean
  readonly raw?: boolean
}
