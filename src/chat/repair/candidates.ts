import { skipGap } from './gap.ts'
import { isNextMember, isQuotedKey } from './keys.ts'
import { readMembers } from './object.ts'
import { noValue, type Purse, type Reader, readerAt, tooCostly } from './reader.ts'
import type { Lack, Repair } from './report.ts'
import { pastSpaces } from './signs.ts'
import { readValue } from './value.ts'

/** A value that was found in a text, from where to where. */
export interface Candidate {
  readonly value: unknown
  readonly repairs: readonly Repair[]
  readonly complete: boolean
  readonly lacks: Lack | undefined
  readonly from: number
  readonly past: number
  /** How much of the text it explains, less what may be prose. */
  readonly worth: number
}

/** Whoever writes more values than this has not answered a question. */
const most = 256

/** An attempt that fails costs more than the characters that it has looked at. */
const stepsPerFailure = 64

const start = /[{[｛［]/g

/** Every object and list that a text may hold, however badly written. */
export function candidatesIn(text: string, purse: Purse): Candidate[] {
  const found: Candidate[] = []
  const add = (candidate: Candidate | undefined): void => {
    if (candidate) found.push(candidate)
  }
  const first = pastSpaces(text, 0)
  if (isQuotedKey(text, first)) add(attempt(readerAt(text, first, purse), readUnopened))
  let at = 0
  while (purse.left > 0 && found.length < most) {
    start.lastIndex = at
    const match = start.exec(text)
    if (!match) break
    const candidate = attempt(readerAt(text, match.index, purse), readWhole)
    add(candidate)
    // What may be prose may hold the value: `see [the note: {"a": 1}`.
    at = candidate && candidate.worth === candidate.past - candidate.from ? candidate.past : match.index + 1
  }
  return found.toSorted((one, other) => other.worth - one.worth)
}

function attempt(reader: Reader, read: (reader: Reader) => unknown): Candidate | undefined {
  const from = reader.at
  try {
    const value = read(reader)
    const { at: past, repairs, complete, lacks, unquoted } = reader
    if (repairs.size === 0 && !isJson(reader.text.slice(from, past))) repairs.add('replaced odd characters')
    return { value, repairs: [...repairs], complete, lacks, from, past, worth: past - from - 2 * unquoted }
  } catch (error) {
    if (error !== noValue && error !== tooCostly) throw error
    reader.purse.left = error === tooCostly ? 0 : reader.purse.left - stepsPerFailure
    return undefined
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Reads a value, and the members that follow it where its brace was closed too early. */
function readWhole(reader: Reader): unknown {
  const value = readValue(reader, 'item')
  for (;;) {
    const next = pastSpaces(reader.text, reader.at)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    if (!isObject || !isNextMember(reader.text, next)) return value
    reader.at = next + 1
    reader.open.push('{')
    reader.repairs.add('mended brackets')
    readMembers(reader, value as Record<string, unknown>, readValue)
  }
}

/** Reads members whose opening brace is missing. */
function readUnopened(reader: Reader): unknown {
  reader.open.push('{')
  reader.repairs.add('mended brackets')
  const members = readMembers(reader, {}, readValue)
  skipGap(reader)
  return members
}
