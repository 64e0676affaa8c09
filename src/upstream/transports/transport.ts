import type { ToolwayError } from '../../core/errors.ts'

/** Moves whole JSON-RPC messages to and from one server, without interpreting them. */
export interface Transport extends AsyncDisposable {
  readonly kind: 'stdio' | 'http' | 'sse'
  /** False once nothing can be sent any more, even before the receiver is notified. */
  readonly usable: boolean
  /** See `Http1Channel.gaps`; undefined for other transports. */
  readonly gaps?: number
  readonly pid?: number | undefined
  /** What the process wrote that may explain a failure, as sentences that follow another one. */
  explanation?(): string
  /** Whether the server has opened a session; undefined for transports on which a connection is a session. */
  readonly hasSession?: boolean
  /** Opens the transport. Rejects with SERVER_UNAVAILABLE and advice if that fails. */
  open(receiver: TransportReceiver, signal: AbortSignal): Promise<void>
  /**
   * Sends one message. Rejects with SERVER_UNAVAILABLE if the message was certainly not executed: with `unsent` if the
   * server cannot have read it, and without `unsent` if the server rejected it. Rejects with OUTCOME_UNKNOWN if the
   * message may have been executed, whether or not that has an effect.
   */
  send(message: OutgoingMessage): Promise<void>
  /** Called once the protocol version is known. HTTP then sends it, and opens a session-based server's own stream. */
  established(protocolVersion: string, era?: 'legacy' | 'modern'): void
}

export interface OutgoingMessage {
  readonly body: Buffer
  readonly headers?: Readonly<Record<string, string>>
  /** The id of a request. Messages that the transport knows to belong to the request are delivered with this id. */
  readonly exchange?: number
  /** Aborts when the call is over. HTTP then closes the request's stream. */
  readonly signal?: AbortSignal
  readonly repeatable?: boolean | undefined
}

export interface TransportReceiver {
  /**
   * Receives one complete message. `exchange` is the request on whose stream it arrived, if the transport can tell.
   * Returns whether it was the response to a pending request: how many others a server sends is its own choice.
   */
  message(body: Buffer, exchange?: number): boolean
  /** Called when this request will not get a response although the connection is fine. */
  failed(exchange: number, error: ToolwayError): void
  /** Called once when the connection is down, so pending requests will not be answered; not called after disposal. */
  closed(error: ToolwayError): void
}
