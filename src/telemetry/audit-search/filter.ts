import { type AuditFilter, comparedFields } from '../../core/audit-filter.ts'
import { matches } from '../../core/wildcard.ts'
import type { AuditRow } from './row.ts'

export { type AuditFilter, comparedFields } from '../../core/audit-filter.ts'

/** Whether an operation is one of those: the meaning of a filter, which the index must agree with. */
export function satisfies(row: AuditRow, filter: AuditFilter): boolean {
  const time = Date.parse(row.time)
  if (filter.since !== undefined && !(time >= filter.since)) return false
  if (filter.until !== undefined && !(time < filter.until)) return false
  if (filter.is_error !== undefined && (row.is_error === true) !== filter.is_error) return false
  for (const field of comparedFields) {
    const wanted = filter[field]
    if (wanted !== undefined && !fits(wanted, row[field])) return false
  }
  if (filter.tool !== undefined && !isTool(row, filter.tool)) return false
  return filter.text === undefined || textOf(row.arguments).includes(filter.text.toLowerCase())
}

/** What is not there fits nothing but the empty text: `*` asks for those that have any. */
const fits = (wanted: string, value: string | undefined): boolean =>
  value === undefined ? wanted === '' : matches(wanted, value)

const isTool = ({ server, tool }: AuditRow, wanted: string): boolean =>
  fits(wanted, tool) || (server !== undefined && tool !== undefined && fits(wanted, `${server}.${tool}`))

/** Arguments as people search them: a line for each value, with its name. */
export function textOf(given: unknown): string {
  const lines: string[] = []
  const add = (value: unknown, name: string, depth: number): void => {
    if (typeof value !== 'object' || value === null) lines.push(name === '' ? String(value) : `${name}=${value}`)
    else if (depth < deepest) {
      for (const [key, member] of Object.entries(value)) add(member, Array.isArray(value) ? name : key, depth + 1)
    }
  }
  if (given !== undefined) add(given, '', 0)
  return lines.join('\n').toLowerCase()
}

/** Redaction leaves nothing deeper. */
const deepest = 64
