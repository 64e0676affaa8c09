import type { ListTimes } from './list.ts'
import type { Measured } from './load.ts'

export interface Report {
  readonly node: string
  readonly calls: Readonly<Record<string, readonly Measured[]>>
  readonly list: ListTimes
}

/** The target that the others are compared with. */
export const yardstick = 'bare proxy, HTTP server'

/** The report for people: one table per number of calls in flight. */
export function readable({ calls, list, node }: Report): string {
  const tables = Object.entries(calls).map(([inFlight, rows]) => {
    const base = rows.find(({ name }) => name === yardstick) as Measured
    const lines = rows.map((row) => [
      row.name.padEnd(30),
      row.callsPerSecond.toFixed(0).padStart(9),
      times(row.callsPerSecond / base.callsPerSecond),
      row.p50.toFixed(2).padStart(9),
      times(row.p50 / base.p50),
      row.p99.toFixed(2).padStart(9),
      times(row.p99 / base.p99),
    ])
    const head = [
      'tools/call echo'.padEnd(30),
      '  calls/s',
      '   ratio',
      '   p50 ms',
      '   ratio',
      '   p99 ms',
      '   ratio',
    ]
    return [`${inFlight} in flight`, head.join(''), ...lines.map((line) => line.join(''))].join('\n')
  })
  const { startToAnswerMs, firstMs, laterMs } = list
  const listed =
    `tools/list, 1,000 tools on 20 servers, second start: first ${firstMs.toFixed(1)} ms, later ${laterMs.toFixed(1)} ms ` +
    `(median); from the start of the process to the answer ${startToAnswerMs.toFixed(0)} ms`
  return ['', ...tables, listed, `ratios to: ${yardstick}; Node ${node}`, ''].join('\n\n')
}

const times = (ratio: number): string => `${ratio.toFixed(2)}x`.padStart(8)
