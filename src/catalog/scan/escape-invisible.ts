/** Whatever moves the cursor, changes the direction or takes no room: a reader would not know that it is there. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu

const escaped = (character: string): string => `\\u{${(character.codePointAt(0) as number).toString(16)}}`

/** A text with its control, hidden and direction characters spelt out as `\u{…}`: safe for a terminal and a log. */
export function visible(text: string, keep: 'lines' | 'nothing' = 'nothing'): string {
  return text.replace(unseen, (character) => {
    if (keep === 'lines' && (character === '\n' || character === '\t')) return character
    if (character === '\n') return '\\n'
    if (character === '\t') return '\\t'
    return escaped(character)
  })
}

/** The surroundings of a place in a text, visible, on one line and no longer than somebody wants to read in a log. */
export function excerptOf(text: string, at = 0, length = 0): string {
  const from = Math.max(0, at - before)
  const to = Math.min(text.length, at + Math.min(length, most) + after)
  const middle = visible(
    text
      .slice(from, to)
      .toWellFormed()
      .replace(/[ \t\r\n]+/g, ' '),
  )
  return `${from > 0 ? '…' : ''}${middle.slice(0, longest)}${to < text.length || middle.length > longest ? '…' : ''}`
}

const before = 30
const after = 30
const most = 80
const longest = 200
