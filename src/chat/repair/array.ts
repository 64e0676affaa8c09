import { skipGap } from './gap.ts'
import { isQuotedKey } from './keys.ts'
import { atEnd, cutOff, enter, type Reader, unclosed } from './reader.ts'
import { endsAnswer, signAt } from './signs.ts'

/** Reads the list whose bracket stands here. */
export function readArray(reader: Reader, readValue: (reader: Reader, role: 'item') => unknown): unknown[] {
  const items: unknown[] = []
  const { text, open } = reader
  if (signAt(text, reader.at) === '(') reader.repairs.add('mended brackets')
  enter(reader, '[')
  /** Whether a comma stands between the last item and here. */
  let separated = true
  for (;;) {
    skipGap(reader)
    if (atEnd(reader) || endsAnswer(text, reader.at)) {
      if (items.length === 0) cutOff(reader)
      else unclosed(reader, separated ? 'maybe-more' : 'brackets')
      break
    }
    const sign = signAt(text, reader.at)
    if (sign === ',' || sign === ';') {
      if (separated || sign === ';') reader.repairs.add('mended commas')
      separated = true
      reader.at++
    } else if (sign === ']' || sign === ')' || sign === '}') {
      if (separated && items.length > 0) reader.repairs.add('mended commas')
      if (sign !== ']') reader.repairs.add('mended brackets')
      // A brace closes the object around this list, which then lacks its own bracket, or it is a slip of this list's.
      if (sign !== '}' || !open.includes('{')) reader.at++
      break
    } else if (open.includes('{') && isQuotedKey(text, reader.at)) {
      reader.repairs.add('mended brackets')
      break
    } else {
      if (!separated) reader.repairs.add('mended commas')
      const item = readValue(reader, 'item')
      if (item !== undefined) items.push(item)
      separated = false
    }
  }
  open.pop()
  return items
}
