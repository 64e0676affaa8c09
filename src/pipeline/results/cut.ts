import { elements, members, OPEN_ARRAY } from '../../json/json-text.ts'
import { jsonValue } from '../../json/parse-json.ts'

/** What a cut left out, and of how much. */
export interface Missing {
  characters: number
  ofCharacters: number
  lines?: number
  ofLines?: number
  /** Array elements or object members. */
  items?: number
  ofItems?: number
}

interface Cut {
  readonly missing: Missing
  /** Whether to say in JSON what was left out. Without marks, the value keeps its types. */
  readonly marks: boolean
}

/** How deep a cut looks into JSON for the part that is large. */
const maxCutDepth = 8
/** Parts of an object are cut one by one if each gets at least this many characters. */
const minPartRoom = 100
/** Up to this many elements of an array are cut one by one. */
const maxCutElements = 4
const markRoom = 80
/** Marks and long names may make cut JSON longer than its room. */
const maxOverrun = 1.5

/** Cuts text to about `room` characters: JSON between elements or members, other text between lines. */
export function cutText(text: string, room: number, missing: Missing): string {
  if (text.length <= room) return text
  const bytes = /^\s*[[{]/.test(text) ? Buffer.from(text.trim()) : undefined
  if (bytes !== undefined && (elements(bytes) ?? members(bytes)) !== undefined) {
    const counted = { ...missing }
    const json = cutJson(bytes, room, { missing: counted, marks: true })
    // The JSON may be nested too deeply, or repeat a name, where it is long.
    if (json.length <= room * maxOverrun) {
      Object.assign(missing, counted)
      return json
    }
  }
  return cutLines(text, room, missing)
}

/** Cuts a JSON value to about `room` characters. The result is JSON too, with the same types except for the marks. */
export function cutJson(bytes: Buffer, room: number, cut: Cut, depth = 0): string {
  const text = bytes.toString('utf8')
  if (text.length <= room) return text
  if (text.startsWith('"')) return cutString(text, room, cut)
  const isArray = bytes[0] === OPEN_ARRAY
  const parts = jsonParts(bytes, isArray)
  if (parts === undefined) return text
  const join = (pieces: readonly string[]) => (isArray ? `[${pieces.join()}]` : `{${pieces.join()}}`)
  const sizes = parts.map(({ key, value }) => key.length + value.length + 1)
  const inside = (index: number, most: number) => {
    const { key, value } = parts[index] as JsonPart
    return key + (depth < maxCutDepth ? cutJson(value, most - key.length, cut, depth + 1) : value.toString('utf8'))
  }
  const isFew = isArray ? parts.length <= maxCutElements : parts.length * minPartRoom <= room
  if (isFew) {
    const most = sharedRoom(sizes, room)
    return join(sizes.map((size, index) => inside(index, Math.min(size, most))))
  }
  const { head, tail } = headAndTail(sizes, room - markRoom)
  const left = parts.length - head - tail
  cut.missing.items = (cut.missing.items ?? 0) + left
  cut.missing.ofItems = (cut.missing.ofItems ?? 0) + parts.length
  const sentence = JSON.stringify(`… ${left} of ${parts.length} ${isArray ? 'items' : 'members'} left out here …`)
  const mark = cut.marks ? [isArray ? sentence : `"…":${sentence}`] : []
  const first = Math.floor((room * 2) / 3)
  const kept = (from: number, to: number) => sizes.slice(from, to).map((_, index) => inside(from + index, first))
  return join([...kept(0, head), ...mark, ...kept(parts.length - tail, parts.length)])
}

interface JsonPart {
  /** A member's name with its colon; empty for an element. */
  readonly key: string
  readonly value: Buffer
}

function jsonParts(bytes: Buffer, isArray: boolean): readonly JsonPart[] | undefined {
  if (isArray) return elements(bytes)?.map((value) => ({ key: '', value }))
  const found = members(bytes)
  return found && [...found].map(([name, value]) => ({ key: `${JSON.stringify(name)}:`, value }))
}

function cutString(json: string, room: number, cut: Cut): string {
  const text = jsonValue(json) as string
  // Escapes take room too.
  return JSON.stringify(cutLines(text, Math.floor((room * text.length) / json.length), cut.missing))
}

/** Keeps the first and the last lines of text. Cuts inside a line only if the lines are long. */
function cutLines(text: string, room: number, missing: Missing): string {
  const wanted = Math.max(0, room - markRoom)
  const start = headEnd(text, Math.floor((wanted * 2) / 3))
  const end = Math.max(start, tailStart(text, text.length - Math.floor(wanted / 3)))
  const left = text.slice(start, end)
  const lines = countLines(left)
  missing.lines = (missing.lines ?? 0) + lines
  missing.ofLines = (missing.ofLines ?? 0) + countLines(text)
  const what = lines > 1 ? `${left.length} characters, ${lines} lines,` : `${left.length} characters`
  const lead = start === 0 || text[start - 1] === '\n' ? '' : '\n'
  return `${text.slice(0, start)}${lead}… ${what} left out here …\n${text.slice(end)}`
}

function headEnd(text: string, at: number): number {
  const line = text.lastIndexOf('\n', at - 1) + 1
  return line > at / 2 ? line : wholeCharacter(text, at)
}

function tailStart(text: string, at: number): number {
  const line = text.indexOf('\n', at) + 1
  return line > 0 && line < at + (text.length - at) / 2 ? line : wholeCharacter(text, at)
}

/** The position, or the one before it if it is inside a surrogate pair. */
const wholeCharacter = (text: string, at: number): number =>
  /^[\ud800-\udbff][\udc00-\udfff]/.test(text.slice(Math.max(0, at - 1), at + 1)) ? at - 1 : at

const countLines = (text: string): number => text.split('\n').length

/** The size to which the largest parts must be cut so that all fit. */
export function sharedRoom(sizes: readonly number[], room: number): number {
  let left = room
  const ascending = [...sizes].sort((a, b) => a - b)
  for (const [index, size] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index))
    if (size > share) return share
    left -= size
  }
  return Number.POSITIVE_INFINITY
}

/** How many of the first and of the last parts fit, the first ones in two thirds of the room. At least one is kept. */
export function headAndTail(sizes: readonly number[], room: number): { readonly head: number; readonly tail: number } {
  const fitting = (ordered: readonly number[], most: number) => {
    let left = most
    const end = ordered.findIndex((size) => {
      left -= size
      return left < 0
    })
    return end < 0 ? ordered.length : end
  }
  const head = Math.max(1, fitting(sizes, (room * 2) / 3))
  return { head, tail: fitting(sizes.slice(head).reverse(), room / 3) }
}
