/** How an answer is to be read. */
export type Form = 'html' | 'text' | 'image' | 'other'

/** The media type alone, in lower case. */
export const mediaTypeOf = (contentType: string): string => (contentType.split(';', 1)[0] ?? '').trim().toLowerCase()

const textual =
  /^(?:text\/.*|application\/(?:json|ld\+json|xml|javascript|ecmascript|x-javascript|x-ndjson|ndjson|jsonl|yaml|x-yaml|toml|sql|graphql|rtf|x-sh|x-www-form-urlencoded)|[^;]+\+(?:json|xml|yaml))$/

/** By its type; one that has none, or says only that it is bytes, by its bytes. SVG is text. */
export function formOf(mediaType: string, bytes: Buffer, sniffed: string | undefined): Form {
  if (sniffed !== undefined) return sniffed.startsWith('image/') ? 'image' : 'other'
  if (mediaType === 'text/html' || mediaType === 'application/xhtml+xml') return 'html'
  if (textual.test(mediaType)) return 'text'
  if (mediaType !== '' && mediaType !== 'application/octet-stream') return 'other'
  if (bytes.subarray(0, 4096).includes(0)) return 'other'
  const start = bytes.toString('latin1', 0, 512).trimStart().toLowerCase()
  return start.startsWith('<!doctype html') || start.startsWith('<html') ? 'html' : 'text'
}
