import { type Decode, jsonDecoder, percentDecoder, wrappedDecoder } from './decode.ts'
import { createFinder } from './finder.ts'
import { formsOf } from './forms.ts'

/** Stands for what was taken out. */
export const redacted = '[redacted]'

/** What is shorter stands in every other honest text by chance: `none`, `1234`, `main`. */
export const shortestSecret = 6

/** An argument in a command in JSON in JSON: nobody packs deeper, and every layer costs a pass. */
const deepest = 3

const ascii = /^[\0-\x7f]*$/

/** Takes these secrets out of a text, however they are spelled there. */
export type Conceal = (text: string) => string

/** Secrets shorter than `shortestSecret` are not looked for. */
export function createConceal(secrets: readonly string[]): Conceal {
  const wanted = [...new Set(secrets.flatMap(partsOf))].filter((secret) => secret.length >= shortestSecret)
  if (wanted.length === 0) return (text) => text
  const find = createFinder(wanted.flatMap(formsOf))
  const asBytes = wanted.some((secret) => !ascii.test(secret))
  const plus = wanted.some((secret) => secret.includes(' '))
  const decoders = [
    jsonDecoder({ asBytes }),
    percentDecoder({ plus: false }),
    wrappedDecoder(),
    ...(plus ? [percentDecoder({ plus })] : []),
  ]

  return (text) => {
    // The needles are bytes of UTF-8: where some lie outside ASCII, the text must be bytes too.
    const wide = asBytes && !ascii.test(text)
    const searched = wide ? Buffer.from(text).toString('latin1') : text
    const spans: Span[] = []
    search(searched, decoders, find, (start, end) => spans.push([start, end]))
    if (spans.length === 0) return text
    const result = without(searched, spans)
    return wide ? Buffer.from(result, 'latin1').toString() : result
  }
}

type Span = readonly [start: number, end: number]

/** A key in several lines is as secret line by line, and half of a very long one is as bad as all of it. */
function partsOf(secret: string): string[] {
  const whole = secret.trim()
  const lines = whole.split(/\r?\n/).map((line) => line.trim())
  return [whole, ...lines.filter((line) => line.length >= shortestLine && !/^-----/.test(line))].flatMap(pieces)
}

/** Shorter lines of a longer secret may be headings or braces. */
const shortestLine = 16
const maxPiece = 512

function pieces(text: string): string[] {
  if (text.length <= 2 * maxPiece) return [text]
  const count = Math.floor(text.length / maxPiece)
  return Array.from({ length: count }, (_, index) =>
    text.slice(index * maxPiece, index === count - 1 ? undefined : (index + 1) * maxPiece),
  )
}

/** Searches the text and what it means once its escapes are undone, layer by layer. */
function search(
  text: string,
  decoders: readonly Decode[],
  find: ReturnType<typeof createFinder>,
  found: (start: number, end: number) => void,
  depth = 0,
): void {
  find(text, found)
  if (depth === deepest) return
  for (const decode of decoders) {
    const decoded = decode(text)
    if (!decoded) continue
    const { places } = decoded
    const original = (start: number, end: number) => found(places[start] as number, places[end] as number)
    search(decoded.text, decoders, find, original, depth + 1)
  }
}

function without(text: string, spans: Span[]): string {
  spans.sort((a, b) => a[0] - b[0])
  let result = ''
  let end = -1
  for (const [from, to] of spans) {
    // What touches is one secret to the reader.
    if (from > end) result += text.slice(Math.max(end, 0), from) + redacted
    end = Math.max(end, to)
  }
  return result + text.slice(end)
}
