import type { AuditRow } from '../../../../src/serve/admin/contract.ts'

/** A field as text. Records of other versions may have other fields. */
export const textField = (row: AuditRow, name: string): string => {
  const value = row[name]
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** Unique among the records of all replicas. */
export const recordKey = (row: AuditRow): string => {
  const replica = textField(row, 'replica')
  return `${replica === '' ? '' : `${replica}:`}${textField(row, 'lane')}:${textField(row, 'seq')}`
}

/** Server and tool, or else the operation. */
export const targetOf = (row: AuditRow): string =>
  [textField(row, 'server'), textField(row, 'tool')].filter((part) => part !== '').join('.') ||
  textField(row, 'operation')

/** The arguments in one line, or else the operation. */
export function argumentsText(row: AuditRow): string {
  const text = row.arguments === undefined ? '' : JSON.stringify(row.arguments)
  return text === '' || text === '{}' ? textField(row, 'operation') : text
}

/** In milliseconds since the epoch. */
export const timeOf = (row: AuditRow): number => {
  const at = Date.parse(textField(row, 'time'))
  return Number.isNaN(at) ? 0 : at
}

/** Reason or code, and the rule. */
export const reasonOf = (row: AuditRow): string =>
  [textField(row, 'reason') || textField(row, 'code'), textField(row, 'rule')].filter((part) => part !== '').join(' · ')

/** Null if the end of the call is not recorded. */
export const latencyOf = (row: AuditRow): number | null => (typeof row.latency_ms === 'number' ? row.latency_ms : null)
