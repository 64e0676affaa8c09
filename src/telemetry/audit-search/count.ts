import type { DatabaseSync } from 'node:sqlite'
import type { AuditFilter } from './filter.ts'
import { found } from './found.ts'
import { whereOf } from './where.ts'

export type GroupField = 'agent' | 'principal' | 'server' | 'tool' | 'operation' | 'decision' | 'reason' | 'code'

export interface Group {
  /** In the order of the fields asked for; null where a row has no such field. */
  readonly key: readonly (string | null)[]
  readonly count: number
  /** Those whose tool said that it failed. */
  readonly errors: number
}

/** How many operations there are for each combination of these fields, most first. */
export const countGroups = (
  database: DatabaseSync,
  folder: string,
  filter: AuditFilter,
  by: readonly GroupField[],
): Group[] => (filter.text === undefined ? inIndex(database, filter, by) : inRows(database, folder, filter, by))

function inIndex(database: DatabaseSync, filter: AuditFilter, by: readonly GroupField[]): Group[] {
  const where = whereOf({ filter, raw: false, cursor: undefined, newestFirst: true, words: false })
  const fields = by.map((field, index) => `r.${field} AS k${index},`).join(' ')
  const groups = by.length > 0 ? `GROUP BY ${by.map((field) => `r.${field}`).join(', ')}` : ''
  const statement = database.prepare(
    `SELECT ${fields} count(*) AS count, total(r.is_error) AS errors
     FROM records r WHERE ${where.sql} ${groups} ORDER BY count(*) DESC`,
  )
  return statement.all(...where.values).map((row) => ({
    key: by.map((_, index) => row[`k${index}`] as string | null),
    count: Number(row.count),
    errors: Number(row.errors),
  }))
}

/** The index knows only roughly where a text is, so the records are read. */
function inRows(database: DatabaseSync, folder: string, filter: AuditFilter, by: readonly GroupField[]): Group[] {
  const groups = new Map<string, Group>()
  for (const { row } of found(database, folder, filter, false)) {
    const key = by.map((field) => row[field] ?? null)
    const id = JSON.stringify(key)
    const { count, errors } = groups.get(id) ?? { count: 0, errors: 0 }
    groups.set(id, { key, count: count + 1, errors: errors + (row.is_error ? 1 : 0) })
  }
  return [...groups.values()].sort((a, b) => b.count - a.count)
}
