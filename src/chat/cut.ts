/** The beginning of a text, at most so many bytes of it, with a note on what is missing. */
export function cut(text: string, most: number): string {
  // No character takes more than three bytes for each of its UTF-16 units.
  if (text.length * 3 <= most) return text
  const bytes = Buffer.from(text)
  if (bytes.length <= most) return text
  let end = most
  // A continuation byte at the cut belongs to a character that would lose it.
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end--
  return `${bytes.toString('utf8', 0, end)}\n[Cut off: these are the first ${end} of ${bytes.length} bytes.]`
}

const lineLength = 160

/** A text as one line for people to glance at. */
export function oneLine(text: string, most = lineLength): string {
  const line = text
    .slice(0, most * 4)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  if (line.length <= most && text.length <= most * 4) return line
  return `${line.slice(0, most - 1).replace(/[\ud800-\udbff]$/, '')}…`
}
