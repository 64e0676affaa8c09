import { createByteCollector, createLineReader, toOneLine } from './bytes.ts'

export interface ServerSentEvent {
  /** The last id that the stream has sent so far. */
  readonly id?: string
  /** `message` unless the stream names another type. */
  readonly event: string
  readonly data: Buffer
}

const lineFeed = Buffer.from('\n')
const empty = Buffer.alloc(0)
const RETURN = 0x0d
const LINE_FEED = 0x0a
const COLON = 0x3a

export interface EventReaderOptions {
  readonly maxLength: number
  event(event: ServerSentEvent): void
  retry?(ms: number): void
  tooLong(): void
  /** Receives everything but data: comments, empty lines, other fields, and the rest of an event that is too long. */
  other?(bytes: Buffer): void
}

/**
 * Reads an event stream as defined by the HTML standard, with two differences: a block with an id but no data is
 * delivered as an event with empty data, because the id matters for resuming; and an event longer than `maxLength` is
 * dropped and reported once. An unfinished event at the end of the stream is dropped.
 */
export class EventReader {
  readonly #options: EventReaderOptions
  readonly #lines: ReturnType<typeof createLineReader>
  readonly #further = createByteCollector()
  #id: string | undefined
  #hasId = false
  #type = ''
  #data: Buffer | undefined
  #isDropping = false
  #skipsLineFeed = false
  #isFirst = true

  constructor(options: EventReaderOptions) {
    this.#options = options
    this.#lines = createLineReader({
      maxLength: options.maxLength + 'data: '.length,
      line: (line) => this.#line(line),
      tooLong: () => this.#drop(),
      dropping: options.other && ((bytes) => options.other?.(bytes)),
    })
  }

  push(received: Buffer): void {
    let chunk = received
    if (this.#skipsLineFeed && chunk.length > 0) {
      this.#skipsLineFeed = false
      if (chunk[0] === LINE_FEED) chunk = chunk.subarray(1)
    }
    // A single CR also ends a line; the line reader handles only LF and CRLF.
    for (let at = chunk.indexOf(RETURN); at >= 0; at = chunk.indexOf(RETURN, at)) {
      if (chunk[at + 1] === LINE_FEED) {
        at += 2
        continue
      }
      this.#skipsLineFeed = at + 1 === chunk.length
      this.#lines.push(chunk.subarray(0, at))
      this.#lines.push(lineFeed)
      chunk = chunk.subarray(at + 1)
      at = 0
    }
    this.#lines.push(chunk)
  }

  #line(received: Buffer): void {
    const hasMark = this.#isFirst && received[0] === 0xef && received[1] === 0xbb && received[2] === 0xbf
    const bytes = hasMark ? received.subarray(3) : received
    this.#isFirst = false
    if (this.#options.other && (this.#isDropping || !isData(bytes))) this.#options.other(bytes)
    if (bytes.length === 0) {
      this.#finish()
      return
    }
    const colon = bytes.indexOf(COLON)
    if (colon === 0 || this.#isDropping) return
    const field = colon < 0 ? bytes.toString('utf8') : bytes.toString('latin1', 0, colon)
    const value = colon < 0 ? empty : bytes.subarray(bytes[colon + 1] === 0x20 ? colon + 2 : colon + 1)
    if (field === 'data') this.#addData(value)
    else if (field === 'event') this.#type = value.toString('utf8')
    else if (field === 'id' && !value.includes(0)) {
      this.#id = value.toString('utf8')
      this.#hasId = true
    } else if (field === 'retry' && /^\d{1,9}$/.test(value.toString('latin1'))) {
      this.#options.retry?.(Number(value.toString('latin1')))
    }
  }

  #addData(value: Buffer): void {
    if (this.#data === undefined) {
      this.#data = value
      return
    }
    if (this.#further.length === 0) this.#further.append(this.#data)
    this.#further.append(lineFeed)
    this.#further.append(value)
    if (this.#further.length > this.#options.maxLength) this.#drop()
  }

  #drop(): void {
    if (!this.#isDropping) this.#options.tooLong()
    this.#isDropping = true
    this.#data = undefined
    this.#further.clear()
  }

  #finish(): void {
    const data = this.#further.length > 0 ? this.#further.take() : this.#data
    const isEvent = !this.#isDropping && (data !== undefined || this.#hasId)
    const event: ServerSentEvent = { id: this.#id, event: this.#type || 'message', data: data ?? empty }
    this.#hasId = false
    this.#type = ''
    this.#data = undefined
    this.#isDropping = false
    this.#further.clear()
    if (isEvent) this.#options.event(event)
  }
}

const isData = (line: Buffer): boolean => line[0] === 0x64 && line.toString('latin1', 0, 4) === 'data'

/** Encodes one event whose data is one JSON value. */
export function eventBytes(event: { readonly data: Buffer; readonly id?: string; readonly event?: string }): Buffer {
  const id = event.id === undefined ? '' : `id: ${event.id}\n`
  const type = event.event === undefined ? '' : `event: ${event.event}\n`
  return Buffer.concat([Buffer.from(`${id}${type}data: `), toOneLine(event.data), Buffer.from('\n\n')])
}

/** A comment that keeps the stream alive. */
export const keepAlive: Buffer = Buffer.from(': keep-alive\n\n')
