/** Reads the data of server-sent events. */
export interface EventStream {
  /** The data of the events that a piece of the stream completes. */
  push(chunk: Uint8Array): string[]
  /** The data of an event that lacks the empty line at its end, as some servers leave it out. */
  end(): string[]
}

/** An event is longer than it may be. */
export class EventTooLong extends Error {
  override readonly name = 'EventTooLong'
}

/**
 * Server-sent events of a model server: only their data matters. Bytes that are no UTF-8 become replacement characters;
 * a character that is split between two pieces does not. Each piece is looked at once, however long a line grows.
 */
export function createEventStream(maxLength: number): EventStream {
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
