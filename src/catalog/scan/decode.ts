const base64 = /(?<![\w+/=-])[\w+/-]{16,}={0,2}(?![\w+/=])/g
const hex = /(?<![\w])(?:0x)?((?:[0-9a-f]{2}){12,})(?!\w)/gi
const percent = /(?:%[0-9a-f]{2}){4,}/gi
const entity = /&#(?:x([0-9a-f]{1,6})|([0-9]{1,7}));/gi
const escapes = /\\(?:u\{?([0-9a-f]{2,6})\}?|x([0-9a-f]{2}))/gi

/** What is spelt otherwise has no blanks, or signs that prose has not. */
const unbroken = /[\w+/=-]{16}|%[0-9a-f]{2}%|&#|\\[ux]/i

/** Words as people write them: with spaces, and hardly anything but letters. */
function isProse(text: string): boolean {
  if (text.length < 10 || !/[a-z]{2,}[ _][a-z]{2,}/i.test(text)) return false
  const plain = text.replace(/[^A-Za-z0-9 .,;:!?'"`_~/@$<>()\n-]/g, '').length
  return plain / text.length > 0.95
}

/** What is written in a text in some other spelling of letters, as far as it is prose. */
export function decodedIn(text: string): string[] {
  const found: string[] = []
  if (!unbroken.test(text)) return []
  for (const [run] of text.matchAll(base64)) {
    const decoded = Buffer.from(run, 'base64').toString('utf8')
    if (isProse(decoded)) found.push(decoded)
  }
  for (const [, digits = ''] of text.matchAll(hex)) {
    const decoded = Buffer.from(digits, 'hex').toString('utf8')
    if (isProse(decoded)) found.push(decoded)
  }
  if (text.includes('%')) {
    for (const [run] of text.matchAll(percent)) found.push(Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'))
  }
  // These are spelt letter by letter among others, so the text is read as a whole.
  for (const pattern of [entity, escapes]) {
    if ((text.match(pattern)?.length ?? 0) < 6) continue
    found.push(
      text.replace(pattern, (_, first?: string, second?: string) => {
        const point =
          pattern === entity && second !== undefined ? Number(second) : Number.parseInt(first ?? second ?? '', 16)
        return point <= 0x10ffff ? String.fromCodePoint(point) : ''
      }),
    )
  }
  return found
}
