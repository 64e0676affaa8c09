import type { AuditRow } from '../../audit/search/rows.ts'
import type { Output, Paint } from '../output.ts'
import { table } from '../table.ts'
import { oneLine } from '../width.ts'

/** What a terminal would act on or hide, and JSON lets through: DEL, C1, bidi, zero-width and tag characters. */
const harmful =
  /[\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu

/** JSON in which such characters are escaped: it means the same, and does nothing to whoever looks at it. */
export const harmlessJson = (json: string): string =>
  json.replace(harmful, (character) => {
    const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
  })

/** A row as one line of JSON. */
export const jsonLine = (row: AuditRow): string => harmlessJson(JSON.stringify(row))

const plain = (text: string): string => oneLine(text.replace(harmful, ''))

const target = ({ server, tool, operation }: AuditRow): string =>
  server === undefined && tool === undefined ? operation : [server, tool].filter(Boolean).join('.')

/** What was decided, and whether the tool itself failed. */
const outcome = ({ decision, ended, is_error }: AuditRow): string => {
  if (!ended) return 'no end recorded'
  return is_error && decision === 'ALLOW' ? 'ALLOW (tool error)' : (decision ?? '')
}

const why = ({ reason, code, rule, operation, decision }: AuditRow): string => {
  const own = decision === undefined && operation === 'gap' ? 'something is missing here:' : ''
  return [own, reason ?? code ?? '', rule ?? ''].filter(Boolean).join(' ')
}

const latency = ({ latency_ms: ms }: AuditRow): string =>
  ms === undefined ? '' : `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`

const colour = ({ decision, ended, is_error, operation }: AuditRow) => {
  if (!ended || operation === 'gap') return 'yellow'
  if (decision === 'ALLOW') return is_error ? 'yellow' : 'green'
  return 'red'
}

/** `2026-03-01T12:00:00.005Z  dev  ALLOW  fs.read_file  5 ms  agents.dev.allow.servers[0]` */
export function rowLine(row: AuditRow, paint: Paint): string {
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

/** Many rows as a table, with their arguments as far as there is room. */
export const rowTable = (rows: readonly AuditRow[], { paint, width }: Output): string[] =>
  table<AuditRow>(
    [
      { title: 'TIME', value: ({ time }) => plain(time), style: (cell) => paint('dim', cell), whole: true },
      { title: 'AGENT', value: ({ agent }) => plain(agent ?? '') },
      { title: 'DECISION', value: (row) => plain(outcome(row)), style: (cell, row) => paint(colour(row), cell) },
      { title: 'WHAT', value: (row) => plain(target(row)) },
      { title: 'TOOK', value: latency },
      { title: 'WHY', value: (row) => plain(why(row)) },
      { title: 'ARGUMENTS', value: (row) => plain(argumentsText(row)), style: (cell) => paint('dim', cell) },
    ],
    rows,
    { width, heading: (title) => paint('dim', title) },
  )

const argumentsText = ({ arguments: given }: AuditRow): string => (given === undefined ? '' : JSON.stringify(given))
