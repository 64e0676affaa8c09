import type { AuditRow } from '../../../../src/admin/contract.ts'
import { parseTime } from '../../routing/time-range.ts'

/** The filters in the address. */
export function filterIn(query: URLSearchParams) {
  const param = (name: string) => query.get(name) || undefined
  return {
    agent: param('agent'),
    principal: param('principal'),
    server: param('server'),
    tool: param('tool'),
    parent: param('parent'),
    decision: param('decision'),
    text: param('q'),
    from: parseTime(query.get('from')),
    to: parseTime(query.get('to')),
  }
}

/**
 * A record's field as text; empty if the field is missing or is not a string or a number. Records from other versions
 * may have other fields.
 */
export const textField = (row: AuditRow, name: string): string => {
  const value = row[name]
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** A key that is unique among the records of all replicas. */
export const recordKey = (row: AuditRow): string => {
  const replica = textField(row, 'replica')
  return `${replica === '' ? '' : `${replica}:`}${textField(row, 'lane')}:${textField(row, 'seq')}`
}

/** A record's server and tool, or else its operation. */
export const targetOf = (row: AuditRow): string =>
  [textField(row, 'server'), textField(row, 'tool')].filter((part) => part !== '').join('.') ||
  textField(row, 'operation')

/** A record's arguments in one line, or else its operation. */
export function argumentsText(row: AuditRow): string {
  const text = row.arguments === undefined ? '' : JSON.stringify(row.arguments)
  return text === '' || text === '{}' ? textField(row, 'operation') : text
}

/** A record's time in milliseconds since the epoch. 0 if the time is not valid. */
export const timeOf = (row: AuditRow): number => {
  const at = Date.parse(textField(row, 'time'))
  return Number.isNaN(at) ? 0 : at
}

/** A record's reason or code, and its rule. */
export const reasonOf = (row: AuditRow): string =>
  [textField(row, 'reason') || textField(row, 'code'), textField(row, 'rule')].filter((part) => part !== '').join(' · ')

/** The duration of a call. Null if the end of the call is not recorded. */
export const latencyOf = (row: AuditRow): number | null => (typeof row.latency_ms === 'number' ? row.latency_ms : null)
