import type { IncomingHttpHeaders, IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { shorten } from '../../lib/message-text.ts'
import { HttpError, rpcCodes } from '../errors.ts'

/** An HTTP request, read either by node:http or by the fast path. */
export interface ReceivedRequest extends Pick<IncomingMessage, 'method' | 'url' | 'headers'> {
  readonly socket: Pick<Socket, 'remoteAddress'>
  /** The body; set by the fast path only. */
  readonly body?: Buffer
}

/** A request that arrived in one piece and was read by the fast path. */
export class BufferedRequest implements ReceivedRequest {
  readonly method = 'POST'
  // ServerResponse reads the following fields.
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

/** Maximum size of headers on the fast path. Larger ones are left to node:http, which has its own limit. */
const maxFastPathHeaders = 8 * 1024

/**
 * Reads ordinary POST requests to one path that arrived in one piece. Returns undefined for everything else, including
 * anything that two parsers could read differently. Those requests are then read from the start by node:http.
 */
export function createPostReader(path: string) {
  const line = Buffer.from(`POST ${path} HTTP/1.1\r\n`, 'latin1')
  return (bytes: Buffer) => {
    if (bytes.length < line.length || bytes.compare(line, 0, line.length, 0, line.length) !== 0) return undefined
    const end = bytes.indexOf('\r\n\r\n', line.length - 2, 'latin1')
    if (end === -1 || end > maxFastPathHeaders) return undefined
    const headers = readHeaders(bytes.toString('latin1', line.length, end + 2))
    if (headers === undefined) return undefined
    const bodyLength = bodyLengthOf(headers)
    if (bodyLength === undefined) return undefined
    const length = end + 4 + bodyLength
    return length > bytes.length ? undefined : { headers, body: bytes.subarray(end + 4, length), length }
  }
}

/** Matches printable header lines. Lines with tabs, which are valid but unusual, are left to node:http. */
const isLines = /^(?:[\x20-\x7e]*\r\n)*$/

const maxHeaders = 100

/** Parses header lines. Returns undefined for malformed lines and repeated names. */
function readHeaders(text: string): IncomingHttpHeaders | undefined {
  if (!isLines.test(text)) return undefined
  const headers: IncomingHttpHeaders = {}
  let count = 0
  for (let at = 0; at < text.length; ) {
    if (++count > maxHeaders) return undefined
    const colon = text.indexOf(':', at)
    const end = text.indexOf('\r\n', at)
    if (colon === -1 || colon > end) return undefined
    const spelt = text.slice(at, colon)
    const name = knownHeaderNames.get(spelt) ?? plainHeaderName(spelt)
    if (name === undefined || Object.hasOwn(headers, name)) return undefined
    headers[name] = text.slice(colon + 1, end).trim()
    at = end + 2
  }
  return headers
}

const isHeaderName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/

/** Headers left to node:http: those about the connection or framing, and those it does not return as strings. */
const nodeOnlyHeaders: ReadonlySet<string> = new Set([
  ...['transfer-encoding', 'expect', 'upgrade', 'trailer', 'te', 'http2-settings', 'proxy-connection'],
  ...['set-cookie', '__proto__'],
])

/** Maximum number of cached header names. Clients use few different spellings. */
const maxKnown = 256
const knownHeaderNames = new Map<string, string>()

/** A header name in lower case; undefined if it is invalid or special. */
function plainHeaderName(spelt: string): string | undefined {
  const name = spelt.toLowerCase()
  if (!isHeaderName.test(name) || nodeOnlyHeaders.has(name)) return undefined
  if (knownHeaderNames.size < maxKnown) knownHeaderNames.set(spelt, name)
  return name
}

function bodyLengthOf(headers: IncomingHttpHeaders): number | undefined {
  const { connection, 'content-length': length } = headers
  if (length === undefined || !/^(?:0|[1-9][0-9]{0,7})$/.test(length)) return undefined
  return connection === undefined || connection.toLowerCase() === 'keep-alive' ? Number(length) : undefined
}

/**
 * Headers that must not be repeated. A repeated header is rejected even if the values are equal, because a proxy may
 * use the second value where node:http uses the first. node:http itself rejects a repeated Content-Length.
 */
const singleHeaders: ReadonlySet<string> = new Set([
  ...['host', 'authorization', 'proxy-authorization', 'cookie', 'origin', 'sec-fetch-site'],
  ...['content-type', 'content-length', 'content-encoding', 'transfer-encoding', 'expect'],
  ...['mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'last-event-id'],
  ...['toolway-agent', 'toolway-expose', 'toolway-admin', 'access-control-request-method'],
])

/** Prefix of headers that each repeat one argument of a tool call. */
const paramPrefix = 'mcp-param-'

/** Rejects repeated headers. Requests with repeated headers never take the fast path, so checking here is enough. */
export function checkSingleHeaders({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): void {
  const seen = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const spelt = rawHeaders[at] as string
    const name = spelt.toLowerCase()
    if (!singleHeaders.has(name) && !name.startsWith(paramPrefix)) continue
    if (seen.has(name)) {
      throw new HttpError(
        400,
        rpcCodes.request,
        `The request has more than one ${shorten(spelt, 64)} header: send one.`,
      )
    }
    seen.add(name)
  }
}

/** HTTP status by parser error code, as in node:http. All other codes get a 400. */
const statuses: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/** Responds to invalid HTTP and reports why the parser rejected it. Broken connections are closed without a report. */
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
