/** Whether text matches a pattern with `*` for any text. Takes linear time, because callers can choose patterns. */
export function matches(pattern: string, text: string): boolean {
  const parts = pattern.split('*')
  const first = parts[0] as string
  if (parts.length === 1) return pattern === text
  const last = parts[parts.length - 1] as string
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
  let from = first.length
  const end = text.length - last.length
  for (const part of parts.slice(1, -1)) {
    const at = text.indexOf(part, from)
    if (at < 0 || at + part.length > end) return false
    from = at + part.length
  }
  return true
}
