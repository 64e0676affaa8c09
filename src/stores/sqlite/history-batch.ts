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

type StepRow = readonly [name: string, startMs: number, ms: number | null, error: string | null]
type CallRow = readonly [...(string | number | null)[], steps: readonly StepRow[]]
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
  const callRows = calls.map(
    ({ id, parent, at, ms, agent, principal, operation, server, name, outcome, code, cache, steps }): CallRow => [
      ...[id, parent, at, ms, agent, principal, operation, server, name, outcome, code, cache],
      steps.map((step): StepRow => [step.name, step.startMs, step.ms, step.error]),
    ],
  )
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
      steps: decodeSteps(row.at(-1) as readonly StepRow[]),
    })),
  }
}

/** A call's steps as they are stored; empty if there are none. */
export const stepsText = (steps: readonly StoredStep[]): string =>
  steps.length === 0 ? '' : JSON.stringify(steps.map(({ name, startMs, ms, error }) => [name, startMs, ms, error]))

export const parseSteps = (text: string): readonly StoredStep[] =>
  text === '' ? [] : decodeSteps(jsonValue(text) as readonly StepRow[])

const decodeSteps = (rows: readonly StepRow[]): readonly StoredStep[] =>
  rows.map(([name, startMs, ms, error]) => ({ name, startMs, ms, error }))
