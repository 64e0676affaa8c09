import { afterEach, describe, expect, test, vi } from 'vitest'
import { streamEvents } from './event-stream.ts'

afterEach(() => void vi.unstubAllGlobals())

type TestEvent = { readonly kind: 'text' | 'end' | 'error'; readonly n?: number }

/** Streams these chunks as the response to a request. A stream that breaks fails after them. */
async function stream(chunks: readonly string[], broken = false, signal = new AbortController().signal) {
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const chunk = chunks[sent++]
      if (chunk !== undefined) controller.enqueue(new TextEncoder().encode(chunk))
      else if (broken) controller.error(new TypeError('network error'))
      else controller.close()
    },
  })
  let sent = 0
  vi.stubGlobal('fetch', async () => new Response(body))
  const events: TestEvent[] = []
  const options = { body: {}, signal, onEvent: (event: TestEvent) => void events.push(event), lostMessage: 'lost' }
  return { last: await streamEvents<TestEvent>('x', options), events }
}

const text = 'data: {"kind":"text","n":1}\n\n'
const end = 'data: {"kind":"end","n":2}\n\n'

describe('G10: a response that is streamed', () => {
  test('is passed on event by event, and ends with the last one', async () => {
    const [one, two] = [text.slice(0, 9), text.slice(9) + end]
    expect(await stream([one, two])).toEqual({
      events: [
        { kind: 'text', n: 1 },
        { kind: 'end', n: 2 },
      ],
      last: { kind: 'end', n: 2 },
    })
  })

  test('is complete with its last event, even if the connection breaks then', async () => {
    expect((await stream([text, end], true)).last).toEqual({ kind: 'end', n: 2 })
  })

  test.each([true, false])('is lost without its last event (connection broken: %s)', async (broken) => {
    await expect(stream([text], broken)).rejects.toMatchObject({ code: 'NO_ANSWER', message: 'lost' })
  })

  test('is not lost but aborted if its signal is', async () => {
    await expect(stream([text], true, AbortSignal.abort())).rejects.toThrow('network error')
  })
})
