import type { ServerResponse } from 'node:http'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Budget } from '../../core/limits/budget.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import { eventBytes, keepAlive } from '../../wire/sse.ts'
import type { EventConnection } from '../session/resumable-streams.ts'

/** Interval between keep-alive comments. Proxies and clients close silent streams after 30 to 60 seconds. */
export const commentEveryMs = 15_000

/** Maximum unread bytes per stream. A stream with more is dropped. */
export const maxUnread = fixedLimits.unreadBytes.value

const reconnectMs = 1_000

/** Whether the client is Java's HTTP client. The Java SDK 1.x reads streams with it, and fails on the retry field. */
const failsOnRetry = ({ req }: ServerResponse): boolean =>
  req.headers['user-agent']?.startsWith('Java-http-client/') === true

/** How long a client may go without reading before it counts as disconnected. */
const stalledMs = 60_000

/** Size above which the unread bytes of a response are counted. Less usually fits into the socket's send buffer. */
export const largeUnread = 64 * 1024

interface UnreadResponse {
  readonly caller: string
  bytes: number
}

/** Where the unread bytes of a response are counted. */
export interface Reader {
  readonly unread: UnreadResponses
  readonly caller: string
}

export type UnreadResponses = ReturnType<typeof createUnreadResponses>

/**
 * Counts responses that their clients do not read. Above a bound, the connection whose response has waited longest is
 * closed: one of the caller itself or, if only the total is exceeded, of the caller with the most unread bytes.
 */
export function createUnreadResponses(budget: Budget) {
  const waiting = new Map<ServerResponse, UnreadResponse>()

  const release = (response: ServerResponse) => {
    const unread = waiting.get(response)
    if (unread === undefined) return
    waiting.delete(response)
    budget.give(unread.caller, unread.bytes)
  }

  const closeOldestOf = (caller: string) => {
    for (const [response, unread] of waiting) {
      if (unread.caller !== caller) continue
      budget.shed()
      release(response)
      response.destroy()
      return
    }
  }

  const largestHolder = (): string => {
    let largest = ''
    for (const { caller } of waiting.values()) if (budget.usedBy(caller) > budget.usedBy(largest)) largest = caller
    return largest
  }

  return {
    /** To be called after a write that leaves more than `largeUnread` bytes unread. */
    note(response: ServerResponse, caller: string): void {
      const known = waiting.get(response)
      const unread = known ?? { caller, bytes: 0 }
      budget.add(caller, response.writableLength - unread.bytes)
      unread.bytes = response.writableLength
      if (known === undefined) {
        waiting.set(response, unread)
        const over = () => {
          response.off('drain', over).off('finish', over).off('close', over)
          release(response)
        }
        response.on('drain', over).on('finish', over).on('close', over)
      }
      while (budget.usedBy(caller) > budget.perCaller) closeOldestOf(caller)
      while (budget.used > budget.limit) closeOldestOf(largestHolder())
    },
  }
}

/** An event stream in an HTTP response, with keep-alive comments and a limit for slow readers. */
export class SseStream implements EventConnection {
  readonly #response: ServerResponse
  readonly #clock: Clock
  /** Set for streams of MCP messages. */
  readonly #reader: Reader | undefined
  #timer: Disposable
  #open = true

  constructor(response: ServerResponse, clock: Clock, reader?: Reader) {
    this.#response = response
    this.#clock = clock
    this.#reader = reader
    response.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-cache, no-transform',
      'X-Accel-Buffering': 'no',
    })
    response.flushHeaders()
    dropWhenStalled(response)
    response.once('close', () => this.#close())
    this.#timer = clock.after(commentEveryMs, this.#tick)
  }

  get open(): boolean {
    return this.#open
  }

  onClose(listener: () => void): void {
    this.#response.once('close', listener)
  }

  prime(id: string): void {
    const retry = failsOnRetry(this.#response) ? '' : `retry: ${reconnectMs}\n`
    if (this.#open) this.#response.write(`id: ${id}\n${retry}data: \n\n`)
  }

  /** Sends a message. Returns false if the client has disconnected or is too far behind. */
  send(message: Buffer, id?: string): boolean {
    if (!this.#open) return false
    // Only the unread bytes of earlier messages count, so a single message may exceed the limit.
    if (this.#response.writableLength > maxUnread) {
      this.#close()
      this.#response.destroy()
      return false
    }
    this.#write(message, id)
    return true
  }

  resend(message: Buffer, id: string): void {
    if (this.#open) this.#write(message, id)
  }

  end(answer?: Buffer): void {
    if (answer !== undefined) this.send(answer)
    if (!this.#open) return
    this.#close()
    this.#response.end()
  }

  #write(data: Buffer, id?: string): void {
    const reader = this.#reader
    // Some MCP clients ignore events without a type on the GET stream, although `message` is the default.
    const type = reader && { event: 'message' }
    this.#response.write(eventBytes(id === undefined ? { ...type, data } : { ...type, data, id }))
    if (reader && this.#response.writableLength > largeUnread) reader.unread.note(this.#response, reader.caller)
  }

  #tick = (): void => {
    this.#timer = this.#clock.after(commentEveryMs, this.#tick)
    // Send a comment only if nothing is unread; otherwise it would hide that the reader has stalled.
    if (this.#response.writableLength === 0) this.#response.write(keepAlive)
  }

  #close(): void {
    this.#open = false
    this.#timer[Symbol.dispose]()
  }
}

export function dropWhenStalled(response: ServerResponse): void {
  response.setTimeout(stalledMs)
  // Close only if there is unread data. Otherwise, the timeout only means that there was nothing to send.
  response.on('timeout', () => {
    if (response.writableLength > 0) response.destroy()
  })
}

/** A signal that aborts when the client disconnects before the response is complete. */
export function abortOnClose(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) controller.abort(new ToolwayError('CANCELLED', 'The caller has disconnected.'))
  })
  return controller.signal
}
