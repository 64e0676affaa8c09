import { BadAnswer } from './bad-answer.ts'

/** The head of an answer. */
export interface AnswerHead {
  readonly status: number
  /** By their names in lower case; of several with one name, the first. */
  readonly headers: ReadonlyMap<string, string>
  /** The others of a name, which is rare. */
  readonly repeated: readonly (readonly [name: string, value: string])[]
  /** How the body ends: after so many bytes, by its chunks, or with the connection. */
  readonly body: number | 'chunked' | 'until end'
  /** Whether another request may follow on this connection, and for how long, where the server says so. */
  readonly reuse: boolean
  readonly keepAliveMs: number | undefined
}

/** How many bytes a head has with the empty line behind it; 0 where it is not whole yet. */
export function headLength(bytes: Buffer, from: number): number {
  const end = bytes.indexOf('\r\n\r\n', from, 'latin1')
  return end === -1 ? 0 : end + 4 - from
}

const statusLine = /^HTTP\/1\.([01]) ([1-5][0-9][0-9])(?: |$)/

/** Reads a head. What could be read in two ways is refused: whoever stands between may have read it the other way. */
export function readHead(text: string): AnswerHead {
  let at = text.indexOf('\r\n')
  const [, minor, code] = statusLine.exec(text.slice(0, at)) ?? []
  if (code === undefined) throw new BadAnswer('it does not begin like an answer')
  const status = Number(code)
  const headers = new Map<string, string>()
  const repeated: (readonly [string, string])[] = []
  let length: string | undefined
  for (at += 2; at < text.length - 2; ) {
    const end = text.indexOf('\r\n', at)
    const colon = text.indexOf(':', at)
    if (colon <= at || colon > end) throw new BadAnswer('a header has no name')
    const name = text.slice(at, colon).toLowerCase()
    if (!/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name)) throw new BadAnswer('a header has no name')
    const value = text.slice(colon + 1, end).trim()
    if (name === 'content-length') {
      if (!/^[0-9]{1,15}$/.test(value) || (length !== undefined && length !== value)) {
        throw new BadAnswer('its length is no number')
      }
      length = value
    }
    if (headers.has(name)) repeated.push([name, value])
    else headers.set(name, value)
    at = end + 2
  }
  const connection = headers.get('connection')?.toLowerCase()
  const coding = headers.get('transfer-encoding')?.toLowerCase()
  if (coding !== undefined && coding !== 'chunked') throw new BadAnswer('it is coded in a way that was not asked for')
  const none = status === 204 || status === 304 || status < 200
  const body = none ? 0 : coding !== undefined ? 'chunked' : length === undefined ? 'until end' : Number(length)
  const kept = minor === '1' ? !connection?.includes('close') : connection?.includes('keep-alive') === true
  return {
    status,
    headers,
    repeated,
    body,
    // Both at once is how requests are smuggled: the connection is not used again.
    reuse: kept && body !== 'until end' && !(coding !== undefined && length !== undefined),
    keepAliveMs: keepAlive(headers.get('keep-alive')),
  }
}

function keepAlive(value: string | undefined): number | undefined {
  const seconds = value === undefined ? undefined : /(?:^|[,;\s])timeout=([0-9]{1,6})/.exec(value)?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1_000
}
