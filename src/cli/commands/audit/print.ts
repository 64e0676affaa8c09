import type { ArchiveRow } from '../../../audit/reader.ts'
import type { OperationRow } from '../../../audit/search/rows.ts'
import { escapeCharacter } from '../../../lib/hidden-characters.ts'
import type { Output, Paint } from '../../kit.ts'
import { oneLine } from '../../table.ts'

/** DEL, C1, bidi, zero-width and tag characters: they affect a terminal or hide text, and JSON does not escape them. */
const harmful =
  /[\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu

/** Escapes harmful characters, so that the JSON is safe to display and still means the same. */
export const harmlessJson = (json: string): string =>
  json.replace(harmful, (character) => {
    const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
  })

export const jsonLine = (row: OperationRow): string => harmlessJson(JSON.stringify(row))

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

export const csvHeading =
  'time,agent,principal,address,operation,server,tool,kind,write,decision,reason,rule,code,is_error,latency_ms,' +
  'requested,returned,tokens,call,parent,ended,arguments,lane,seq'

/** The heading for archived records, which may come from any host. */
export const archiveCsvHeading = `${csvHeading},host,replica`

const columns = csvHeading.split(',') as (keyof OperationRow)[]
const archiveColumns = archiveCsvHeading.split(',') as (keyof ArchiveRow)[]

export const csvLine = (row: OperationRow): string => columns.map((column) => cell(row[column])).join(',')
export const archiveCsvLine = (row: ArchiveRow): string => archiveColumns.map((column) => cell(row[column])).join(',')

/** Matches text that a spreadsheet would treat as a formula, even after blanks or with full-width characters. */
const formula = /^[\s\0]*[=+\-@＝＋－＠|%]|^[\t\r\n]/

/** Matches control characters and characters that hide or reverse text. */
const unprintable =
  /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e0fff}]/gu

function cell(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const text =
    typeof value === 'string' ? value.replace(unprintable, escapeCharacter) : harmlessJson(JSON.stringify(value))
  // The apostrophe makes spreadsheets treat the cell as text.
  const defused = formula.test(text) ? `'${text}` : text
  return /[",\r\n;\t']|^\s|\s$/.test(defused) ? `"${defused.replaceAll('"', '""')}"` : defused
}
