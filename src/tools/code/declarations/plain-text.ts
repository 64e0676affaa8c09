/** Characters that hide, turn or end text: a server's words must be seen as they are, and stay where they were put. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\p{Default_Ignorable_Code_Point}]+/gu

/** How much of a server's text is looked at, whatever is then shown of it. */
const maxLooked = 8192

/** A server's text in one line of at most `longest` characters, without anything that could not be seen. */
export function plainText(text: unknown, longest: number): string {
  if (typeof text !== 'string') return ''
  const line = text.slice(0, maxLooked).replaceAll(unseen, ' ').replaceAll(/\s+/g, ' ').trim()
  return line.length <= longest ? line : `${line.slice(0, longest - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

/** The same inside a comment, which it cannot end. */
export const commentText = (text: unknown, longest: number): string => plainText(text, longest).replaceAll('*/', '*\\/')

/** A JSON string that is also a TypeScript literal; what could not be seen is spelt out. */
export const quoted = (text: string): string =>
  JSON.stringify(text).replaceAll(/[\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
      .join(''),
  )
