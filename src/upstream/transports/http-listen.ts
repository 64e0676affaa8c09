import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { maxMessage } from '../../wire/limits.ts'
import { createEventReader } from '../../wire/sse.ts'
import { ignored } from './bodies.ts'
import type { Body, Head } from './channel.ts'
import { isStream } from './http-exchange.ts'
import { pause } from './waiting.ts'

const firstPauseMs = 1_000
const maxPauseMs = 30_000

/**
 * Keeps the stream open on which a server speaks of its own accord. A server that has none is asked once;
 * one whose stream breaks is asked again after a pause that grows until something is said.
 */
export async function listen(options: {
  readonly server: string
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
  open(lastEventId: string | undefined, receive: (head: Head) => Body): Promise<Head>
  deliver(data: Buffer): void
  /** There was a stream once, and now the server does not know us any more. */
  forgotten(): void
}): Promise<void> {
  const { server, clock, log, signal } = options
  let lastId: string | undefined
  let pauseMs = firstPauseMs
  let nextPauseMs = firstPauseMs
  let known = false

  while (!signal.aborted) {
    const ended = Promise.withResolvers<void>()
    const read = (): Body => {
      const reader = createEventReader({
        maxLength: maxMessage,
        event({ id, event, data }) {
          if (id !== undefined) lastId = id
          nextPauseMs = pauseMs
          if (event === 'message' && data.length > 0) options.deliver(data)
        },
        retry(ms) {
          pauseMs = Math.min(Math.max(ms, firstPauseMs), maxPauseMs)
          nextPauseMs = pauseMs
        },
        tooLong: () => log.debug({ server }, 'left out an event that was too long'),
      })
      return { data: reader.push, end: ended.resolve, lost: () => ended.resolve() }
    }
    try {
      const head = await options.open(lastId, (head) => (isStream(head) ? read() : ignored(head, clock)))
      if (isStream(head)) {
        known = true
        await ended.promise
      } else if (known && (head.status === 404 || head.status === 400)) return options.forgotten()
      else if (head.status < 500 && head.status !== 408 && head.status !== 429) {
        log.debug({ server, status: head.status }, 'the server has no stream of its own')
        return
      }
    } catch (error) {
      if (!signal.aborted) log.debug({ server, err: error }, 'could not open the stream of a server')
    }
    await pause(nextPauseMs, clock, signal)
    nextPauseMs = Math.min(nextPauseMs * 2, maxPauseMs)
  }
}
