/** Decodes percent escapes. Returns the text unchanged if a `%` in it does not begin an escape. */
export function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
