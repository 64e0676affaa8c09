/** What somebody typed into a field for numbers: a number if it is one, else the text, which the check then refuses. */
export function numberFrom(text: string): number | string | undefined {
  const trimmed = text.trim()
  if (trimmed === '') return undefined
  const number = Number(trimmed)
  return Number.isFinite(number) && !/^[+-]?0[xob]/i.test(trimmed) ? number : text
}

/** A text, or nothing where the field is empty: who wants to send an empty text writes JSON. */
export const textFrom = (text: string): string | undefined => (text === '' ? undefined : text)

/** What a field shows for a value, whatever that is. */
export const shownText = (value: unknown): string => {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** JSON somebody typed: its value, or what is wrong with it. */
export function jsonFrom(text: string): { readonly value: unknown } | { readonly error: string } {
  if (text.trim() === '') return { value: undefined }
  try {
    return { value: JSON.parse(text) }
  } catch (thrown) {
    return { error: thrown instanceof Error ? thrown.message : 'cannot be parsed' }
  }
}
