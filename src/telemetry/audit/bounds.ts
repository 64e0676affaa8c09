import { hash } from 'node:crypto'

/** How much of the arguments is kept, in characters of their JSON. */
export const maxArguments = 16 * 1024
/** How much of longer ones is kept. */
export const maxStart = 4 * 1024
/** How much is kept of a text, unless it is one of those that are often long. */
export const maxText = 512

/** No line is longer than this many bytes, also where each character of each text needs six of them. */
export const maxLine = 128 * 1024

/** A text that is too long is cut, and its hash keeps it apart from others with the same beginning. */
export function bounded(text: string, most = maxText): string {
  if (text.length <= most) return text
  const mark = `… (${text.length} characters, SHA-256 ${hash('sha256', text)})`
  return text.slice(0, most - mark.length).toWellFormed() + mark
}
