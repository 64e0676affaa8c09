import { ApiError, fetchResponse, type RequestOptions } from './request.ts'

interface EventStreamOptions<Event> extends RequestOptions {
  readonly signal: AbortSignal
  /** Parses the data of an event; by default JSON. */
  readonly parse?: (data: string) => unknown
  onEvent(event: Event): void
  /** The message of the error if the stream breaks off before its last event. */
  readonly lostMessage: string
}

type LastEvent<Event> = Extract<Event, { readonly kind: 'end' | 'error' }>

/**
 * Posts a request, passes on the events of the response and resolves with the last one (`end` or `error`). Rejects with
 * an ApiError if the request fails or the connection is lost, or with the signal's reason if it is aborted.
 */
export async function streamEvents<Event extends { readonly kind: string }>(
  path: string,
  { parse = JSON.parse, onEvent, lostMessage, ...request }: EventStreamOptions<Event>,
): Promise<LastEvent<Event>> {
  const { body } = await fetchResponse(path, { ...request, method: 'POST' })
  let last: LastEvent<Event> | undefined
  const read = createEventParser((data) => {
    const event = parse(data) as Event
    if (event.kind === 'end' || event.kind === 'error') last = event as LastEvent<Event>
    onEvent(event)
  })
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  const next = async () => {
    try {
      return await reader?.read()
    } catch (thrown) {
      if (request.signal.aborted) throw thrown
      return undefined
    }
  }
  for (let chunk = await next(); chunk && !chunk.done; chunk = await next()) read(chunk.value)
  if (!last) throw new ApiError(0, 'NO_ANSWER', lostMessage)
  return last
}

/**
 * An incremental parser for server-sent events. Passes the data of each event to `onData`; skips comments and other
 * fields.
 */
export function createEventParser(onData: (data: string) => void): (chunk: string) => void {
  let rest = ''
  return (chunk) => {
    const blocks = (rest + chunk).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const lines = block.split('\n').filter((line) => line.startsWith('data:'))
      if (lines.length > 0) onData(lines.map((line) => line.slice(5).replace(/^ /, '')).join('\n'))
    }
  }
}
