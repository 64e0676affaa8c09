import type { AuditRow } from '../../../../src/serve/admin/contract.ts'

/** A field of a record as a text; records of other versions may have other fields. */
export const textIn = (row: AuditRow, name: string): string => {
  const value = row[name]
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** What tells a record apart from all others, also from those of other replicas. */
export const keyOf = (row: AuditRow): string => {
  const replica = textIn(row, 'replica')
  return `${replica === '' ? '' : `${replica}:`}${textIn(row, 'lane')}:${textIn(row, 'seq')}`
}

/** Server and tool, or what else was done. */
export const targetOf = (row: AuditRow): string =>
  [textIn(row, 'server'), textIn(row, 'tool')].filter((part) => part !== '').join('.') || textIn(row, 'operation')

/** Its arguments in a line, or what was done where it had none. */
export function argumentsText(row: AuditRow): string {
  const text = row.arguments === undefined ? '' : JSON.stringify(row.arguments)
  return text === '' || text === '{}' ? textIn(row, 'operation') : text
}

/** When it was, in milliseconds since the epoch. */
export const timeOf = (row: AuditRow): number => {
  const at = Date.parse(textIn(row, 'time'))
  return Number.isNaN(at) ? 0 : at
}

/** Why it was decided so: the reason, or the code, and the rule. */
export const reasonOf = (row: AuditRow): string =>
  [textIn(row, 'reason') || textIn(row, 'code'), textIn(row, 'rule')].filter((part) => part !== '').join(' · ')

/** How long it took, or nothing where its end is not recorded. */
export const latencyOf = (row: AuditRow): number | null => (typeof row.latency_ms === 'number' ? row.latency_ms : null)
