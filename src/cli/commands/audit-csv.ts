import type { ArchiveRow } from '../../audit/archive/arrivals.ts'
import type { AuditRow } from '../../audit/search/rows.ts'

const columns = [
  'time',
  'agent',
  'principal',
  'address',
  'operation',
  'server',
  'tool',
  'kind',
  'write',
  'decision',
  'reason',
  'rule',
  'code',
  'is_error',
  'latency_ms',
  'requested',
  'returned',
  'tokens',
  'call',
  'parent',
  'ended',
  'arguments',
  'lane',
  'seq',
] as const satisfies readonly (keyof AuditRow)[]

/** Where it was recorded, too, where that may be anywhere. */
const archiveColumns = [...columns, 'host', 'replica'] as const satisfies readonly (keyof ArchiveRow)[]

export const csvHeading = columns.join(',')
export const csvLine = (row: AuditRow): string => columns.map((column) => cell(row[column])).join(',')

export const archiveCsvHeading = archiveColumns.join(',')
export const archiveCsvLine = (row: ArchiveRow): string => archiveColumns.map((column) => cell(row[column])).join(',')

/** What a spreadsheet takes for the beginning of a formula, also after blanks and in its full-width form. */
const formula = /^[\s\0]*[=+\-@＝＋－＠|%]|^[\t\r\n]/

/** Control characters and those that hide or turn text have no business in a table. */
const harmful =
  /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e0fff}]/gu

function cell(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const text = (typeof value === 'string' ? value : JSON.stringify(value)).replace(harmful, escaped)
  // The apostrophe makes it a text to every spreadsheet.
  const defused = formula.test(text) ? `'${text}` : text
  return /[",\r\n;\t']|^\s|\s$/.test(defused) ? `"${defused.replaceAll('"', '""')}"` : defused
}

const escaped = (character: string): string => `\\u{${(character.codePointAt(0) as number).toString(16)}}`
