import type { ToolwayError } from '../../core/errors.ts'

/** Moves whole JSON-RPC messages to and from one server, without interpreting them. */
export interface Transport extends AsyncDisposable {
  readonly kind: 'stdio' | 'http' | 'sse'
  /** False once nothing can be sent any more, even before the receiver is notified. */
  readonly usable: boolean
  /** Over HTTP: how often there was no open connection to the server, so that another one may have taken its place. */
  readonly gaps?: number
  readonly pid?: number | undefined
  /** Opens the transport; rejects with SERVER_UNAVAILABLE and advice. */
  open(receiver: TransportReceiver, signal: AbortSignal): Promise<void>
  /**
   * Sends one message. Rejects with SERVER_UNAVAILABLE if it was certainly not executed: with `unsent` if the server
   * cannot have read it, without if the server said so. Rejects with OUTCOME_UNKNOWN if it may have been executed.
   */
  send(message: OutgoingMessage): Promise<void>
  /**
   * Called when the protocol version is known: HTTP sends it in every request, and for session-based servers opens the
   * server's own stream.
   */
  established(protocolVersion: string, era?: 'legacy' | 'modern'): void
}

export interface OutgoingMessage {
  readonly body: Buffer
  readonly headers?: Readonly<Record<string, string>>
  /** The id of a request. Where the transport can tell, messages during the request carry the same id. */
  readonly exchange?: number
  /** Aborted when the call is over: HTTP closes the stream. */
  readonly signal?: AbortSignal
  readonly repeatable?: boolean | undefined
}

export interface TransportReceiver {
  /** One complete message; `exchange` is the request on whose stream it came, where the transport can tell. */
  message(body: Buffer, exchange?: number): void
  /** This request will get no response; the connection is fine. */
  failed(exchange: number, error: ToolwayError): void
  /** The connection is down: pending requests will not be answered. Called once, and not after disposal. */
  closed(error: ToolwayError): void
}
