import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { HttpError, rpcCodes } from '../errors.ts'

/**
 * Headers that have one value. A proxy in front of us may act on the second line where node:http takes the first, so
 * a request that repeats one is refused whatever the values are. Content-Length is in the list for completeness:
 * node:http's own parser refuses the second one already.
 */
const single: ReadonlySet<string> = new Set([
  ...['host', 'authorization', 'proxy-authorization', 'cookie', 'origin', 'sec-fetch-site'],
  ...['content-type', 'content-length', 'content-encoding', 'transfer-encoding', 'expect'],
  ...['mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'last-event-id'],
  ...['toolway-agent', 'toolway-admin', 'access-control-request-method'],
])

/** Headers that repeat one argument of a tool. */
const paramPrefix = 'mcp-param-'

/**
 * Refuses with 400 a request that repeats a header that has one value. Requests that come whole never get here: their
 * reader leaves every request that repeats a name to node:http.
 */
export function checkSingleHeaders({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): void {
  const seen = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const spelt = rawHeaders[at] as string
    const name = spelt.toLowerCase()
    if (!single.has(name) && !name.startsWith(paramPrefix)) continue
    if (seen.has(name)) {
      throw new HttpError(400, rpcCodes.request, `The request has more than one ${shown(spelt)} header: send one.`)
    }
    seen.add(name)
  }
}

const shown = (name: string): string => (name.length > 64 ? `${name.slice(0, 64)}…` : name)

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
