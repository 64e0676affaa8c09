import type { StoredRecord } from '../audit/read.ts'
import { type CatchUpOptions, catchUp } from './catch-up.ts'
import { countGroups, type Group, type GroupField } from './count.ts'
import type { AuditFilter } from './filter.ts'
import { type Found, type FoundQuery, found } from './found.ts'
import { isDamage, openIndex, removeIndex } from './index-file.ts'
import type { AuditRow } from './row.ts'

export interface AuditQuery extends FoundQuery {
  readonly limit?: number
}

/** Finds operations in a log. What is not in the index yet is not found: `catchUp` first. */
export interface AuditSearch extends Disposable {
  /** Brings the index up to date; settles with the number of new records. */
  catchUp(options?: CatchUpOptions): Promise<number>
  /** One row for each operation. */
  query(query: AuditQuery): Generator<AuditRow>
  /** The records themselves. */
  records(query: AuditQuery): Generator<StoredRecord>
  /** How many operations there are for each combination of these fields, most first. */
  count(filter: AuditFilter, by: readonly GroupField[]): Group[]
}

/** Opens the index of a log for reading; the log itself is never touched. The folder must be there. */
export function openSearch({ folder }: { readonly folder: string }): AuditSearch {
  let database = openIndex(folder)
  return {
    async catchUp(options = {}) {
      try {
        return await catchUp(database, folder, options)
      } catch (error) {
        if (!isDamage(error)) throw error
        database.close()
        removeIndex(folder)
        database = openIndex(folder)
        return catchUp(database, folder, options)
      }
    },
    query: ({ limit, ...query }) => first(limit, found(database, folder, query, false), ({ row }) => row),
    records: ({ limit, ...query }) => first(limit, found(database, folder, query, true), ({ stored }) => stored),
    count: (filter, by) => countGroups(database, folder, filter, by),
    [Symbol.dispose]: () => database.close(),
  }
}

function* first<T>(limit = Number.MAX_SAFE_INTEGER, all: Generator<Found>, part: (found: Found) => T): Generator<T> {
  let left = limit
  if (left <= 0) return
  for (const one of all) {
    yield part(one)
    if (--left <= 0) return
  }
}
