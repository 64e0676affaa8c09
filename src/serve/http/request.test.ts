import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Duplex } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import { createPostReader } from './request.ts'
import { anyRequest, post, wholeRequest } from './requests.fixture.ts'

const read = createPostReader('/mcp')
const readText = (text: string) => read(Buffer.from(text, 'latin1'))

interface Heard {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: object
  readonly body: string
}

/** The requests that node:http finds in these bytes, up to the one that asks for `/end`. */
async function heardByNode(bytes: Buffer): Promise<Heard[]> {
  const heard: Heard[] = []
  const server = createServer({ requireHostHeader: false }, (request: IncomingMessage, response: ServerResponse) => {
    let body = ''
    request.setEncoding('latin1').on('data', (text) => {
      body += text
    })
    request.on('end', () => {
      heard.push({ method: request.method, url: request.url, headers: { ...request.headers }, body })
      response.end()
      if (request.url === '/end') socket.destroy()
    })
  })
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, written) => written() })
  server.emit('connection', socket)
  socket.push(bytes)
  socket.push(null)
  if (!socket.destroyed) await once(socket, 'close')
  return heard
}

const end = Buffer.from('GET /end HTTP/1.1\r\n\r\n')

describe('F14: requests that the fast reader accepts', () => {
  test('are read in the same way by node:http, to the last byte', async () => {
    let accepted = 0
    const requests = runs(80, 8_000)
    const reads = async (text: string) => {
      const bytes = Buffer.from(text, 'latin1')
      const whole = read(bytes)
      if (whole === undefined) return
      accepted++
      const heard = await heardByNode(Buffer.concat([bytes.subarray(0, whole.length), end]))
      expect(heard).toEqual([
        { method: 'POST', url: '/mcp', headers: { ...whole.headers }, body: whole.body.toString('latin1') },
        { method: 'GET', url: '/end', headers: {}, body: '' },
      ])
    }
    await fc.assert(fc.asyncProperty(anyRequest, reads), requests)
    expect(accepted).toBeGreaterThan(requests.numRuns / 8)
  })

  test('are all ordinary requests, and none that is incomplete', () => {
    fc.assert(
      fc.property(wholeRequest, fc.string(), fc.nat(), (request, behind, cut) => {
        expect(readText(request + behind)?.length).toBe(request.length)
        expect(readText(request.slice(0, cut % request.length))).toBeUndefined()
      }),
      runs(60, 3_000),
    )
    const request = post('{"a":1}', ['Accept: */*'])
    for (let cut = 0; cut < request.length; cut++) expect(readText(request.slice(0, cut))).toBeUndefined()
    expect(readText(request)?.body.toString()).toBe('{"a":1}')
  })

  test("are those to the endpoint's path", () => {
    expect(readText(post().replace('/mcp', '/mcq'))).toBeUndefined()
    expect(createPostReader('/')(Buffer.from(post().replace('/mcp', '/')))).toBeDefined()
  })

  test('may have headers with names of Object.prototype', () => {
    const { headers } = readText(post('', ['constructor: a', 'toString: b', 'hasOwnProperty: c', 'valueOf:'])) ?? {}
    expect({ ...headers }).toEqual({
      host: 'localhost',
      constructor: 'a',
      tostring: 'b',
      hasownproperty: 'c',
      valueof: '',
      'content-length': '0',
    })
    expect(headers?.['x-unsaid']).toBeUndefined()
    expect(Object.getPrototypeOf({ ...headers })).toBe(Object.prototype)
    expect(readText(post('', ['__proto__: a']))).toBeUndefined()
    expect(readText(post('', ['__PROTO__: a']))).toBeUndefined()
  })

  test('have a head of bounded length and few headers', () => {
    expect(readText(post('', [`a: ${'x'.repeat(7_000)}`]))).toBeDefined()
    expect(readText(post('', [`a: ${'x'.repeat(9_000)}`]))).toBeUndefined()
    const headers = (count: number) => Array.from({ length: count }, (_, index) => `${index}:`)
    expect(readText(post('', headers(98)))).toBeDefined()
    expect(readText(post('', headers(99)))).toBeUndefined()
  })
})

describe('B6: ambiguous requests, which could smuggle another one, are left to node:http', () => {
  const smuggled = 'POST /admin HTTP/1.1\r\n\r\n'
  const long = String(smuggled.length)
  /** A request with these lines, and the bytes of another where one reader may expect a body. */
  const withLines = (...lines: string[]) => `POST /mcp HTTP/1.1\r\nHost: a\r\n${lines.join('\r\n')}\r\n\r\n${smuggled}`

  test.each([
    ['two lengths', ['Content-Length: 0', `Content-Length: ${long}`]],
    ['one length twice', [`Content-Length: ${long}`, `Content-Length: ${long}`]],
    ['two lengths in one line', [`Content-Length: ${long}, ${long}`]],
    ['a length with a sign', [`Content-Length: +${long}`]],
    ['a negative length', ['Content-Length: -1']],
    ['a length with a leading zero', [`Content-Length: 0${long}`]],
    ['a hexadecimal length', ['Content-Length: 0x18']],
    ['a length in other digits', ['Content-Length: \u00b2']],
    ['a length with a fraction', ['Content-Length: 1.0']],
    ['a length with an exponent', ['Content-Length: 1e1']],
    ['a length too large for a number', ['Content-Length: 18446744073709551640']],
    ['an empty length', ['Content-Length:']],
    ['a length behind a tab', [`Content-Length:\t${long}`]],
    ['a length before a tab', [`Content-Length: ${long}\t`]],
    ['a space before the colon', [`Content-Length : ${long}`]],
    ['a tab before the colon', [`Content-Length\t: ${long}`]],
    ['no length', ['Accept: */*']],
    ['chunks', ['Transfer-Encoding: chunked']],
    ['a length and chunks', [`Content-Length: ${long}`, 'Transfer-Encoding: chunked']],
    ['chunks and a length', ['tRANSFER-eNCODING:chunked', `Content-Length: ${long}`]],
    ['chunks that are none', [`Content-Length: ${long}`, 'Transfer-Encoding: identity']],
    ['chunks with a space before the colon', [`Content-Length: ${long}`, 'Transfer-Encoding : chunked']],
    ['chunks in a folded line', [`Content-Length: ${long}`, 'Transfer-Encoding:', ' chunked']],
    ['chunks behind a bare LF', [`Content-Length: ${long}`, 'A: b\nTransfer-Encoding: chunked']],
    ['chunks behind a bare CR', [`Content-Length: ${long}`, 'A: b\rTransfer-Encoding: chunked']],
    ['a length behind a bare LF', ['Content-Length: 0', `A: b\nContent-Length: ${long}`]],
    ['a folded line', [`Content-Length: ${long}`, 'A: b', ' c']],
    ['a line folded with a tab', [`Content-Length: ${long}`, 'A: b', '\tc']],
    ['a first line that is folded', [' A: b', `Content-Length: ${long}`]],
    ['a head that ends with bare LFs', [`Content-Length: ${long}\n\nA: b`]],
    ['NUL in a value', [`Content-Length: ${long}`, 'A: \0']],
    ['NUL in a name', [`Content-Length: ${long}`, 'A\0: b']],
    ['DEL', [`Content-Length: ${long}`, 'A: \x7f']],
    ['bytes beyond ASCII', [`Content-Length: ${long}`, 'A: \xe9']],
    ['a name beyond ASCII', [`Content-Length: ${long}`, '\xe9: a']],
    ['no name', [`Content-Length: ${long}`, ': a']],
    ['no colon', [`Content-Length: ${long}`, 'a']],
    ['expect', [`Content-Length: ${long}`, 'Expect: 100-continue']],
    ['upgrade', [`Content-Length: ${long}`, 'Upgrade: h2c', 'Connection: upgrade']],
    ['connection: close', [`Content-Length: ${long}`, 'Connection: close']],
    ['connection with two words', [`Content-Length: ${long}`, 'Connection: keep-alive, content-length']],
    ['an empty connection', [`Content-Length: ${long}`, 'Connection:']],
    ['connection by its other name', [`Content-Length: ${long}`, 'Proxy-Connection: close']],
    ['two hosts', [`Content-Length: ${long}`, 'Host: b']],
    ['a trailer', [`Content-Length: ${long}`, 'Trailer: a']],
  ])('%s', (_, lines) => {
    expect(readText(withLines(...lines))).toBeUndefined()
  })

  test.each([
    ...['post /mcp HTTP/1.1', 'POST /mcp HTTP/1.0', 'POST /mcp HTTP/0.9', 'POST /mcp HTTP/2.0', 'POST /mcp http/1.1'],
    ...['POST /mcp?x HTTP/1.1', 'POST http://localhost/mcp HTTP/1.1', 'POST /MCP HTTP/1.1', 'POST /mcp/ HTTP/1.1'],
    ...[
      'POST  /mcp HTTP/1.1',
      'POST /mcp  HTTP/1.1',
      'POST /mcp HTTP/1.1 ',
      ' POST /mcp HTTP/1.1',
      '\r\nPOST /mcp HTTP/1.1',
    ],
    ...[
      'POST\t/mcp\tHTTP/1.1',
      'PUT /mcp HTTP/1.1',
      'GET /mcp HTTP/1.1',
      'OPTIONS /mcp HTTP/1.1',
      'POST /mcp HTTP/1.1\r',
    ],
  ])('a request that begins with %j is for the other reader', (line) => {
    expect(readText(post().replace('POST /mcp HTTP/1.1', line))).toBeUndefined()
  })
})
