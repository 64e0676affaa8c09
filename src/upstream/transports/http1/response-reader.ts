/** Receives the parts of responses, one response after another. */
export interface ResponseListener {
  /** Returns the length up to which the body should be delivered in one piece; 0 if chunks are fine. */
  head(head: ParsedHead): number
  data(chunk: Buffer): void
  end(): void
}

export interface ResponseReader {
  /** Reads a chunk, whose memory may be reused afterwards. Throws `MalformedResponse` if the response is malformed. */
  push(chunk: Buffer): void
  /** The buffer to read the next bytes into, if they belong to a long body that is delivered in one piece. */
  readonly place: Buffer | undefined
  placed(length: number): void
  /** Called when the connection has ended. Returns false if that truncated a response. */
  ended(): boolean
}

type Part = 'head' | 'length' | 'chunk size' | 'chunk' | 'chunk end' | 'trailer' | 'until end'

/** Maximum length of a chunk's size line and of a trailer. */
const maxLine = 4 * 1024

/** How many bytes of a response may be framing: sizes and extensions of chunks, trailers, informational responses. */
const maxFraming = 1024 * 1024
const framingPerByte = 2

/** A longer body that is delivered in one piece is read directly into its buffer, not collected from chunks. */
const long = 32 * 1024

const nothing = Buffer.alloc(0)

export function createResponseReader(listener: ResponseListener): ResponseReader {
  let part: Part = 'head'
  /** The beginning of a head or line that is not complete yet. */
  let begun: Buffer = nothing
  /** The number of remaining bytes in the body, or in the current chunk. */
  let left = 0
  /** A body that is read directly into its buffer. */
  let whole: Buffer | undefined
  /** The bytes of the current response that are framing, less what its body allows. */
  let framing = 0

  /** Refuses a response that keeps us busy with framing, such as one of chunks of one byte. */
  const addFraming = (length: number) => {
    framing += length
    if (framing > maxFraming) throw new MalformedResponse('more framing than content')
  }

  const start = (head: ParsedHead) => {
    // This response is only informational; another one follows.
    if (head.status < 200) {
      if (head.status === 101) throw new MalformedResponse('101 Switching Protocols without a request for it')
      // Reject this response, as undici does, because we never send Expect.
      if (head.status === 100) throw new MalformedResponse('100 Continue without a request for it')
      if (!head.reuse) throw new MalformedResponse('informational response with Connection: close')
      return
    }
    part = head.body === 'chunked' ? 'chunk size' : head.body === 'until end' ? 'until end' : 'length'
    left = typeof head.body === 'number' ? head.body : 0
    const wanted = listener.head(head)
    if (part === 'length' && left > long && left <= wanted) whole = Buffer.allocUnsafeSlow(left)
    if (part === 'length' && left === 0) finish()
  }

  const finish = () => {
    part = 'head'
    framing = 0
    listener.end()
  }

  const placed = (length: number) => {
    left -= length
    if (left > 0 || whole === undefined) return
    listener.data(whole)
    whole = undefined
    finish()
  }

  /** The next line, if it is complete, and the position where the following one begins. */
  const line = (bytes: Buffer, at: number): { readonly text: string; readonly next: number } | undefined => {
    const end = bytes.indexOf(10, at)
    if (end !== -1 && (end === at || bytes[end - 1] !== 13)) throw new MalformedResponse('a line ends with LF alone')
    if (end === -1 && bytes.length - at > maxLine) throw new MalformedResponse('line too long')
    if (end === -1) begun = Buffer.from(bytes.subarray(at))
    return end === -1 ? undefined : { text: bytes.toString('latin1', at, end - 1), next: end + 1 }
  }

  const push = (chunk: Buffer) => {
    const bytes = begun.length === 0 ? chunk : Buffer.concat([begun, chunk])
    begun = nothing
    let at = 0
    while (at < bytes.length) {
      if (part === 'head') {
        const length = headLength(bytes, at)
        if (length === 0) {
          if (!beginsWell(bytes, at)) throw new MalformedResponse('invalid status line')
          refuseBareLf(bytes, at)
          if (bytes.length - at > maxHead) throw new MalformedResponse('head too long')
          begun = Buffer.from(bytes.subarray(at))
          return
        }
        if (length > maxHead) throw new MalformedResponse('head too long')
        const head = readHead(bytes.toString('latin1', at, at + length))
        at += length
        if (head.status < 200) addFraming(length)
        start(head)
      } else if (part === 'length' || part === 'chunk') {
        const end = Math.min(at + left, bytes.length)
        if (whole) {
          bytes.copy(whole, whole.length - left, at, end)
          placed(end - at)
          at = end
          continue
        }
        left -= end - at
        framing = Math.max(0, framing - framingPerByte * (end - at))
        listener.data(Buffer.from(bytes.subarray(at, end)))
        at = end
        if (left > 0) return
        if (part === 'chunk') part = 'chunk end'
        else finish()
      } else if (part === 'until end') {
        listener.data(Buffer.from(bytes.subarray(at)))
        return
      } else {
        const found = line(bytes, at)
        if (found === undefined) return
        addFraming(found.next - at)
        at = found.next
        if (part === 'chunk size') {
          left = chunkSize(found.text)
          part = left === 0 ? 'trailer' : 'chunk'
        } else if (part === 'chunk end') {
          if (found.text !== '') throw new MalformedResponse('chunk longer than its size')
          part = 'chunk size'
        } else if (found.text === '') finish()
        else checkTrailer(found.text)
      }
    }
  }

  return {
    push,
    get place() {
      return whole?.subarray(whole.length - left)
    },
    placed,
    ended() {
      if (part === 'until end') finish()
      return part === 'head' && begun.length === 0
    },
  }
}

/** Whether the bytes begin like HTTP/1. Checked early, because a server with another protocol may send nothing more. */
const beginsWell = (bytes: Buffer, at: number): boolean =>
  'HTTP/1.'.startsWith(bytes.toString('latin1', at, Math.min(at + 7, bytes.length)))

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const quoted = '"(?:[\\t\\x20\\x21\\x23-\\x5b\\x5d-\\x7e\\x80-\\xff]|\\\\[\\t\\x20-\\x7e\\x80-\\xff])*"'
/** Matches the size line of a chunk. A number of thirteen hex digits is a safe integer. */
const chunkLine = new RegExp(`^0*([0-9a-fA-F]{1,13})(?:;${token}(?:=(?:${token}|${quoted}))?)*$`)

/** Reads a chunk's size. Extensions are ignored, but must be well-formed. */
function chunkSize(line: string): number {
  const digits = chunkLine.exec(line)?.[1]
  if (digits === undefined) throw new MalformedResponse('invalid chunk size')
  return Number.parseInt(digits, 16)
}

/** Checks a trailer. Trailers are ignored, but must not change the framing. */
function checkTrailer(line: string): void {
  const [name] = readField(line)
  if (name === 'content-length' || name === 'transfer-encoding')
    throw new MalformedResponse('more than one Content-Length')
}

export interface ParsedHead {
  readonly status: number
  /** The first value of each header, by the header's name in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly repeated: readonly (readonly [name: string, value: string])[]
  /** How the end of the body is found: after a number of bytes, by chunks, or when the connection closes. */
  readonly body: number | 'chunked' | 'until end'
  /** Whether the connection can be reused, and the server's keep-alive timeout. */
  readonly reuse: boolean
  readonly keepAliveMs: number | undefined
}

/** The length of a head including the empty line; 0 if the head is not complete yet. */
export function headLength(bytes: Buffer, from: number): number {
  const end = bytes.indexOf('\r\n\r\n', from, 'latin1')
  return end === -1 ? 0 : end + 4 - from
}

/** The maximum length of a head, the same as in undici and node:http. */
export const maxHead = 16 * 1024

const statusLine = /^HTTP\/1\.([01]) ([1-5][0-9][0-9])(?: [\t\x20-\x7e\x80-\xff]*)?$/

const nameForm = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
/** Matches a header value without CR, LF, NUL or other control characters. */
const valueForm = /^[\t\x20-\x7e\x80-\xff]*$/

/** Throws if a line ends with LF only, because the head can no longer become valid. */
export function refuseBareLf(bytes: Buffer, from: number): void {
  for (let at = bytes.indexOf(10, from); at !== -1; at = bytes.indexOf(10, at + 1)) {
    if (at === from || bytes[at - 1] !== 13) throw new MalformedResponse('a line ends with LF alone')
  }
}

/** Parses `name: value` without its line break and without leading white space in the value. */
function readField(line: string): readonly [name: string, value: string] {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(0, colon)).toLowerCase()
  if (!nameForm.test(name)) throw new MalformedResponse('invalid header name')
  const value = line.slice(colon + 1).replace(/^[ \t]+/, '')
  if (!valueForm.test(value)) throw new MalformedResponse(`invalid character in header ${name}`)
  return [name, value]
}

/**
 * Parses a head. Accepts nothing that undici or node:http would reject or read differently, because an intermediary may
 * read it like one of them. A few things that both accept are rejected as well: see `compare.fixture.ts`.
 */
export function readHead(text: string): ParsedHead {
  let at = text.indexOf('\r\n')
  const [, minor, code] = statusLine.exec(text.slice(0, at)) ?? []
  if (code === undefined) throw new MalformedResponse('invalid status line')
  const status = Number(code)
  const headers = new Map<string, string>()
  const repeated: (readonly [string, string])[] = []
  let connection = ''
  for (at += 2; at < text.length - 2; ) {
    const end = text.indexOf('\r\n', at)
    const [name, given] = readField(text.slice(at, end))
    // Keep trailing white space in these two headers, because parsers treat it differently.
    const value = name === 'content-length' || name === 'transfer-encoding' ? given : given.replace(/[ \t]+$/, '')
    if (name === 'connection') connection += `,${value.toLowerCase()}`
    if (headers.has(name)) repeated.push([name, value])
    else headers.set(name, value)
    at = end + 2
  }
  const coding = headers.get('transfer-encoding')
  const length = headers.get('content-length')
  if (repeated.some(([name]) => name === 'content-length' || name === 'transfer-encoding'))
    throw new MalformedResponse('more than one Content-Length')
  if (coding !== undefined && length !== undefined)
    throw new MalformedResponse('both Content-Length and Transfer-Encoding')
  if (length !== undefined && !/^[0-9]{1,15}$/.test(length)) throw new MalformedResponse('invalid Content-Length')
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw new MalformedResponse('unsupported Transfer-Encoding')
  const none = status === 204 || status === 304 || status < 200
  const body = none ? 0 : coding !== undefined ? 'chunked' : length === undefined ? 'until end' : Number(length)
  const kept = minor === '1' ? !connection.includes('close') : connection.includes('keep-alive')
  const reuse = kept && body !== 'until end'
  return { status, headers, repeated, body, reuse, keepAliveMs: keepAlive(headers.get('keep-alive')) }
}

function keepAlive(value: string | undefined): number | undefined {
  const seconds = value === undefined ? undefined : /(?:^|[,;\s])timeout=([0-9]{1,6})/.exec(value)?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1_000
}

/** Thrown if the server sent something that is not valid HTTP/1.1. */
export class MalformedResponse extends Error {
  override readonly name = 'MalformedResponse'
  readonly code = 'BAD_HTTP'
}
