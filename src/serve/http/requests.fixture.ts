import fc from 'fast-check'

/** A POST that came whole, as most clients send it. */
export const post = (body = '{}', headers: readonly string[] = []): string =>
  [`POST /mcp HTTP/1.1`, `Host: localhost`, ...headers, `Content-Length: ${body.length}`, '', body].join('\r\n')

const line = fc.constantFrom(
  ...['post /mcp HTTP/1.1', 'POST /mcp HTTP/1.0', 'POST /mcp HTTP/1.2', 'POST /mcp HTTP/2.0', 'POST /mcp HTTP/1.1 '],
  ...['POST /mcp?x=1 HTTP/1.1', 'POST /mcp# HTTP/1.1', 'POST http://localhost/mcp HTTP/1.1', 'POST  /mcp HTTP/1.1'],
  ...['POST\t/mcp HTTP/1.1', 'GET /mcp HTTP/1.1', 'POST /mcp HTTP/1.1\r', '\r\nPOST /mcp HTTP/1.1', 'POST /mcp'],
  ...['POST /%6dcp HTTP/1.1', 'POST /mcp/ HTTP/1.1', 'POST /mcpx HTTP/1.1', 'CONNECT /mcp HTTP/1.1', ''],
)

/** Lines on which readers of HTTP are known to disagree, or that change what comes after them. */
const oddLine = fc.constantFrom(
  ...['Content-Length: 0', 'Content-Length: 2', 'Content-Length: +2', 'Content-Length: 02', 'Content-Length: 0x2'],
  ...['Content-Length: 2, 2', 'Content-Length: 2 2', 'Content-Length: -1', 'Content-Length: 99999999999999999999'],
  ...['Content-Length:', 'Content-Length: 2\t', 'Content-Length:\t2', 'Content-Length : 2', 'Content-Length: 2;'],
  ...['Content-Length: 2  ', 'Content-Length:   2', 'content-length:2', ' Content-Length: 2', 'Content_Length: 2'],
  ...['Transfer-Encoding: chunked', 'transfer-encoding:chunked', 'TRANSFER-ENCODING: Chunked', 'Transfer-Encoding:'],
  ...['Transfer-Encoding: identity', 'Transfer-Encoding : chunked', 'Transfer-Encoding: gzip, chunked'],
  ...['Transfer-Encoding:\tchunked', ' Transfer-Encoding: chunked', 'Transfer-Encoding: xchunked', 'TE: trailers'],
  ...['Expect: 100-continue', 'Expect: something', 'Upgrade: websocket', 'Connection: upgrade', 'Connection: close'],
  ...[
    'Connection: keep-alive',
    'Connection: Keep-Alive',
    'Connection: keep-alive, close',
    'Connection:',
    'Connection: x',
  ],
  ...['Connection: keep-alive\t', 'Proxy-Connection: close', 'Proxy-Connection: keep-alive', 'Trailer: x'],
  ...['Host: other', 'Host:', 'Set-Cookie: a=1', '__proto__: x', 'constructor: x', 'toString: x', 'hasOwnProperty: x'],
  ...[': empty', 'no colon', '', ' folded', '\tfolded', 'a: b\rc', 'a: b\nc', 'a\r: b', 'a b: c', 'a\t: b', 'a: \0'],
  ...[
    'a: b\r',
    'a:\tb',
    'a: b\t',
    'a: é',
    'é: a',
    'a: \x7f',
    'a: \x01',
    'a: :',
    'a::',
    '"a": b',
    'a(b): c',
    'A: B',
    'a: b',
  ],
)

const name = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/).filter((name) => name !== '__proto__')
const value = fc.stringMatching(/^[ -~]{0,20}$/)
const plainLine = fc.tuple(name, value).map(([name, value]) => `${name}: ${value}`)
const body = fc.string({
  unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  maxLength: 40,
})

/** A request that nothing is odd about, each character a byte. */
export const wholeRequest = fc
  .record({ more: fc.uniqueArray(plainLine, { maxLength: 3, selector: nameOf }), body })
  .map(
    // Names that say something are for those below.
    ({ more, body }) =>
      post(
        body,
        more.filter((line) => !/^(host|content-length|connection|te|expect)$/.test(nameOf(line))),
      ),
  )

function nameOf(line: string): string {
  return line.slice(0, line.indexOf(':')).toLowerCase()
}

const withLine = (at: number, line: string) => (request: string) => {
  const lines = request.split('\r\n')
  return lines.toSpliced(1 + (at % Math.max(1, lines.indexOf(''))), 0, line).join('\r\n')
}

const mutation = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(fc.nat(5), oddLine).map(([at, line]) => withLine(at, line)) },
  // The length itself, said in another way.
  { weight: 2, arbitrary: oddLine.map((line) => (request: string) => request.replace(/Content-Length: \d+/, line)) },
  line.map((line) => (request: string) => line + request.slice(Math.max(0, request.indexOf('\r\n')))),
  fc.nat(400).map((at) => (request: string) => request.slice(0, at)),
  fc.tuple(fc.nat(200), fc.constantFrom('\r', '\n', '\r\n', '\0', ' ', '\t', ':', '\x80', 'a', '')).map(
    ([at, byte]) =>
      (request: string) =>
        request.slice(0, at) + byte + request.slice(at + 1),
  ),
  fc.constant((request: string) => request.replace('Host: localhost\r\n', '')),
  fc.constant((request: string) => request.replaceAll('\r\n', '\n')),
  fc
    .integer({ min: 90, max: 1_200 })
    .map(
      (count) => (request: string) =>
        withLine(0, Array.from({ length: count }, (_, index) => `${index.toString(36)}:`).join('\r\n'))(request),
    ),
)

/** A request with some oddities, or none, and what may come behind it. */
export const anyRequest = fc
  .tuple(
    wholeRequest,
    fc.array(mutation, { maxLength: 2 }),
    fc.constantFrom('', post(), 'GET / HTTP/1.1\r\n\r\n', '\r\n', 'x'),
  )
  .map(([request, mutations, behind]) => mutations.reduce((text, mutate) => mutate(text), request) + behind)

/** Requests that are right and that only node:http reads, and whether one may be followed by another. */
export const oddRequest = fc.constantFrom(
  'POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n',
  'GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'HEAD /other HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n',
  'POST /mcp?x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc',
  'POST /mcp HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc',
  'POST /mcp HTTP/1.1\r\nA: 1\r\nA: 2\r\nSet-Cookie: a\r\nContent-Length: 3\r\n\r\nabc',
)

export const lastRequest = fc.constantFrom(
  post('{}', ['Connection: close']),
  'POST /mcp HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}',
  post('{}', ['Proxy-Connection: close']),
)
