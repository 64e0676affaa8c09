import { archiveNames } from '../../core/audit-archive.ts'
import type { AuditRecord } from './record.ts'

/**
 * The record in a line; none if it has not the form of one. Somebody may have written anything into a line, and must
 * not get any further with it than this: whoever reads the log goes on with the next one.
 */
export function parseRecord(text: string): AuditRecord | undefined {
  try {
    const value = JSON.parse(text) as Readonly<Record<string, unknown>>
    return hasForm(value) ? (value as unknown as AuditRecord) : undefined
  } catch {
    return undefined
  }
}

const hasForm = (value: Readonly<Record<string, unknown>>): boolean =>
  Number.isSafeInteger(value.seq) &&
  [value.time, value.prev, value.hash, value.operation].every(isText) &&
  archiveNames.every((name) => value[name] === undefined || isText(value[name])) &&
  (value.phase === undefined || ((value.phase === 'before' || value.phase === 'after') && isText(value.call)))

const isText = (value: unknown): boolean => typeof value === 'string'
