import type { ServerResponse } from 'node:http'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import { eventBytes, keepAlive } from '../../wire/sse.ts'
import type { EventConnection } from '../session/resumable-streams.ts'

/** Proxies and clients give a silent stream up after 30 to 60 seconds. */
export const keepAliveMs = 15_000

/** What a stream may owe a reader that does not read, before it is dropped. */
export const maxUnread = 1024 * 1024

/** When a client that has lost its stream should come back. */
const retryMs = 1_000

/** A reader that has taken nothing for this long is gone, whatever its socket says. */
const stalledMs = 60_000

/** An HTTP answer that is a stream of events: kept alive, and bounded where its reader does not read. */
export class SseStream implements EventConnection {
  readonly #response: ServerResponse
  readonly #clock: Clock
  #timer: Disposable
  #open = true

  constructor(response: ServerResponse, clock: Clock) {
    this.#response = response
    this.#clock = clock
    response.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-cache, no-transform',
      'X-Accel-Buffering': 'no',
    })
    response.flushHeaders()
    dropWhenStalled(response)
    response.once('close', () => this.#close())
    this.#timer = clock.after(keepAliveMs, this.#tick)
  }

  get open(): boolean {
    return this.#open
  }

  onClose(listener: () => void): void {
    this.#response.once('close', listener)
  }

  prime(id: string): void {
    if (this.#open) this.#response.write(`id: ${id}\nretry: ${retryMs}\ndata: \n\n`)
  }

  /** Sends one message; false if the reader is gone, or has just been dropped because it does not read. */
  send(message: Buffer, id?: string): boolean {
    if (!this.#open) return false
    // One message may be larger than the bound: only what was left unread before it counts.
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
    this.#response.write(eventBytes(id === undefined ? { data } : { data, id }))
  }

  #tick = (): void => {
    this.#timer = this.#clock.after(keepAliveMs, this.#tick)
    // While something is unread a comment would only hide that the reader has stalled.
    if (this.#response.writableLength === 0) this.#response.write(keepAlive)
  }

  #close(): void {
    this.#open = false
    this.#timer[Symbol.dispose]()
  }
}

/** Ends the connection when nothing moves on it any more; the socket itself knows whether something does. */
export function dropWhenStalled(response: ServerResponse): void {
  response.setTimeout(stalledMs)
  // Where nothing is owed to the reader it was this process that was silent, because it was paused.
  response.on('timeout', () => {
    if (response.writableLength > 0) response.destroy()
  })
}

/** Aborted when the client has gone before it was answered. */
export function abortOnClose(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) controller.abort(new ToolwayError('CANCELLED', 'The caller has gone away.'))
  })
  return controller.signal
}
