import type { Clock } from '../../core/clock.ts'
import type { ToolwayError } from '../../core/errors.ts'

/** A line to one server. It moves whole JSON-RPC messages and knows nothing of what they mean. */
export interface Transport extends AsyncDisposable {
  readonly kind: 'stdio' | 'http' | 'sse'
  /** False once nothing can be sent any more, which is known before the receiver is told. */
  readonly usable: boolean
  /** Over HTTP: how often there was no open connection to the server; another one may have taken its place each time. */
  readonly gaps?: number
  /** Of the process, where the server is one of ours and runs. */
  readonly pid?: number | undefined
  /** Opens the line; rejects with SERVER_UNAVAILABLE and a sentence that says what to do. */
  open(receiver: TransportReceiver, signal: AbortSignal): Promise<void>
  /**
   * Sends one message. Rejects with SERVER_UNAVAILABLE if it surely was not acted on: with `unsent` where the server
   * cannot have read it, without where it said so itself. Rejects with OUTCOME_UNKNOWN if it may have been.
   */
  send(message: OutgoingMessage): Promise<void>
  /** Told once it is known what the server speaks: HTTP names it in every header, and in the era with sessions opens the server's own stream. */
  established(protocolVersion: string, era?: 'legacy' | 'modern'): void
}

export interface OutgoingMessage {
  readonly body: Buffer
  /** For transports that have headers. */
  readonly headers?: Readonly<Record<string, string>>
  /** Set for a request. Where the wire can tell, all that the server says on the way carries the same number. */
  readonly exchange?: number
  /** Aborted when nobody waits for the answer any more: HTTP closes the stream. */
  readonly signal?: AbortSignal
  /** Running it twice does no harm. */
  readonly repeatable?: boolean | undefined
}

export interface TransportReceiver {
  /** One complete line or event; `exchange` is the request on whose stream it came, where the wire can tell. */
  message(body: Buffer, exchange?: number): void
  /** This request will get no answer, the line as a whole is fine. */
  failed(exchange: number, error: ToolwayError): void
  /** The line is down: nothing pending will be answered. Called once, and not after a disposal that we asked for. */
  closed(error: ToolwayError): void
}

/** Waits this long, or until the signal aborts; which of the two is for the signal to say. */
export function pause(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve()
      return
    }
    const done = () => {
      timer[Symbol.dispose]()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = clock.after(ms, done)
    signal.addEventListener('abort', done, { once: true })
  })
}

/** Whether a promise settles, either way, within this time. */
export function settles(promise: PromiseLike<unknown>, ms: number, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.after(ms, () => resolve(false))
    const done = () => {
      timer[Symbol.dispose]()
      resolve(true)
    }
    promise.then(done, done)
  })
}
