import type { Content, ResultBody } from '../../core/result.ts'
import { tooDeep } from './json-depth.ts'

/**
 * What a program gets of a tool's result, as JSON text: structured content, else the text as the JSON that it is, else
 * the text, else the pieces of content as they are.
 */
export function unwrapped(body: ResultBody): string {
  if (body.structuredContent !== undefined) return JSON.stringify(body.structuredContent)
  const content = contentOf(body)
  if (content.length === 0) return 'null'
  const text = textOf(content)
  if (text === undefined) return JSON.stringify(content)
  return isJson(text) ? text : JSON.stringify(text)
}

/** The text of a result in words, for an error. */
export const wordsOf = (body: ResultBody): string =>
  textOf(contentOf(body).filter((piece) => piece?.type === 'text')) ||
  JSON.stringify(body.structuredContent ?? contentOf(body))

/** A result is carried as it came: there may be anything where the protocol wants pieces of content. */
const contentOf = ({ content }: ResultBody): readonly (Content | null)[] => (Array.isArray(content) ? content : [])

/** Undefined as soon as one piece is something else than text. */
function textOf(content: readonly (Content | null)[]): string | undefined {
  const texts = content.map((piece) =>
    piece?.type === 'text' && typeof piece.text === 'string' ? piece.text : undefined,
  )
  return texts.includes(undefined) ? undefined : texts.join('\n')
}

/** Objects and lists only: a text that happens to be a number or a word was meant as text. */
function isJson(text: string): boolean {
  if (!/^\s*[{[]/.test(text) || tooDeep(text)) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
