import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** What the endpoint wants to know of a request, whoever has read it. */
export interface HttpRequest extends Pick<IncomingMessage, 'method' | 'url' | 'headers'> {
  readonly socket: Pick<Socket, 'remoteAddress'>
  /** The body, where it came together with the head. */
  readonly body?: Buffer
}

/** A request that came whole. */
export class WholeRequest implements HttpRequest {
  readonly method = 'POST'
  // What node:http wants to know before it answers.
  readonly httpVersionMajor = 1
  readonly httpVersionMinor = 1
  readonly complete = true
  readonly socket: Socket
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer

  constructor(socket: Socket, url: string, headers: IncomingHttpHeaders, body: Buffer) {
    this.socket = socket
    this.url = url
    this.headers = headers
    this.body = body
  }
}
