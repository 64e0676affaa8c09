import { type HistoryBatch, type StoredCall, type StoredStep, type Tally, tallyNumbers } from '../../core/history.ts'
import { jsonValue } from '../../json/parse-json.ts'

/** The columns of a call, in the order in which they are stored. */
export const callColumns = [
  'id',
  'parent',
  'at',
  'ms',
  'agent',
  'principal',
  'operation',
  'server',
  'name',
  'outcome',
  'code',
  'cache',
] as const

type CallRow = readonly [...(string | number | null)[], steps: readonly StoredStep[]]
type TallyRow = readonly [string, string, string, string, number, readonly number[], readonly number[]]

/**
 * A batch as text for the thread that writes it. Rows without names: the thread that serves calls does this, and it
 * takes half as long as an object with names, or as copying the objects.
 */
export function encodeBatch({ tallies, calls, captures }: HistoryBatch): string {
  const tallyRows = tallies.map(({ agent, server, operation, name, at, counts, latencies }): TallyRow => {
    const numbers = tallyNumbers.map((number) => counts[number])
    return [agent, server, operation, name, at, numbers, latencies]
  })
  const callRows = calls.map((call): CallRow => [...callColumns.map((column) => call[column]), call.steps])
  return JSON.stringify([tallyRows, callRows, captures])
}

export function decodeBatch(text: string): HistoryBatch {
  const [tallyRows, callRows, captures] = jsonValue(text) as [TallyRow[], CallRow[], HistoryBatch['captures']]
  return {
    captures,
    tallies: tallyRows.map(([agent, server, operation, name, at, numbers, latencies]) => ({
      ...{ agent, server, operation, name, at, latencies },
      counts: Object.fromEntries(tallyNumbers.map((number, index) => [number, numbers[index]])) as Tally['counts'],
    })),
    calls: callRows.map((row) => ({
      ...(Object.fromEntries(callColumns.map((column, index) => [column, row[index]])) as unknown as StoredCall),
      steps: row.at(-1) as readonly StoredStep[],
    })),
  }
}
