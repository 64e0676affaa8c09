/** Receives the parts of responses, one response after another. */
export interface ResponseListener {
  /** Returns the length up to which the body should be delivered in one piece; 0 if chunks are fine. */
  head(head: ParsedHead): number
  data(chunk: Buffer): void
  end(): void
}

type ResponsePart = 'head' | 'length' | 'chunk size' | 'chunk' | 'chunk end' | 'trailer' | 'until end'

/** Maximum length of a chunk's size line and of a trailer. */
const maxFramingLine = 4 * 1024

/** How many bytes of a response may be framing: sizes and extensions of chunks, trailers, informational responses. */
const maxFraming = 1024 * 1024
const framingPerByte = 2

/** A longer body that is delivered in one piece is read directly into its buffer, not collected from chunks. */
const longBody = 32 * 1024

const noData = Buffer.alloc(0)

export class ResponseReader {
  readonly #listener: ResponseListener
  #part: ResponsePart = 'head'
  /** The beginning of a head or line that is not complete yet. */
  #begun: Buffer = noData
  /** The number of remaining bytes in the body, or in the current chunk. */
  #left = 0
  #whole: Buffer | undefined
  /** The bytes of the current response that are framing, less what its body allows. */
  #framing = 0

  constructor(listener: ResponseListener) {
    this.#listener = listener
  }

  /** The buffer to read the next bytes into, if they belong to a long body that is delivered in one piece. */
  get place(): Buffer | undefined {
    return this.#whole?.subarray(this.#whole.length - this.#left)
  }

  placed(length: number): void {
    this.#left -= length
    if (this.#left > 0 || this.#whole === undefined) return
    this.#listener.data(this.#whole)
    this.#whole = undefined
    this.#finish()
  }

  /** Reads a chunk, whose memory may be reused afterwards. Throws `MalformedResponse` if the response is malformed. */
  push(chunk: Buffer): void {
    const bytes = this.#begun.length === 0 ? chunk : Buffer.concat([this.#begun, chunk])
    this.#begun = noData
    for (let at = 0; at < bytes.length; ) {
      if (this.#part === 'head') at = this.#readHead(bytes, at)
      else if (this.#part === 'length' || this.#part === 'chunk') at = this.#readContent(bytes, at)
      else if (this.#part === 'until end') {
        this.#listener.data(Buffer.from(bytes.subarray(at)))
        return
      } else at = this.#readLine(bytes, at)
    }
  }

  /** Called when the connection has ended. Returns false if that truncated a response. */
  ended(): boolean {
    if (this.#part === 'until end') this.#finish()
    return this.#part === 'head' && this.#begun.length === 0
  }

  /** Reads a head, if it is complete. Returns the position after what was read, like the following two methods. */
  #readHead(bytes: Buffer, at: number): number {
    const length = headLength(bytes, at)
    if (length === 0) {
      if (!beginsWell(bytes, at)) throw new MalformedResponse('invalid status line')
      refuseBareLf(bytes, at)
      if (bytes.length - at > maxHeadBytes) throw new MalformedResponse('head too long')
      this.#begun = Buffer.from(bytes.subarray(at))
      return bytes.length
    }
    if (length > maxHeadBytes) throw new MalformedResponse('head too long')
    const head = parseHead(bytes.toString('latin1', at, at + length))
    if (head.status < 200) {
      // This response is only informational; another one follows.
      this.#addFraming(length)
      checkInformational(head)
      return at + length
    }
    this.#part = typeof head.body === 'number' ? 'length' : head.body === 'chunked' ? 'chunk size' : head.body
    this.#left = typeof head.body === 'number' ? head.body : 0
    const wanted = this.#listener.head(head)
    if (this.#part === 'length' && this.#left > longBody && this.#left <= wanted)
      this.#whole = Buffer.allocUnsafeSlow(this.#left)
    if (this.#part === 'length' && this.#left === 0) this.#finish()
    return at + length
  }

  #readContent(bytes: Buffer, at: number): number {
    const end = Math.min(at + this.#left, bytes.length)
    if (this.#whole) {
      bytes.copy(this.#whole, this.#whole.length - this.#left, at, end)
      this.placed(end - at)
      return end
    }
    this.#left -= end - at
    this.#framing = Math.max(0, this.#framing - framingPerByte * (end - at))
    this.#listener.data(Buffer.from(bytes.subarray(at, end)))
    if (this.#left > 0) return end
    if (this.#part === 'chunk') this.#part = 'chunk end'
    else this.#finish()
    return end
  }

  #readLine(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(10, at)
    if (end !== -1 && (end === at || bytes[end - 1] !== 13)) throw new MalformedResponse('a line ends with LF alone')
    if (end === -1) {
      if (bytes.length - at > maxFramingLine) throw new MalformedResponse('line too long')
      this.#begun = Buffer.from(bytes.subarray(at))
      return bytes.length
    }
    const line = bytes.toString('latin1', at, end - 1)
    this.#addFraming(end + 1 - at)
    if (this.#part === 'chunk size') {
      this.#left = chunkSize(line)
      this.#part = this.#left === 0 ? 'trailer' : 'chunk'
    } else if (this.#part === 'chunk end') {
      if (line !== '') throw new MalformedResponse('chunk longer than its size')
      this.#part = 'chunk size'
    } else if (line === '') this.#finish()
    else checkTrailer(line)
    return end + 1
  }

  /** Refuses a response that keeps us busy with framing, such as one of chunks of one byte. */
  #addFraming(length: number): void {
    this.#framing += length
    if (this.#framing > maxFraming) throw new MalformedResponse('more framing than content')
  }

  #finish(): void {
    this.#part = 'head'
    this.#framing = 0
    this.#listener.end()
  }
}

function checkInformational({ status, reuse }: ParsedHead): void {
  if (status === 101) throw new MalformedResponse('101 Switching Protocols without a request for it')
  // Reject this response, as undici does, because we never send Expect.
  if (status === 100) throw new MalformedResponse('100 Continue without a request for it')
  if (!reuse) throw new MalformedResponse('informational response with Connection: close')
}

/** Whether the bytes begin like HTTP/1. Checked early, because a server with another protocol may send nothing more. */
const beginsWell = (bytes: Buffer, at: number): boolean =>
  'HTTP/1.'.startsWith(bytes.toString('latin1', at, Math.min(at + 7, bytes.length)))

const tokenForm = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const quotedStringForm = '"(?:[\\t\\x20\\x21\\x23-\\x5b\\x5d-\\x7e\\x80-\\xff]|\\\\[\\t\\x20-\\x7e\\x80-\\xff])*"'
/** Matches the size line of a chunk. A number of thirteen hex digits is a safe integer. */
const chunkLine = new RegExp(`^0*([0-9a-fA-F]{1,13})(?:;${tokenForm}(?:=(?:${tokenForm}|${quotedStringForm}))?)*$`)

/** Reads a chunk's size. Extensions are ignored, but must be well-formed. */
function chunkSize(line: string): number {
  const digits = chunkLine.exec(line)?.[1]
  if (digits === undefined) throw new MalformedResponse('invalid chunk size')
  return Number.parseInt(digits, 16)
}

/** Checks a trailer. Trailers are ignored, but must not change the framing. */
function checkTrailer(line: string): void {
  const name = fieldName(line)
  if (!nameForm.test(name) || !valueForm.test(line)) throw invalidField(line)
  if (name === 'content-length' || name === 'transfer-encoding')
    throw new MalformedResponse('more than one Content-Length')
}

export interface ParsedHead {
  readonly status: number
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
export const maxHeadBytes = 16 * 1024

const statusLine = /^HTTP\/1\.([01]) ([1-5][0-9][0-9])(?: [\t\x20-\x7e\x80-\xff]*)?$/

const nameForm = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
/** Matches a header value without CR, LF, NUL or other control characters. */
const valueForm = /^[\t\x20-\x7e\x80-\xff]*$/
const fieldLine = /([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)\r\n/y

/** Throws if a line ends with LF only, because the head can no longer become valid. */
export function refuseBareLf(bytes: Buffer, from: number): void {
  for (let at = bytes.indexOf(10, from); at !== -1; at = bytes.indexOf(10, at + 1)) {
    if (at === from || bytes[at - 1] !== 13) throw new MalformedResponse('a line ends with LF alone')
  }
}

const fieldName = (line: string): string => line.slice(0, Math.max(0, line.indexOf(':'))).toLowerCase()

function invalidField(line: string): MalformedResponse {
  const name = fieldName(line)
  return new MalformedResponse(nameForm.test(name) ? `invalid character in header ${name}` : 'invalid header name')
}

/**
 * Parses a head. Accepts nothing that undici or node:http would reject or read differently, because an intermediary may
 * read it like one of them. A few things that both accept are rejected as well: see `compare.fixture.ts`.
 */
export function parseHead(text: string): ParsedHead {
  const end = text.indexOf('\r\n')
  const [, minor, code] = statusLine.exec(text.slice(0, end)) ?? []
  if (code === undefined) throw new MalformedResponse('invalid status line')
  const status = Number(code)
  const headers = new Map<string, string>()
  const repeated: (readonly [string, string])[] = []
  let connection = ''
  for (fieldLine.lastIndex = end + 2; fieldLine.lastIndex < text.length - 2; ) {
    const at = fieldLine.lastIndex
    const [, written, given = ''] = fieldLine.exec(text) ?? []
    if (written === undefined) throw invalidField(text.slice(at, text.indexOf('\r\n', at)))
    const name = written.toLowerCase()
    // Keep trailing white space in these two headers, because parsers treat it differently.
    const value = name === 'content-length' || name === 'transfer-encoding' ? given : given.replace(/[ \t]+$/, '')
    if (name === 'connection') connection += `,${value.toLowerCase()}`
    if (headers.has(name)) repeated.push([name, value])
    else headers.set(name, value)
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
  const seconds = /(?:^|[,;\s])timeout=([0-9]{1,6})/.exec(headers.get('keep-alive') ?? '')?.[1]
  return {
    status,
    headers,
    repeated,
    body,
    reuse,
    keepAliveMs: seconds === undefined ? undefined : Number(seconds) * 1_000,
  }
}

/** Thrown if the server sent something that is not valid HTTP/1.1. */
export class MalformedResponse extends Error {
  override readonly name = 'MalformedResponse'
  readonly code = 'BAD_HTTP'
}
