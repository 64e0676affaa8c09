import { isUtf8 } from 'node:buffer'

/** Collects bytes that arrive in chunks. Large chunks are kept and copied once; the buffer for small ones doubles. */
export interface ByteCollector {
  readonly length: number
  append(piece: Buffer): void
  /** Returns the collected bytes and starts over. */
  take(): Buffer
}

/** Kept without copying; a sender of single bytes must not cost a hundred times what it sends. */
const large = 16 * 1024

const nothing = Buffer.alloc(0)

export function createByteCollector(): ByteCollector {
  let pieces: Buffer[] = []
  let space = nothing
  let used = 0
  let length = 0

  const keepSmall = () => {
    if (used > 0) pieces.push(space.subarray(0, used))
    space = nothing
    used = 0
  }

  const appendSmall = (piece: Buffer) => {
    if (used + piece.length > space.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(2 * space.length, used + piece.length, 1024))
      larger.set(space.subarray(0, used))
      space = larger
    }
    space.set(piece, used)
    used += piece.length
  }

  return {
    get length() {
      return length
    },
    append(piece) {
      length += piece.length
      if (piece.length < large) return appendSmall(piece)
      keepSmall()
      pieces.push(piece)
    },
    take() {
      keepSmall()
      const gathered = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, length)
      pieces = []
      length = 0
      return gathered
    },
  }
}

/** Bytes of one message, not concatenated: large parts are only copied by the kernel. */
export type Pieces = readonly Buffer[]

export const joined = (pieces: Pieces): Buffer => (pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces))

export function lengthOf(pieces: Pieces): number {
  let length = 0
  for (const piece of pieces) length += piece.length
  return length
}

const LINE_FEED = 0x0a
const RETURN = 0x0d
const SPACE = 0x20

/**
 * JSON on one line, as stdio and event streams frame it. Line breaks occur only between JSON tokens, so replacing them
 * by spaces changes nothing; copies only if there are any.
 */
export function toOneLine(bytes: Buffer): Buffer {
  if (!bytes.includes(LINE_FEED) && !bytes.includes(RETURN)) return bytes
  const copy = Buffer.from(bytes)
  for (let at = copy.indexOf(LINE_FEED); at >= 0; at = copy.indexOf(LINE_FEED, at + 1)) copy[at] = SPACE
  for (let at = copy.indexOf(RETURN); at >= 0; at = copy.indexOf(RETURN, at + 1)) copy[at] = SPACE
  return copy
}

/** Received bytes without byte order mark and line breaks, with U+FFFD for invalid UTF-8. */
export function toCleanLine(received: Buffer): Buffer {
  const marked = received[0] === 0xef && received[1] === 0xbb && received[2] === 0xbf
  const bytes = marked ? received.subarray(3) : received
  return toOneLine(isUtf8(bytes) ? bytes : Buffer.from(bytes.toString('utf8')))
}

/** A slice of a message, and its replacement. */
export type Replacement = readonly [slice: Buffer, by: Buffer]

/**
 * Replaces slices of `bytes`, in order; their positions follow from the buffer offsets. All other bytes stay the same.
 */
export function splice(bytes: Buffer, replacements: readonly Replacement[]): Buffer {
  if (replacements.length === 0) return bytes
  const pieces: Buffer[] = []
  let from = 0
  for (const [slice, by] of replacements) {
    const at = slice.byteOffset - bytes.byteOffset
    pieces.push(bytes.subarray(from, at), by)
    from = at + slice.length
  }
  pieces.push(bytes.subarray(from))
  return Buffer.concat(pieces)
}

/** The text of a JSON string; undefined for any other value. */
export const textOf = (slice: Buffer | undefined): string | undefined =>
  slice?.[0] === 0x22 ? (JSON.parse(slice.toString('utf8')) as string) : undefined

export const bytesOf = (text: string): Buffer => Buffer.from(JSON.stringify(text))
