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

/** A string to search for. It contains only characters up to U+00FF. */
export interface Needle {
  readonly text: string
  /** Set if the characters before or after a match also hold bits of the needle, as in base64. */
  readonly shared?: { readonly before: boolean; readonly after: boolean }
}

/** Called for each match. `needle` is the index of the longest needle that ends there. */
type OnMatch = (start: number, end: number, needle: number) => void

/** Searches text. The reported matches may overlap; together they cover every needle in the text. */
type FindMatches = (text: string, found: OnMatch) => void

/**
 * Aho–Corasick: finds all needles in one pass, so the time does not grow with the number of needles. Transitions are in
 * one open-addressing hash table: a dense table would take megabytes for a hundred secrets, and longer to build. For a
 * fixed set of needles, `dense` makes the search faster.
 */
export function createFinder(needles: readonly Needle[], { dense = false } = {}): FindMatches {
  if (needles.length === 0) return () => {}
  const automaton = build(needles)
  const { size, root, child, fail, reach } = automaton
  if (size === 1) return () => {}
  if (dense) return denseFinder(automaton)

  return (text, found) => {
    let state = 0
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index)
      if (code > 255) {
        state = 0
        continue
      }
      let next = state === 0 ? (root[code] as number) : child(state, code)
      while (next === 0 && state !== 0) {
        state = fail[state] as number
        next = state === 0 ? (root[code] as number) : child(state, code)
      }
      state = next
      if (reach[state] !== 0) report(automaton, text, index + 1, state, found)
    }
  }
}

type Automaton = ReturnType<typeof build>

function denseFinder(automaton: Automaton): FindMatches {
  const { size, way, parent, order, fail, reach } = automaton
  const used = [...new Set(way.subarray(1, size))]
  const width = used.length + 1
  /** The column of each character. 0 for characters that no needle contains. */
  const columns = new Uint8Array(256)
  for (const [index, code] of used.entries()) columns[code] = index + 1
  /** The children of each state, as linked lists. */
  const firstChild = new Uint16Array(size)
  const sibling = new Uint16Array(size)
  for (const state of order) {
    sibling[state] = firstChild[parent[state] as number] as number
    firstChild[parent[state] as number] = state
  }
  const next = new Uint16Array(size * width)
  const addChildren = (state: number) => {
    for (let child = firstChild[state] as number; child !== 0; child = sibling[child] as number) {
      next[state * width + (columns[way[child] as number] as number)] = child
    }
  }
  addChildren(0)
  for (const state of order) {
    // The fallback state stands for a shorter string, so its row is already complete.
    const behind = (fail[state] as number) * width
    next.copyWithin(state * width, behind, behind + width)
    addChildren(state)
  }
  return (text, found) => {
    let state = 0
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index)
      state = code > 255 ? 0 : (next[state * width + (columns[code] as number)] as number)
      if (reach[state] !== 0) report(automaton, text, index + 1, state, found)
    }
  }
}

function report({ reach, shares, ids }: Automaton, text: string, end: number, state: number, found: OnMatch): void {
  const start = end - (reach[state] as number)
  const sides = shares[state] as number
  const before = sides & 1 && isBase64(text.charCodeAt(start - 1)) ? 1 : 0
  const after = sides & 2 && isBase64(text.charCodeAt(end)) ? 1 : 0
  found(start - before, end + after, ids[state] as number)
}

/** A table with 1 for each ASCII character that the expression matches. */
export const characterTable = (characters: RegExp): Uint8Array =>
  Uint8Array.from({ length: 128 }, (_, code) => (characters.test(String.fromCharCode(code)) ? 1 : 0))

/** The standard and URL-safe base64 alphabets. */
const base64 = characterTable(/[\w+/-]/)
const isBase64 = (code: number): boolean => base64[code] === 1

function build(needles: readonly Needle[]) {
  const maxStates = needles.reduce((sum, { text }) => sum + text.length, 1)
  const table = createTransitions(maxStates)
  const fail = new Int32Array(maxStates)
  /** The length of the longest needle that ends in a state. 0 if none does. */
  const reach = new Int32Array(maxStates)
  const shares = new Uint8Array(maxStates)
  const ids = new Int32Array(maxStates)
  const way = new Uint8Array(maxStates)
  const parent = new Int32Array(maxStates)
  const depth = new Int32Array(maxStates)
  let size = 1

  for (const [id, { text, shared }] of needles.entries()) {
    let state = 0
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index)
      let next = table.child(state, code)
      if (next === 0) {
        next = size++
        table.add(state, code, next)
        way[next] = code
        parent[next] = state
        depth[next] = index + 1
      }
      state = next
    }
    reach[state] = text.length
    ids[state] = id
    shares[state] = (shares[state] as number) | (shared?.before ? 1 : 0) | (shared?.after ? 2 : 0)
  }

  const root = Int32Array.from({ length: 256 }, (_, code) => table.child(0, code))
  const order = byDepth(depth.subarray(0, size))
  for (const state of order) {
    const code = way[state] as number
    let behind = parent[state] as number
    let target = 0
    while (behind !== 0 && target === 0) {
      behind = fail[behind] as number
      target = table.child(behind, code)
    }
    fail[state] = target
    // Needles that end in the fallback state also end here. Only the longest matters, because it covers the others.
    if (reach[state] === 0) {
      reach[state] = reach[target] as number
      ids[state] = ids[target] as number
    }
    shares[state] = (shares[state] as number) | (shares[target] as number)
  }
  return { size, root, way, parent, order, child: table.child, fail, reach, shares, ids }
}

/** All states except the root, shortest first, because a state's (shorter) fallback must be computed before it. */
function byDepth(depths: Int32Array): number[] {
  const levels: number[][] = []
  for (let state = 1; state < depths.length; state++) {
    const depth = (depths[state] as number) - 1
    levels[depth] ??= []
    levels[depth].push(state)
  }
  return levels.flat()
}

function createTransitions(maxStates: number) {
  const bits = Math.max(4, Math.ceil(Math.log2(maxStates * 2)))
  const shift = 32 - bits
  const mask = 2 ** bits - 1
  const keys = new Int32Array(2 ** bits).fill(-1)
  const targets = new Int32Array(2 ** bits)
  const slotOf = (key: number): number => {
    let slot = Math.imul(key, 0x9e3779b1) >>> shift
    while (keys[slot] !== key && keys[slot] !== -1) slot = (slot + 1) & mask
    return slot
  }
  return {
    /** The next state. 0 means that there is none; this is unambiguous, because no transition leads to the root. */
    child: (state: number, code: number): number => targets[slotOf(state * 256 + code)] as number,
    add: (state: number, code: number, target: number): void => {
      const slot = slotOf(state * 256 + code)
      keys[slot] = state * 256 + code
      targets[slot] = target
    },
  }
}
