/** A part of a text, and where the next one begins. No character is cut in two. */
export function slice(text: string, start: number, most: number) {
  const from = boundary(text, start)
  const to = boundary(text, Math.min(text.length, from + most))
  // A limit of one could not pass a character of two otherwise.
  const end = to === from && from < text.length ? Math.min(text.length, from + 2) : to
  return {
    text: text.slice(from, end),
    total_chars: text.length,
    ...(end < text.length && { next_start: end }),
  }
}

function boundary(text: string, at: number): number {
  const isTrail = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff
  const isLead = (unit: number) => unit >= 0xd800 && unit <= 0xdbff
  return at > 0 && at < text.length && isTrail(text.charCodeAt(at)) && isLead(text.charCodeAt(at - 1)) ? at - 1 : at
}
