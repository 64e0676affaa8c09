/** A text in which whatever moves the cursor, hides or turns text around is spelt out as `\u{…}`, for people to see. */
export const speltOut = (text: string): string =>
  text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`,
  )
