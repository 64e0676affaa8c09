import type { ModelServer } from '../../../egress/model-server.ts'
import { parseJson } from '../../../json/parse-json.ts'
import { interruption, isFinished } from '../completion-decoder.ts'
import { EventTooLong, notACompletion, tooLong } from './errors.ts'
import type { HttpResponse } from './http.ts'

/** Maximum size of a stream, far larger than any answer. */
const maxBytes = 32 * 1024 * 1024
/** Maximum length of a single object. */
const maxCharacters = 4 * 1024 * 1024

/** The JSON objects in a response, which is either a stream of server-sent events or a single object. */
export async function* responseObjects(
  server: ModelServer,
  answer: HttpResponse,
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<unknown> {
  const events = createSseDecoder(maxCharacters)
  const parts: Buffer[] = []
  let length = 0
  // Trust only these two media types; for all others, which servers often send by mistake, look at the content.
  let form: BodyForm | undefined =
    answer.type === 'text/event-stream' ? 'events' : answer.type === 'text/html' ? 'other' : undefined
  for await (const chunk of chunks) {
    length += chunk.length
    form ??= sniffed(Buffer.concat([...parts, chunk]))
    if (length > (form === 'events' ? maxBytes : maxCharacters)) throw tooLong(server, length)
    if (form !== 'events') parts.push(chunk)
    else {
      for (const data of events.push(parts.length > 0 ? Buffer.concat([...parts.splice(0), chunk]) : chunk)) {
        if (data === '[DONE]') return answer.over()
        const object = parsed(server, data)
        if (isFinished(object)) answer.finish()
        yield object
      }
    }
  }
  if (form === 'events') {
    for (const data of events.end()) {
      if (data === '[DONE]') return
      // A finished answer may break off in the middle of its last event.
      const object = answer.isFinished() ? parseJson(data) : parsed(server, data)
      if (isFinished(object)) answer.finish()
      yield object
    }
    // Neither a finish reason nor [DONE]: use the answer as far as it came, but not as a complete one.
    if (!answer.isFinished()) yield interruption
    return
  }
  const text = Buffer.concat(parts).toString('utf8')
  if (text.trim() === '') throw notACompletion(server, 'nothing')
  if (form !== 'object') throw notACompletion(server, answer.type || 'an unknown response')
  yield parsed(server, text)
}

type BodyForm = 'events' | 'object' | 'other'

/** The format of a body, judging by its beginning; `undefined` while only whitespace has arrived. */
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
  const value = parseJson(text)
  if (value === undefined) throw notACompletion(server, 'text that is not JSON')
  return value
}

/**
 * Decodes server-sent events and keeps only their data. A character may be split between chunks; invalid UTF-8 becomes
 * replacement characters. Each chunk is scanned only once, even within a long line.
 */
export function createSseDecoder(maxLength: number) {
  const decoder = new TextDecoder()
  let begun: string[] = []
  let length = 0
  let data: string[] = []

  const grow = (by: number): void => {
    length += by
    if (length > maxLength) throw new EventTooLong(`an event is longer than ${maxLength} characters`)
  }

  const read = (text: string): readonly string[] => {
    const found: string[] = []
    let from = 0
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', from)) {
      const part = text.slice(from, at)
      const line = (begun.length > 0 ? [...begun, part].join('') : part).replace(/\r$/, '')
      begun = []
      grow(at - from)
      from = at + 1
      if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
      if (line !== '') continue
      if (data.length > 0) found.push(data.join('\n'))
      data = []
      length = 0
    }
    if (from === text.length) return found
    grow(text.length - from)
    begun.push(text.slice(from))
    return found
  }

  return {
    /** Returns the data from the events that this chunk completes. */
    push: (chunk: Uint8Array) => read(decoder.decode(chunk, { stream: true })),
    /** Returns the data from the last event if the blank line after it is missing, as some servers omit it. */
    end: () => read(`${decoder.decode()}\n\n`),
  }
}
