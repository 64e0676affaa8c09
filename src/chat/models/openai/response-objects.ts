import { EventTooLong, type ModelServer, notACompletion, tooLong } from './errors.ts'
import type { HttpResponse } from './http.ts'

/** An answer of a model is far shorter, even with everything that is sent around each of its words. */
const maxBytes = 32 * 1024 * 1024
/** One object. */
const maxCharacters = 4 * 1024 * 1024

/** The objects of an answer: those of a stream of events, or the only one. Its beginning decides where its type lies. */
export async function* responseObjects(
  server: ModelServer,
  answer: HttpResponse,
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<unknown> {
  const events = createSseDecoder(maxCharacters)
  const parts: Buffer[] = []
  let length = 0
  let form = formOf(answer.type)
  for await (const chunk of chunks) {
    length += chunk.length
    form ??= sniffed(Buffer.concat([...parts, chunk]))
    if (length > (form === 'events' ? maxBytes : maxCharacters)) throw tooLong(server, length)
    if (form !== 'events') parts.push(chunk)
    else {
      for (const data of events.push(parts.length > 0 ? Buffer.concat([...parts.splice(0), chunk]) : chunk)) {
        if (data === '[DONE]') return answer.over()
        yield parsed(server, data)
      }
    }
  }
  if (form === 'events') for (const data of events.end()) if (data !== '[DONE]') yield parsed(server, data)
  if (form === 'events') return
  const text = Buffer.concat(parts).toString('utf8')
  if (text.trim() === '') throw notACompletion(server, 'nothing')
  if (form !== 'object') throw notACompletion(server, answer.type || 'something unnamed')
  yield parsed(server, text)
}

type BodyForm = 'events' | 'object' | 'other'

function formOf(type: string): BodyForm | undefined {
  if (type === 'text/event-stream') return 'events'
  return type === 'application/json' ? undefined : type === 'text/html' ? 'other' : undefined
}

/** Some servers give a stream the type of an object, and the other way round; `undefined` while only spaces have come. */
function sniffed(bytes: Buffer): BodyForm | undefined {
  const start = bytes
    .subarray(0, 256)
    .toString('latin1')
    .replace(/^\u00ef\u00bb\u00bf/, '')
    .trimStart()
  if (start === '') return undefined
  if (start.startsWith('{')) return 'object'
  return /^(?:data|event|id|retry)?:/.test(start) ? 'events' : 'other'
}

function parsed(server: ModelServer, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw notACompletion(server, 'text that is no JSON')
  }
}

/** Reads the data of server-sent events. */
interface SseDecoder {
  /** The data of the events that a piece of the stream completes. */
  push(chunk: Uint8Array): string[]
  /** The data of an event that lacks the empty line at its end, as some servers leave it out. */
  end(): string[]
}

/**
 * Server-sent events of a model server: only their data matters. Bytes that are no UTF-8 become replacement characters;
 * a character that is split between two pieces does not. Each piece is looked at once, however long a line grows.
 */
export function createSseDecoder(maxLength: number): SseDecoder {
  const decoder = new TextDecoder()
  let begun: string[] = []
  let length = 0
  let data: string[] = []

  const grow = (by: number): void => {
    length += by
    if (length > maxLength) throw new EventTooLong(`an event is longer than ${maxLength} characters`)
  }

  const line = (text: string, found: string[]): void => {
    if (text === '') {
      if (data.length > 0) found.push(data.join('\n'))
      data = []
      length = 0
    } else if (text.startsWith('data:')) data.push(text.slice(text[5] === ' ' ? 6 : 5))
  }

  const read = (text: string, found: string[]): void => {
    let from = 0
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', from)) {
      const whole = begun.length > 0 ? [...begun, text.slice(from, at)].join('') : text.slice(from, at)
      begun = []
      grow(at - from)
      from = at + 1
      line(whole.endsWith('\r') ? whole.slice(0, -1) : whole, found)
    }
    if (from === text.length) return
    grow(text.length - from)
    begun.push(text.slice(from))
  }

  return {
    push(chunk) {
      const found: string[] = []
      read(decoder.decode(chunk, { stream: true }), found)
      return found
    },
    end() {
      const found: string[] = []
      read(`${decoder.decode()}\n\n`, found)
      return found
    },
  }
}
