/**
 * Whether JSON text is nested deeper than anybody needs. Text may be deeper than what was made of it can be written
 * out again, so it is looked at before it is read.
 */
export function tooDeep(text: string, deepest = 128): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = endOfString(text, at)
        break
      case openBrace:
      case openBracket:
        if (++depth > deepest) return true
        break
      case closeBrace:
      case closeBracket:
        depth--
        break
    }
  }
  return false
}

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; ) {
    const end = text.indexOf('"', at)
    if (end === -1) return text.length
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === backslash) slashes++
    if (slashes % 2 === 0) return end
    at = end + 1
  }
}
