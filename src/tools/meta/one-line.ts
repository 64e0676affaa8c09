/** The first line of a description, short enough for a list. */
export function oneLine(text: string | undefined, longest = 160): string {
  const line = (text ?? '')
    .trimStart()
    .split(/[\r\n]/, 1)[0]!
    .trim()
  return line.length <= longest ? line : `${line.slice(0, longest - 1).trimEnd()}…`
}
