import { type ExactNumber, exactNumber, parseExactly } from '../format/exact-json.ts'

/** The number that a string represents. If it is not a number, the string itself, which the gateway then rejects. */
export function parseNumber(text: string): number | ExactNumber | string | undefined {
  const trimmed = text.trim()
  if (trimmed === '') return undefined
  // JSON has no plus sign and no number without digits around its point.
  const json = trimmed
    .replace(/^\+/, '')
    .replace(/^(-?)\./, '$10.')
    .replace(/\.(?=e|$)/i, '')
  return /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(json) ? exactNumber(json.replace(/^(-?)0+(?=\d)/, '$1')) : text
}

/** The value of a text field. An empty field means no value; to send an empty string, use the JSON view. */
export const parseText = (text: string): string | undefined => (text === '' ? undefined : text)

export const toInputText = (value: unknown): string => {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

export function parseJson(text: string): { readonly value: unknown } | { readonly error: string } {
  if (text.trim() === '') return { value: undefined }
  try {
    return { value: parseExactly(text) }
  } catch (thrown) {
    return { error: thrown instanceof Error ? thrown.message : 'cannot be parsed' }
  }
}
