import { escapeCharacter } from '../lib/characters.ts'

/** DEL, C1, bidi, zero-width and tag characters: they affect a terminal or hide text, and JSON does not escape them. */
export const harmful =
  /[\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu

/** Escapes harmful characters, so that the JSON is safe to display and still means the same. */
export const harmlessJson = (json: string): string =>
  json.replace(harmful, (character) => {
    const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
  })

export const jsonLine = (row: object): string => harmlessJson(JSON.stringify(row))

export const csvHeading =
  'time,agent,principal,address,operation,server,tool,kind,write,decision,reason,rule,code,is_error,latency_ms,' +
  'requested,returned,tokens,call,parent,ended,arguments,lane,seq,' +
  'anonymous,asked,detail,approval,approver,attempts,findings,suppressed,target,available,served'

/** The heading for archived records, which may come from any host. */
export const archiveCsvHeading = `${csvHeading},host,replica`

const csvColumns = csvHeading.split(',')
const archiveColumns = archiveCsvHeading.split(',')

export const csvLine = (row: object): string => csvLineOf(row, csvColumns)
export const archiveCsvLine = (row: object): string => csvLineOf(row, archiveColumns)

const csvLineOf = (row: object, names: readonly string[]): string =>
  names.map((name) => cell((row as Readonly<Record<string, unknown>>)[name])).join(',')

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
