import type { AuditRow } from '../../../../src/serve/admin/contract.ts'

/** A field as text. Records of other versions may have other fields. */
export const textIn = (row: AuditRow, name: string): string => {
  const value = row[name]
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** Unique among the records of all replicas. */
export const keyOf = (row: AuditRow): string => {
  const replica = textIn(row, 'replica')
  return `${replica === '' ? '' : `${replica}:`}${textIn(row, 'lane')}:${textIn(row, 'seq')}`
}

/** Server and tool, or else the operation. */
export const targetOf = (row: AuditRow): string =>
  [textIn(row, 'server'), textIn(row, 'tool')].filter((part) => part !== '').join('.') || textIn(row, 'operation')

/** The arguments in one line, or else the operation. */
export function argumentsText(row: AuditRow): string {
  const text = row.arguments === undefined ? '' : JSON.stringify(row.arguments)
  return text === '' || text === '{}' ? textIn(row, 'operation') : text
}

/** In milliseconds since the epoch. */
export const timeOf = (row: AuditRow): number => {
  const at = Date.parse(textIn(row, 'time'))
  return Number.isNaN(at) ? 0 : at
}

/** Reason or code, and the rule. */
export const reasonOf = (row: AuditRow): string =>
  [textIn(row, 'reason') || textIn(row, 'code'), textIn(row, 'rule')].filter((part) => part !== '').join(' · ')

/** Null if the end of the call is not recorded. */
export const latencyOf = (row: AuditRow): number | null => (typeof row.latency_ms === 'number' ? row.latency_ms : null)
