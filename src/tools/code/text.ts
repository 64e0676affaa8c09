import { depthExceeds } from '../../json/json-text.ts'
import { shorten } from '../../lib/message-text.ts'

/**
 * Characters that hide, reorder or end text. They are replaced in text from servers, so that people see all of the
 * text, and the text cannot break out of the line or comment that contains it.
 */
const invisibleCharacters = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\p{Default_Ignorable_Code_Point}]+/gu

/** Max characters to process in text from a server, even if fewer are shown. */
const maxLooked = 8192

/** Text from a server as one line of at most `maxLength` characters, without invisible characters. */
export function visibleLine(text: unknown, maxLength: number): string {
  if (typeof text !== 'string') return ''
  return shorten(
    text.slice(0, maxLooked).replaceAll(invisibleCharacters, ' ').replaceAll(/\s+/g, ' ').trim(),
    maxLength,
  )
}

/** Text from a server for use inside a block comment. The text cannot end the comment. */
export const commentText = (text: unknown, maxLength: number): string =>
  visibleLine(text, maxLength).replaceAll('*/', '*\\/')

/** A JSON string that is also a TypeScript literal, with invisible characters escaped. */
export const quoteLiteral = (text: string): string =>
  JSON.stringify(text).replaceAll(/[\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu, (character) =>
    character.replaceAll(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  )

export const jsonLength = (text: string): number => JSON.stringify(text).length

/** Shortens text to at most `room` characters of JSON: keeps its start and its end, and notes how much is missing. */
export function shortenJson(text: string, room: number): string {
  if (text.length <= room && jsonLength(text) <= room) return text
  let fits = ''
  let least = 0
  let most = Math.min(text.length, room)
  while (least <= most) {
    const kept = (least + most) >> 1
    const attempt = cutMiddle(text, kept)
    if (jsonLength(attempt) > room) most = kept - 1
    else {
      fits = attempt
      least = kept + 1
    }
  }
  return fits
}

function cutMiddle(text: string, kept: number): string {
  const end = Math.floor(kept / 4)
  const beginning = text.slice(0, kept - end)
  const rest = end === 0 ? '' : text.slice(-end)
  return `${beginning} … [${text.length - kept} of ${text.length} characters left out] … ${rest}`.toWellFormed()
}

/** Whether JSON text is nested too deeply. Check first: `JSON.parse` accepts depths that `JSON.stringify` does not. */
export const tooDeep = (text: string): boolean => depthExceeds(Buffer.from(text), 128)
