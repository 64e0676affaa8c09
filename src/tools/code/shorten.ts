/** How long a text is once it stands in JSON. */
export const jsonLength = (text: string): number => JSON.stringify(text).length

/** A text that takes no more than `room` characters in JSON: its beginning and its end, and between them what is missing. */
export function shortened(text: string, room: number): string {
  if (text.length <= room && jsonLength(text) <= room) return text
  let fits = ''
  let least = 0
  let most = Math.min(text.length, room)
  while (least <= most) {
    const kept = (least + most) >> 1
    const attempt = cut(text, kept)
    if (jsonLength(attempt) > room) most = kept - 1
    else {
      fits = attempt
      least = kept + 1
    }
  }
  return fits
}

function cut(text: string, kept: number): string {
  const end = Math.floor(kept / 4)
  const beginning = text.slice(0, kept - end)
  const rest = end === 0 ? '' : text.slice(-end)
  return `${beginning} … [${text.length - kept} of ${text.length} characters left out] … ${rest}`.toWellFormed()
}
