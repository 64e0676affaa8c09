import type { ToolwayError } from '../../core/errors.ts'

/** Moves whole JSON-RPC messages to and from one server, without interpreting them. */
export interface Transport extends AsyncDisposable {
  readonly kind: 'stdio' | 'http' | 'sse'
  /** False once nothing can be sent any more, even before the receiver is notified. */
  readonly usable: boolean
  /**
   * Over HTTP: how many times the last open connection to the server was closed. After that, another server may have
   * taken its place.
   */
  readonly gaps?: number
  readonly pid?: number | undefined
  /** Opens the transport. Rejects with SERVER_UNAVAILABLE and advice if that fails. */
  open(receiver: TransportReceiver, signal: AbortSignal): Promise<void>
  /**
   * Sends one message. Rejects with SERVER_UNAVAILABLE if the message was certainly not executed; the error has
   * `unsent` if the server cannot have read the message, and lacks it if the server itself said so. Rejects with
   * OUTCOME_UNKNOWN if the message may have been executed.
   */
  send(message: OutgoingMessage): Promise<void>
  /**
   * Called when the protocol version is known. HTTP then sends it in every request and, for session-based servers,
   * opens the server's own stream.
   */
  established(protocolVersion: string, era?: 'legacy' | 'modern'): void
}

export interface OutgoingMessage {
  readonly body: Buffer
  readonly headers?: Readonly<Record<string, string>>
  /**
   * The id of a request. If the transport can tell which messages belong to the request, they are delivered with the
   * same id.
   */
  readonly exchange?: number
  /** Aborts when the call is over. HTTP then closes the stream of the request. */
  readonly signal?: AbortSignal
  readonly repeatable?: boolean | undefined
}

export interface TransportReceiver {
  /**
   * Receives one complete message. `exchange` is the request on whose stream the message arrived, if the transport can
   * tell.
   */
  message(body: Buffer, exchange?: number): void
  /** Called when this request will not get a response although the connection is fine. */
  failed(exchange: number, error: ToolwayError): void
  /**
   * Called when the connection is down, so that pending requests will not be answered. Called once, and not after
   * disposal.
   */
  closed(error: ToolwayError): void
}
