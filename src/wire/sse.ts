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

/**
 * Reads an event stream as defined by the HTML standard, with two differences: a block with an id but no data is
 * delivered as an event with empty data, because the id matters for resuming; and an event longer than `maxLength` is
 * dropped and reported once. An unfinished event at the end of the stream is dropped.
 */
export function createEventReader(options: {
  readonly maxLength: number
  event(event: ServerSentEvent): void
  retry?(ms: number): void
  tooLong(): void
  /** Receives everything but data: comments, empty lines, other fields, and the rest of an event that is too long. */
  other?(bytes: Buffer): void
}): { push(chunk: Buffer): void } {
  let id: string | undefined
  let idSet = false
  let type = ''
  let data: Buffer | undefined
  let dropping = false
  let skipLineFeed = false
  let first = true
  const further = createByteCollector()

  const reset = (): void => {
    idSet = false
    type = ''
    data = undefined
    dropping = false
    further.clear()
  }

  const drop = (): void => {
    if (!dropping) options.tooLong()
    dropping = true
    data = undefined
    further.clear()
  }

  const finish = (): void => {
    const whole = further.length > 0 ? further.take() : data
    const told = !dropping && (whole !== undefined || idSet)
    const event: ServerSentEvent = { id, event: type || 'message', data: whole ?? empty }
    reset()
    if (told) options.event(event)
  }

  const addData = (value: Buffer): void => {
    if (data === undefined) {
      data = value
      return
    }
    if (further.length === 0) further.append(data)
    further.append(lineFeed)
    further.append(value)
    if (further.length > options.maxLength) drop()
  }

  const line = (received: Buffer): void => {
    const bytes =
      first && received[0] === 0xef && received[1] === 0xbb && received[2] === 0xbf ? received.subarray(3) : received
    first = false
    if (options.other && (dropping || !isData(bytes))) options.other(bytes)
    if (bytes.length === 0) {
      finish()
      return
    }
    const colon = bytes.indexOf(COLON)
    if (colon === 0 || dropping) return
    const field = colon < 0 ? bytes.toString('utf8') : bytes.toString('latin1', 0, colon)
    const value = colon < 0 ? empty : bytes.subarray(bytes[colon + 1] === 0x20 ? colon + 2 : colon + 1)
    if (field === 'data') addData(value)
    else if (field === 'event') type = value.toString('utf8')
    else if (field === 'id' && !value.includes(0)) {
      id = value.toString('utf8')
      idSet = true
    } else if (field === 'retry' && /^\d{1,9}$/.test(value.toString('latin1'))) {
      options.retry?.(Number(value.toString('latin1')))
    }
  }

  const lines = createLineReader({
    maxLength: options.maxLength + 'data: '.length,
    line,
    tooLong: drop,
    dropping: options.other,
  })

  return {
    push(received) {
      let chunk = received
      if (skipLineFeed && chunk.length > 0) {
        skipLineFeed = false
        if (chunk[0] === LINE_FEED) chunk = chunk.subarray(1)
      }
      // A single CR also ends a line; the line reader handles only LF and CRLF.
      for (let at = chunk.indexOf(RETURN); at >= 0; at = chunk.indexOf(RETURN, at)) {
        if (chunk[at + 1] === LINE_FEED) {
          at += 2
          continue
        }
        skipLineFeed = at + 1 === chunk.length
        lines.push(chunk.subarray(0, at))
        lines.push(lineFeed)
        chunk = chunk.subarray(at + 1)
        at = 0
      }
      lines.push(chunk)
    },
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
