import type { Range } from '../expression.ts'
import { complement } from '../strings.ts'
import { escapedSign } from './classes.ts'
import type { Cursor } from './cursor.ts'

/** What stands between square brackets, the first of which has been read. */
export function parseSet(cursor: Cursor): readonly Range[] {
  const negated = cursor.signs[cursor.at] === '^'
  if (negated) cursor.at++
  const ranges: Range[] = []
  for (;;) {
    const sign = cursor.signs[cursor.at] ?? cursor.refuse('has a square bracket that is not closed')
    if (sign === ']') break
    const from = parseMember(cursor)
    const single = from.length === 1 && from[0]?.[0] === from[0]?.[1]
    const next = cursor.signs[cursor.at + 1]
    if (!single || cursor.signs[cursor.at] !== '-' || next === ']' || next === undefined) {
      ranges.push(...from)
      continue
    }
    cursor.at++
    const to = parseMember(cursor)
    const [low, high] = [from[0]?.[0] as number, to[0]?.[1] as number]
    if (to.length !== 1 || low > high) cursor.refuse('has a range in the wrong order')
    ranges.push([low, high])
  }
  cursor.at++
  return negated ? complement(ranges) : ranges
}

function parseMember(cursor: Cursor): readonly Range[] {
  const sign = cursor.signs[cursor.at++] as string
  if (sign === '\\') return escapedSign(cursor, true)
  const point = sign.codePointAt(0) as number
  return [[point, point]]
}
