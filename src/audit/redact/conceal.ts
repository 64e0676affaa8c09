import { createFinder, type Needle } from './finder.ts'

export const redacted = '[redacted]'

/** Min length of a secret. Shorter values occur by chance in ordinary text: `none`, `1234`, `main`. */
export const minSecretLength = 6

/** Max layers of encoding; each costs a pass. An argument in a command in JSON in JSON has three layers. */
const maxLayers = 3

const ascii = /^[\0-\x7f]*$/

/** Redacts secrets in any of their encodings. */
export type Conceal = (text: string) => string

export function createConceal(secrets: readonly string[]): Conceal {
  const wanted = [...new Set(secrets.flatMap(partsOf))].filter((secret) => secret.length >= minSecretLength)
  if (wanted.length === 0) return (text) => text
  const find = createFinder(wanted.flatMap(formsOf))
  const asBytes = wanted.some((secret) => !ascii.test(secret))
  const plus = wanted.some((secret) => secret.includes(' '))
  const decoders = [jsonDecoder({ asBytes }), percentDecoder({ plus: false }), wrappedDecoder]
  if (plus) decoders.push(percentDecoder({ plus }))

  return (text) => {
    // The finder compares UTF-8 bytes if some secrets are not ASCII. The text must then be converted to bytes too.
    const wide = asBytes && !ascii.test(text)
    const searched = wide ? Buffer.from(text).toString('latin1') : text
    const spans: Span[] = []
    search(searched, decoders, find, (start, end) => spans.push([start, end]))
    if (spans.length === 0) return text
    const result = concealSpans(searched, spans)
    return wide ? Buffer.from(result, 'latin1').toString() : result
  }
}

export type Span = readonly [start: number, end: number]

/** The parts of a secret to search for: all of it, or pieces if it is very long, and each line of a multi-line key. */
function partsOf(secret: string): string[] {
  const whole = secret.trim()
  const lines = whole.split(/\r?\n/).map((line) => line.trim())
  return [whole, ...lines.filter((line) => line.length >= minLineLength && !/^-----/.test(line))].flatMap(pieces)
}

/** Min length of a line that is searched for. Shorter lines within a secret may be headings or braces. */
const minLineLength = 16
const maxPiece = 512

function pieces(text: string): string[] {
  if (text.length <= 2 * maxPiece) return [text]
  const count = Math.floor(text.length / maxPiece)
  return Array.from({ length: count }, (_, index) =>
    text.slice(index * maxPiece, index === count - 1 ? undefined : (index + 1) * maxPiece),
  )
}

/** Searches text for secrets, then searches the decoded forms of the text, layer by layer. */
function search(
  text: string,
  decoders: readonly Decode[],
  find: ReturnType<typeof createFinder>,
  found: (start: number, end: number) => void,
  depth = 0,
): void {
  find(text, found)
  if (depth === maxLayers) return
  for (const decode of decoders) {
    const decoded = decode(text)
    if (!decoded) continue
    const { places } = decoded
    const original = (start: number, end: number) => found(places[start] as number, places[end] as number)
    search(decoded.text, decoders, find, original, depth + 1)
  }
}

/** Redacts spans of text. The spans may overlap. */
export function concealSpans(text: string, spans: Span[]): string {
  if (spans.length === 0) return text
  spans.sort((a, b) => a[0] - b[0])
  let result = ''
  let end = -1
  for (const [from, to] of spans) {
    if (from > end) result += text.slice(Math.max(end, 0), from) + redacted
    end = Math.max(end, to)
  }
  return result + text.slice(end)
}

/** The encodings to search for directly. Percent-encoding and JSON escapes have too many variants and are decoded. */
function formsOf(secret: string): Needle[] {
  const spellings = new Set([secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret.toWellFormed())])
  const bytes = Buffer.from(secret)
  const hex = bytes.toString('hex')
  const plain = new Set([bytes.toString('latin1'), hex, hex.toUpperCase()])
  return [
    ...[...plain].map((text) => ({ text })),
    ...[...spellings].flatMap((spelling) => base64Forms(Buffer.from(spelling))),
  ]
}

/**
 * The forms that a secret takes within the base64 of something longer. Three bytes become four characters, so there are
 * three alignments. Only characters that consist entirely of bits of the secret are compared.
 */
function base64Forms(bytes: Buffer): Needle[] {
  return [0, 1, 2].flatMap((ahead) => {
    const text = Buffer.concat([Buffer.alloc(ahead), bytes]).toString('base64')
    const bits = (ahead + bytes.length) * 8
    const own = text.slice(Math.ceil((ahead * 8) / 6), Math.floor(bits / 6))
    const shared = { before: ahead > 0, after: bits % 6 > 0 }
    const forUrls = own.replaceAll('+', '-').replaceAll('/', '_')
    return [...new Set([own, forUrls])].map((form) => ({ text: form, shared }))
  })
}

/** Decoded text. `places` maps each character, and the end, to its position in the original. */
interface Decoded {
  readonly text: string
  readonly places: Uint32Array
}

type Decode = (text: string) => Decoded | undefined

/** An escape sequence: its UTF-16 units or UTF-8 bytes (`units`), and its length in the encoded text. */
interface Escape {
  readonly length: number
  readonly units: readonly number[]
}

type ReadEscape = (text: string, at: number) => Escape | undefined

/** Creates a decoder. Searching for `hint`, without which there is nothing to decode, is cheaper than decoding. */
const decoder =
  (hint: string, mark: RegExp, readEscape: ReadEscape): Decode =>
  (text) => {
    if (!text.includes(hint)) return undefined
    const escapes: (Escape & { readonly at: number })[] = []
    let end = 0
    for (const { index } of text.matchAll(mark)) {
      const read = index < end ? undefined : readEscape(text, index)
      if (!read) continue
      escapes.push({ ...read, at: index })
      end = index + read.length
    }
    if (escapes.length === 0) return undefined
    // An escape never decodes to more units than it has characters, so this is long enough.
    const places = new Uint32Array(text.length + 1)
    let result = ''
    let length = 0
    let done = 0
    const plain = (until: number) => {
      result += text.slice(done, until)
      for (; done < until; done++) places[length++] = done
    }
    for (const { at, units, length: taken } of escapes) {
      plain(at)
      result += String.fromCharCode(...units)
      for (const _ of units) places[length++] = at
      done = at + taken
    }
    plain(text.length)
    places[length] = text.length
    return { text: result, places }
  }

const space: Escape = { length: 1, units: [0x20] }

/** Decodes percent-encoding, even where it was unnecessary. With `plus`, `+` is a space, as in forms. */
const percentDecoder = ({ plus }: { plus: boolean }): Decode =>
  decoder(plus ? '+' : '%', plus ? /[%+]/g : /%/g, (text, at) => {
    if (text.charCodeAt(at) === 0x2b) return space
    const byte = hexAt(text, at + 1, 2)
    return byte < 0 ? undefined : { length: 3, units: [byte] }
  })

/** Joins the lines of wrapped base64, as in mail and PEM files. */
const wrappedDecoder = decoder('\n', /\r?\n[ \t]{0,8}/g, (text, at) => {
  if (!/[\w+/-]{32}$/.test(text.slice(Math.max(0, at - 32), at))) return undefined
  return { length: /^\r?\n[ \t]{0,8}/.exec(text.slice(at, at + 10))?.[0].length ?? 1, units: [] }
})

const short: Readonly<Record<string, number>> = { b: 8, f: 12, n: 10, r: 13, t: 9, '"': 34, '/': 47, '\\': 92 }

/** Decodes JSON escapes: `\"`, `\n`, `\u002f` and the like. */
const jsonDecoder = ({ asBytes }: { asBytes: boolean }): Decode => {
  const unitsOf = (point: number) => (asBytes ? [...Buffer.from(String.fromCodePoint(point))] : [point])
  return decoder('\\', /\\/g, (text, at) => {
    const meaning = short[text.charAt(at + 1)]
    if (meaning !== undefined) return { length: 2, units: [meaning] }
    const unit = text.charAt(at + 1) === 'u' ? hexAt(text, at + 2, 4) : -1
    if (unit < 0) return undefined
    const low = asBytes && unit >> 10 === 0x36 && text.startsWith('\\u', at + 6) ? hexAt(text, at + 8, 4) : -1
    if (low >> 10 !== 0x37) return { length: 6, units: unitsOf(unit) }
    return { length: 12, units: unitsOf(((unit & 0x3ff) << 10) + (low & 0x3ff) + 0x10000) }
  })
}

function hexAt(text: string, at: number, digits: number): number {
  let value = 0
  for (let index = at; index < at + digits; index++) {
    const digit = hexDigits[text.charCodeAt(index)] ?? -1
    if (digit < 0) return -1
    value = value * 16 + digit
  }
  return value
}

const hexDigits = Int8Array.from({ length: 103 }, (_, code) => {
  const digit = String.fromCharCode(code)
  return /[0-9a-fA-F]/.test(digit) ? Number.parseInt(digit, 16) : -1
})
