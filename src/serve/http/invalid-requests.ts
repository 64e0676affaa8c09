import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { HttpError, rpcCodes } from '../errors.ts'

/**
 * Headers with a single value. A repeated one is rejected even if the values are equal, because a proxy may use the
 * second where node:http uses the first. node:http itself rejects a repeated Content-Length.
 */
const single: ReadonlySet<string> = new Set([
  ...['host', 'authorization', 'proxy-authorization', 'cookie', 'origin', 'sec-fetch-site'],
  ...['content-type', 'content-length', 'content-encoding', 'transfer-encoding', 'expect'],
  ...['mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'last-event-id'],
  ...['toolway-agent', 'toolway-admin', 'access-control-request-method'],
])

/** Headers that mirror one argument of a tool call. */
const paramPrefix = 'mcp-param-'

/** The fast path leaves requests with repeated headers to node:http, so this check covers them too. */
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

/** As in node:http; 400 for all other codes. */
const statuses: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/**
 * Answers invalid HTTP, such as a request with both Content-Length and Transfer-Encoding, and reports what the parser
 * rejected. Broken connections are only closed.
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
