/** A configuration error without its indented excerpt from the file. */
export const withoutExcerpt = (error: string): string => {
  const lines = error.split('\n').filter((line) => line.trim() !== '' && !/^\s/.test(line))
  return lines.length > 0 ? lines.join('\n') : error
}
