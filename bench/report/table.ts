import { percent, type Row, type Verdict } from '../measure/verdict.ts'
import type { Report } from './report.ts'

const columns = ['what', 'measured', 'target', 'verdict', 'spread'] as const

/** The report for people. */
export function readable(report: Report): string {
  const { rows, others, machine, node, rounds, turnSeconds } = report
  const scenarios = [...new Set(rows.map(({ scenario }) => scenario))]
  const blocks = scenarios.map((scenario) =>
    block(
      scenario,
      rows.filter((row) => row.scenario === scenario),
    ),
  )
  const counted = count(rows)
  return [
    '',
    ...blocks,
    Object.entries(counted)
      .map(([verdict, number]) => `${number} ${verdict}`)
      .join(', '),
    `${machine}; Node ${node}; ${rounds} rounds, turns of ${turnSeconds} s; other processes took ${percent(others.median)} ` +
      `of the machine (median of rounds; at most ${percent(others.most)})`,
    '',
  ].join('\n\n')
}

function count(rows: readonly Row[]): Partial<Record<Verdict, number>> {
  const counted: Partial<Record<Verdict, number>> = {}
  for (const { verdict } of rows) counted[verdict] = (counted[verdict] ?? 0) + 1
  return counted
}

function block(scenario: string, rows: readonly Row[]): string {
  const widths = columns.map((column) => Math.max(column.length, ...rows.map((row) => row[column].length)))
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, at) => cell.padEnd(widths[at] as number))
      .join('  ')
      .trimEnd()
  const lines = rows.flatMap((row) => [
    line(columns.map((column) => row[column])),
    ...(row.note === undefined ? [] : [`    ${row.note.replaceAll(/\s+/g, ' ')}`]),
  ])
  return [scenario.toUpperCase(), line(columns), ...lines].join('\n')
}
