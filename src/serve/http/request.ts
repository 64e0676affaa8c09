import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** What the endpoint wants to know of a request, whoever has read it. */
export interface ReceivedRequest extends Pick<IncomingMessage, 'method' | 'url' | 'headers'> {
  readonly socket: Pick<Socket, 'remoteAddress'>
  /** The body, where it came together with the head. */
  readonly body?: Buffer
}

/** A request that came whole. */
export class BufferedRequest implements ReceivedRequest {
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

/** A request that is all there, and how many bytes it took. */
interface Whole {
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  readonly length: number
}

type PostReader = (bytes: Buffer) => Whole | undefined

/** Longer heads are rare, and not worth a second opinion on how long they may be. */
const maxHead = 8 * 1024

/**
 * Reads what nearly every request of a client is: a POST to one path that came in one piece, with nothing odd about it.
 * Undefined for all else, of which nothing is said here: node:http reads it again from its beginning, and answers,
 * waits or refuses as it always does. Therefore whatever two readers could understand in two ways must be undefined.
 */
export function createPostReader(path: string): PostReader {
  const line = Buffer.from(`POST ${path} HTTP/1.1\r\n`, 'latin1')
  return (bytes) => {
    if (bytes.length < line.length || bytes.compare(line, 0, line.length, 0, line.length) !== 0) return undefined
    const end = bytes.indexOf('\r\n\r\n', line.length - 2, 'latin1')
    if (end === -1 || end > maxHead) return undefined
    const headers = readHeaders(bytes.toString('latin1', line.length, end + 2))
    if (headers === undefined) return undefined
    const bodyLength = bodyLengthOf(headers)
    if (bodyLength === undefined) return undefined
    const length = end + 4 + bodyLength
    return length > bytes.length ? undefined : { headers, body: bytes.subarray(end + 4, length), length }
  }
}

/** Tabs are allowed in most places, and nobody sends any. */
const isLines = /^(?:[\x20-\x7e]*\r\n)*$/

/** node:http forgets those beyond the thousandth. */
const maxHeaders = 100

/** Lines of `name: value`; undefined where one is anything else, or a name comes twice. */
function readHeaders(text: string): IncomingHttpHeaders | undefined {
  if (!isLines.test(text)) return undefined
  const headers: IncomingHttpHeaders = {}
  let count = 0
  for (let at = 0; at < text.length; ) {
    if (++count > maxHeaders) return undefined
    const colon = text.indexOf(':', at)
    const end = text.indexOf('\r\n', at)
    const name = colon === -1 || colon > end ? undefined : plainName(text.slice(at, colon))
    if (name === undefined || Object.hasOwn(headers, name)) return undefined
    headers[name] = text.slice(colon + 1, end).trim()
    at = end + 2
  }
  return headers
}

const isName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/

/**
 * What says something about the connection, or about a body in another form, is for a reader who knows all of HTTP; so
 * are names that node:http does not give back as text.
 */
const special: ReadonlySet<string> = new Set([
  ...['transfer-encoding', 'expect', 'upgrade', 'trailer', 'te', 'http2-settings', 'proxy-connection'],
  ...['set-cookie', '__proto__'],
])

/** A client has a dozen names, each always spelt the same; more come from somebody who makes them up. */
const maxKnown = 256
const known = new Map<string, string>()

/** A header's name in lower case; undefined where it is none, or a special one. */
function plainName(spelt: string): string | undefined {
  const before = known.get(spelt)
  if (before !== undefined) return before
  const name = spelt.toLowerCase()
  if (!isName.test(name) || special.has(name)) return undefined
  if (known.size < maxKnown) known.set(spelt, name)
  return name
}

function bodyLengthOf(headers: IncomingHttpHeaders): number | undefined {
  const { connection, 'content-length': length } = headers
  if (length === undefined || !/^(?:0|[1-9][0-9]{0,7})$/.test(length)) return undefined
  return connection === undefined || connection.toLowerCase() === 'keep-alive' ? Number(length) : undefined
}
