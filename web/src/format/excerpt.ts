/** What is wrong with a configuration, without the lines of the file that show where: those need room. */
export const withoutExcerpt = (error: string): string => {
  const lines = error.split('\n').filter((line) => line.trim() !== '' && !/^\s/.test(line))
  return lines.length > 0 ? lines.join('\n') : error
}
