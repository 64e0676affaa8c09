import type { OperationRow } from '../../../audit/search/rows.ts'
import { harmful, harmlessJson } from '../../../core/audit-export.ts'
import type { Output, Paint } from '../../kit.ts'
import { oneLine } from '../../table.ts'

/** Like `output.value`, with harmful characters escaped. */
export const printJson = (value: object, { print, terminal }: Output): void =>
  print(harmlessJson(JSON.stringify(value, undefined, terminal ? 2 : undefined)))

const plain = (text: string): string => oneLine(text.replace(harmful, ''))

const target = ({ server, tool, operation }: OperationRow): string =>
  server === undefined && tool === undefined ? operation : [server, tool].filter(Boolean).join('.')

const outcome = ({ decision, ended, is_error }: OperationRow): string => {
  if (!ended) return 'no end recorded'
  return is_error && decision === 'ALLOW' ? 'ALLOW (tool error)' : (decision ?? '')
}

const why = ({ reason, code, rule, operation, decision }: OperationRow): string => {
  const own = decision === undefined && operation === 'gap' ? 'records are missing here:' : ''
  return [own, reason ?? code ?? '', rule ?? ''].filter(Boolean).join(' ')
}

const latency = ({ latency_ms: ms }: OperationRow): string =>
  ms === undefined ? '' : `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`

const colour = ({ decision, ended, is_error, operation }: OperationRow) => {
  if (!ended || operation === 'gap') return 'yellow'
  if (decision === 'ALLOW') return is_error ? 'yellow' : 'green'
  return 'red'
}

/** One row as text: `2026-03-01T12:00:00.005Z  dev  ALLOW  fs.read_file  5 ms  agents.dev.allow.servers[0]` */
export function rowLine(row: OperationRow, paint: Paint): string {
  const cells = [
    paint('dim', plain(row.time)),
    plain(row.agent ?? ''),
    paint(colour(row), plain(outcome(row))),
    plain(target(row)),
    paint('dim', latency(row)),
    plain(why(row)),
  ]
  return cells.filter((cell) => oneLine(cell) !== '').join('  ')
}

export const printRows = (rows: readonly OperationRow[], { table, paint }: Output): void =>
  table<OperationRow>(rows, [
    { title: 'TIME', value: ({ time }) => plain(time), style: (cell) => paint('dim', cell), whole: true },
    { title: 'AGENT', value: ({ agent }) => plain(agent ?? '') },
    { title: 'DECISION', value: (row) => plain(outcome(row)), style: (cell, row) => paint(colour(row), cell) },
    { title: 'WHAT', value: (row) => plain(target(row)) },
    { title: 'TOOK', value: latency },
    { title: 'WHY', value: (row) => plain(why(row)) },
    { title: 'ARGUMENTS', value: (row) => plain(argumentsText(row)), style: (cell) => paint('dim', cell) },
  ])

const argumentsText = ({ arguments: args }: OperationRow): string => (args === undefined ? '' : JSON.stringify(args))
