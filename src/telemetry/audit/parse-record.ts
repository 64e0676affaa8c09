import type { AuditRecord } from './record.ts'

/** The record in a line; none if it is no record. */
export function parseRecord(text: string): AuditRecord | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const { seq, time } = value as Partial<AuditRecord>
    return typeof seq === 'number' && typeof time === 'string' ? (value as AuditRecord) : undefined
  } catch {
    return undefined
  }
}
