import type { StoredRecord } from '../audit/read.ts'
import type { BeforeRecord } from '../audit/record.ts'
import { type AuditRow, isGap, rowOfBegin, rowOfEnd, rowOfGap } from './row.ts'

/** Makes operations of records as they come. */
export interface Pairs {
  /** The operation that this record completes; none for a beginning, which waits for its end. */
  add(stored: Pick<StoredRecord, 'lane' | 'record'>): AuditRow | undefined
  /** Operations whose end has not come. */
  open(): AuditRow[]
}

/** Operations that run at once; more than this are those that nobody ended. */
const maxOpen = 10_000

export function createPairs(): Pairs {
  const begun = new Map<string, { readonly lane: string; readonly record: BeforeRecord }>()
  return {
    add({ lane, record }) {
      if (isGap(record)) return rowOfGap(lane, record)
      if (record.phase === undefined) return undefined
      const key = `${lane} ${record.call}`
      if (record.phase === 'after') {
        const before = begun.get(key)
        begun.delete(key)
        return rowOfEnd(lane, record, before?.record)
      }
      begun.set(key, { lane, record })
      if (begun.size > maxOpen) begun.delete(begun.keys().next().value as string)
      return undefined
    },
    open: () => [...begun.values()].map(({ lane, record }) => rowOfBegin(lane, record)),
  }
}
