import { ExactNumber, jsonValue, parseExactly } from '../../json/parse-json.ts'
import { isRecord } from '../../lib/is-record.ts'

const minRows = 5
/** A table must save this share of the characters. */
const minSaving = 0.3

/**
 * A JSON array of uniform flat objects as a header line and a line per object, with commas between the values.
 * Undefined for other text, and where it does not save enough. A string that could be mistaken for something else is
 * written as in JSON.
 */
export function compactTable(text: string): string | undefined {
  if (!text.trimStart().startsWith('[')) return undefined
  const rows = parsedRows(text)
  const [first] = rows ?? []
  if (rows === undefined || rows.length < minRows || first === undefined) return undefined
  const keys = Object.keys(first)
  const lines = [keys.map(tableCell).join()]
  for (const row of rows) {
    const names = Object.keys(row)
    if (names.length !== keys.length || names.some((name, index) => name !== keys[index])) return undefined
    const values = Object.values(row)
    if (!values.every(isScalar)) return undefined
    lines.push(values.map(tableCell).join())
  }
  const table = lines.join('\n')
  return table.length <= text.length * (1 - minSaving) ? table : undefined
}

const isScalar = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || value instanceof ExactNumber

function parsedRows(text: string): readonly Record<string, unknown>[] | undefined {
  try {
    const value = parseExactly(text)
    return Array.isArray(value) && value.every(isRecord) ? value : undefined
  } catch {
    return undefined
  }
}

/** Text that needs no quotes: it is not empty, keeps its row and cell, and is not a number, a boolean or null. */
const tableCell = (value: unknown): string =>
  typeof value === 'string' && !/^$|^\s|\s$|[",\n\r]/.test(value) && !isLiteral(value) ? value : JSON.stringify(value)

function isLiteral(text: string): boolean {
  if (!/^[-\dtfn]/.test(text)) return false
  try {
    jsonValue(text)
    return true
  } catch {
    return false
  }
}
