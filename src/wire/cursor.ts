import { maxDepth } from './limits.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const ZERO = 0x30
const NINE = 0x39
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d

/** Strings shorter than this are read byte by byte; beyond it a native search is faster. */
const near = 32

/** The brackets that close what is open. Shared, because a cursor never pauses in the middle of a value. */
const closers = new Uint8Array(maxDepth)

/**
 * Walks over JSON text without building anything. What it accepts is what `JSON.parse` accepts, down to numbers,
 * escapes and control characters, except that it refuses to nest deeper than `maxDepth`.
 */
export class Cursor {
  at = 0
  /** Whether the last string had escapes in it. */
  escaped = false
  readonly #bytes: Buffer
  readonly #end: number
  /** The next quote and backslash that a native search found: remembered so that no byte is searched twice. */
  #quote = -1
  #backslash = -1

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#end = bytes.length
  }

  get atEnd(): boolean {
    return this.at === this.#end
  }

  space(): void {
    const bytes = this.#bytes
    let at = this.at
    for (;;) {
      const byte = bytes[at]
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break
      at++
    }
    this.at = at
  }

  /** Steps over one byte if it is this one. */
  take(byte: number): boolean {
    if (this.#bytes[this.at] !== byte) return false
    this.at++
    return true
  }

  /** Steps over a key and its colon; the cursor then stands before the value. */
  key(): boolean {
    if (!this.take(QUOTE) || !this.string()) return false
    this.space()
    return this.take(COLON)
  }

  /** Steps over the rest of a string whose opening quote has been taken, and over its closing quote. */
  string(): boolean {
    const bytes = this.#bytes
    const end = this.#end
    let at = this.at
    this.escaped = false
    for (;;) {
      const look = Math.min(at + near, end)
      while (at < look) {
        const byte = bytes[at] as number
        if (byte === QUOTE) {
          this.at = at + 1
          return true
        }
        if (byte < 0x20) return false
        if (byte === BACKSLASH) {
          this.escaped = true
          const length = escapeLength(bytes, at)
          if (length === 0) return false
          at += length
        } else at++
      }
      if (at >= end) return false
      if (this.#quote < at) this.#quote = found(bytes.indexOf(QUOTE, at), end)
      if (this.#backslash < at) this.#backslash = found(bytes.indexOf(BACKSLASH, at), end)
      const stop = Math.min(this.#quote, this.#backslash)
      if (hasControl(bytes, at, stop)) return false
      at = stop
    }
  }

  /** Steps over one value, `depth` levels below the top; false where no JSON value stands. */
  value(depth = 0): boolean {
    const bytes = this.#bytes
    const outside = depth
    for (;;) {
      this.space()
      const byte = bytes[this.at]
      if (byte === QUOTE) {
        this.at++
        if (!this.string()) return false
      } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        if (depth === maxDepth) return false
        const closer = byte + 2
        this.at++
        this.space()
        if (!this.take(closer)) {
          closers[depth++] = closer
          if (byte === OPEN_OBJECT && !this.key()) return false
          continue
        }
      } else if (!this.#scalar(byte)) return false
      for (;;) {
        if (depth === outside) return true
        this.space()
        const closer = closers[depth - 1] as number
        if (this.take(COMMA)) {
          if (closer === CLOSE_ARRAY) break
          this.space()
          if (!this.key()) return false
          break
        }
        if (!this.take(closer)) return false
        depth--
      }
    }
  }

  #scalar(byte: number | undefined): boolean {
    if (byte === 0x74) return this.#word('true')
    if (byte === 0x66) return this.#word('false')
    if (byte === 0x6e) return this.#word('null')
    this.take(0x2d)
    if (!this.take(ZERO) && !this.#digits()) return false
    if (this.take(0x2e) && !this.#digits()) return false
    if (this.take(0x65) || this.take(0x45)) {
      if (!this.take(0x2b)) this.take(0x2d)
      return this.#digits()
    }
    return true
  }

  #word(word: string): boolean {
    for (let index = 0; index < word.length; index++) if (!this.take(word.charCodeAt(index))) return false
    return true
  }

  #digits(): boolean {
    const from = this.at
    for (;;) {
      const byte = this.#bytes[this.at]
      if (byte === undefined || byte < ZERO || byte > NINE) return this.at > from
      this.at++
    }
  }

  /** Steps into an object; false where none stands. */
  enter(): boolean {
    this.space()
    return this.take(OPEN_OBJECT)
  }

  /** Steps out of an object; false if more of it is to come. */
  leave(): boolean {
    this.space()
    return this.take(CLOSE_OBJECT)
  }

  /** Steps over the comma between two members. */
  next(): boolean {
    this.space()
    return this.take(COMMA)
  }
}

const found = (index: number, end: number): number => (index < 0 ? end : index)

/** The length of the escape that begins here, 0 if it is none. */
function escapeLength(bytes: Buffer, at: number): number {
  switch (bytes[at + 1]) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return 2
    case 0x75: // u
      return isHex(bytes[at + 2]) && isHex(bytes[at + 3]) && isHex(bytes[at + 4]) && isHex(bytes[at + 5]) ? 6 : 0
    default:
      return 0
  }
}

const isHex = (byte: number | undefined): boolean =>
  byte !== undefined && ((byte >= ZERO && byte <= NINE) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66))

/** Looks for bytes below 0x20, four at a time: this runs over every byte of every large string that is carried. */
function hasControl(bytes: Buffer, from: number, to: number): boolean {
  let at = from
  const misaligned = (bytes.byteOffset + at) & 3
  const head = misaligned === 0 ? at : Math.min(at + 4 - misaligned, to)
  for (; at < head; at++) if ((bytes[at] as number) < 0x20) return true
  const words = (to - at) >> 2
  if (words > near) {
    const view = new Int32Array(bytes.buffer, bytes.byteOffset + at, words)
    for (let index = 0; index < words; index++) {
      const word = view[index] as number
      if (((word - 0x20202020) & ~word & 0x80808080) !== 0) return true
    }
    at += words << 2
  }
  for (; at < to; at++) if ((bytes[at] as number) < 0x20) return true
  return false
}
