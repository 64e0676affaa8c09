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

/** As much as undici and node:http take. */
export const maxHead = 16 * 1024

const statusLine = /^HTTP\/1\.([01]) ([1-5][0-9][0-9])(?: [\t\x20-\x7e\x80-\xff]*)?$/

const nameForm = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
/** No CR, LF, NUL or other control character. */
const valueForm = /^[\t\x20-\x7e\x80-\xff]*$/

/** Throws where a line ends with LF alone: nothing that follows can make a head of it. */
export function refuseBareLf(bytes: Buffer, from: number): void {
  for (let at = bytes.indexOf(10, from); at !== -1; at = bytes.indexOf(10, at + 1)) {
    if (at === from || bytes[at - 1] !== 13) throw new BadAnswer('a line ends with LF alone')
  }
}

/** Reads a line of `name: value`, without its line break. The value has the white space before it taken away. */
export function readField(line: string): readonly [name: string, value: string] {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(0, colon)).toLowerCase()
  if (!nameForm.test(name)) throw new BadAnswer('a header has no name')
  const value = line.slice(colon + 1).replace(/^[ \t]+/, '')
  if (!valueForm.test(value)) throw new BadAnswer(`the header ${name} has a character that none may have`)
  return [name, value]
}

/**
 * Reads a head, and takes nothing that undici or node:http would refuse, or read otherwise: whoever stands between may
 * read like one of them. A few things that both take are refused as well; `compare.fixture.ts` lists them.
 */
export function readHead(text: string): AnswerHead {
  let at = text.indexOf('\r\n')
  const [, minor, code] = statusLine.exec(text.slice(0, at)) ?? []
  if (code === undefined) throw new BadAnswer('it does not begin like an answer')
  const status = Number(code)
  const headers = new Map<string, string>()
  const repeated: (readonly [string, string])[] = []
  let connection = ''
  for (at += 2; at < text.length - 2; ) {
    const end = text.indexOf('\r\n', at)
    const [name, given] = readField(text.slice(at, end))
    // Their values are compared as they are: readers differ in what they make of the white space behind them.
    const value = name === 'content-length' || name === 'transfer-encoding' ? given : given.replace(/[ \t]+$/, '')
    if (name === 'connection') connection += `,${value.toLowerCase()}`
    if (headers.has(name)) repeated.push([name, value])
    else headers.set(name, value)
    at = end + 2
  }
  const coding = headers.get('transfer-encoding')
  const length = headers.get('content-length')
  if (repeated.some(([name]) => name === 'content-length' || name === 'transfer-encoding')) {
    throw new BadAnswer('it says twice how long it is')
  }
  if (coding !== undefined && length !== undefined) throw new BadAnswer('it has a length and a transfer coding')
  if (length !== undefined && !/^[0-9]{1,15}$/.test(length)) throw new BadAnswer('its length is no number')
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    throw new BadAnswer('it is coded in a way that was not asked for')
  }
  const none = status === 204 || status === 304 || status < 200
  const body = none ? 0 : coding !== undefined ? 'chunked' : length === undefined ? 'until end' : Number(length)
  const kept = minor === '1' ? !connection.includes('close') : connection.includes('keep-alive')
  return {
    status,
    headers,
    repeated,
    body,
    reuse: kept && body !== 'until end',
    keepAliveMs: keepAlive(headers.get('keep-alive')),
  }
}

function keepAlive(value: string | undefined): number | undefined {
  const seconds = value === undefined ? undefined : /(?:^|[,;\s])timeout=([0-9]{1,6})/.exec(value)?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1_000
}
