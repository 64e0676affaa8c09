import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** Statuses by the code of the error; every other one is a 400. As in node:http, which answers where nobody listens. */
const statuses: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/**
 * Answers requests that are not valid HTTP, such as one with both Content-Length and Transfer-Encoding, and reports
 * those that the parser refused. A connection that merely broke off is closed.
 */
export function answerUnreadable(
  server: Server,
  refused: (socket: Pick<Socket, 'remoteAddress'>, detail: string) => void,
): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const { code = '', message } = error
    const { remoteAddress } = socket as Socket
    if (code.startsWith('HPE_') && code !== 'HPE_INVALID_EOF_STATE') {
      refused({ remoteAddress }, `The request is not valid HTTP: ${message}`)
    }
    const { _httpMessage: response } = socket as { _httpMessage?: { headersSent: boolean } }
    if (socket.writable && code !== 'ECONNRESET' && response?.headersSent !== true) {
      socket.write(`HTTP/1.1 ${statuses[code] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`)
    }
    ;(socket as Socket).destroySoon()
  })
}
