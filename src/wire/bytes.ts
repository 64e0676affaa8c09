import { isUtf8 } from 'node:buffer'
import { jsonValue } from '../json/parse-json.ts'

/** Collects bytes that arrive in chunks. Large chunks are copied only once, at the end. */
export interface ByteCollector {
  readonly length: number
  append(piece: Buffer): void
  /** Returns the collected bytes and starts over. The appended chunks must not be used afterwards. */
  take(): Buffer
  /** Discards the collected bytes and starts over. */
  clear(): void
}

/** Smaller chunks are copied into one buffer: an object for each could take a hundred times the memory of its bytes. */
const large = 16 * 1024

const nothing = Buffer.alloc(0)

/** Frees a chunk at once, instead of at a later collection, if this is all of it: then no other line is a slice of it. */
function free({ buffer, length }: Buffer): void {
  if (length === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}

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
      const [first = nothing, ...others] = pieces
      const gathered = others.length === 0 ? first : Buffer.concat(pieces, length)
      if (others.length > 0) for (const piece of pieces) free(piece)
      pieces = []
      length = 0
      return gathered
    },
    clear() {
      pieces = []
      space = nothing
      used = 0
      length = 0
    },
  }
}

/** One message in several buffers, which are not concatenated, so that only the kernel copies large parts. */
export type Pieces = readonly Buffer[]

export const joined = (pieces: Pieces): Buffer => (pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces))

export function lengthOf(pieces: Pieces): number {
  let length = 0
  for (const piece of pieces) length += piece.length
  return length
}

const SPACE = 0x20

export const hasLineBreak = (bytes: Buffer): boolean => bytes.includes(LF) || bytes.includes(CR)

/** Replaces line breaks with spaces, in place. In valid JSON, they occur only between tokens. */
export function replaceLineBreaks(json: Buffer): void {
  for (let at = json.indexOf(LF); at >= 0; at = json.indexOf(LF, at + 1)) json[at] = SPACE
  for (let at = json.indexOf(CR); at >= 0; at = json.indexOf(CR, at + 1)) json[at] = SPACE
}

/** Puts valid JSON on one line, as stdio and event streams require. In other text, this would hide a broken string. */
export function toOneLine(json: Buffer): Buffer {
  if (!hasLineBreak(json)) return json
  const copy = Buffer.from(json)
  replaceLineBreaks(copy)
  return copy
}

/** Removes a byte order mark, and replaces invalid UTF-8 with U+FFFD. */
export function toUtf8(received: Buffer): Buffer {
  const marked = received[0] === 0xef && received[1] === 0xbb && received[2] === 0xbf
  const bytes = marked ? received.subarray(3) : received
  return isUtf8(bytes) ? bytes : Buffer.from(bytes.toString('utf8'))
}

/** Valid JSON on one line, in valid UTF-8. */
export const toCleanLine = (json: Buffer): Buffer => toOneLine(toUtf8(json))

export type Replacement = readonly [slice: Buffer, by: Buffer]

/** Replaces slices of `bytes`. The slices must be in order; their positions are computed from their buffer offsets. */
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
  slice?.[0] === 0x22 ? (jsonValue(slice.toString('utf8')) as string) : undefined

export const bytesOf = (text: string): Buffer => Buffer.from(JSON.stringify(text))

const LF = 0x0a
const CR = 0x0d

/** How much of a dropped line's start and end is kept. */
const edgeBytes = 4_096

/** Collects the first and the last bytes of a line, without keeping the rest. */
function createEdges() {
  let head = nothing
  let tail = nothing
  return {
    add(piece: Buffer): void {
      if (head.length < edgeBytes) head = Buffer.concat([head, piece.subarray(0, edgeBytes - head.length)])
      const last = piece.subarray(-edgeBytes)
      tail = Buffer.concat(last.length < edgeBytes ? [tail.subarray(last.length - edgeBytes), last] : [last])
    },
    take(): { readonly head: Buffer; readonly tail: Buffer } {
      const edges = { head, tail }
      head = nothing
      tail = nothing
      return edges
    },
  }
}

/**
 * Splits a stream into lines without their LF or CRLF, including empty lines. A line that lies within one chunk is a
 * slice of that chunk. A line longer than `maxLength` is dropped and reported: as soon as it exceeds the limit, with
 * `tooLong`, and at its end, with `dropped`.
 */
export function createLineReader(options: {
  readonly maxLength: number
  /** Whether to skip empty lines: a sender could produce millions of them. */
  readonly skipsEmpty?: boolean
  line(bytes: Buffer): void
  tooLong?(length: number): void
  /** Receives the first and last bytes of a dropped line, without its LF, and the line's length. */
  dropped?(head: Buffer, tail: Buffer, length: number): void
  /** Receives each piece of a dropped line after the one that made it too long. */
  dropping?(piece: Buffer): void
  /** Called with the number of empty lines that were skipped. */
  skipped?(count: number): void
}) {
  const { maxLength, skipsEmpty = false } = options
  const begun = createByteCollector()
  const edges = options.dropped && createEdges()
  /** The length of the line that is being dropped; 0 if none is. */
  let dropping = 0

  const drop = (piece: Buffer): void => {
    if (dropping === 0) {
      dropping = begun.length + piece.length
      if (edges && begun.length > 0) edges.add(begun.take())
      else begun.clear()
      options.tooLong?.(dropping)
    } else {
      dropping += piece.length
      options.dropping?.(piece)
    }
    edges?.add(piece)
  }

  const finish = (rest: Buffer): void => {
    if (dropping > 0 || begun.length + rest.length > maxLength) {
      drop(rest)
      const length = dropping
      dropping = 0
      if (!edges) return
      const { head, tail } = edges.take()
      options.dropped?.(head, tail, length)
      return
    }
    let line = rest
    if (begun.length > 0) {
      begun.append(rest)
      line = begun.take()
    }
    options.line(line[line.length - 1] === CR ? line.subarray(0, -1) : line)
  }

  return {
    push(chunk: Buffer): void {
      let from = 0
      for (;;) {
        if (skipsEmpty && begun.length === 0 && dropping === 0 && chunk[from] === LF) {
          const first = from
          while (chunk[from] === LF) from++
          options.skipped?.(from - first)
        }
        const at = chunk.indexOf(LF, from)
        if (at < 0) break
        const rest = chunk.subarray(from, at)
        from = at + 1
        finish(rest)
      }
      if (from === chunk.length) return
      const rest = chunk.subarray(from)
      if (dropping > 0 || begun.length + rest.length > maxLength) drop(rest)
      else begun.append(rest)
    },
    /** Delivers the last line if it did not end with a line break. */
    end(): void {
      if (begun.length > 0 || dropping > 0) finish(Buffer.alloc(0))
    },
  }
}
