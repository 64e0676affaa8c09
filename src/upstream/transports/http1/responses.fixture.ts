import fc from 'fast-check'

/**
 * Generators of valid and odd responses, in which each character stands for one byte, and of the pieces in which they
 * arrive.
 */

const plainLine = fc
  .tuple(fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,8}$/), fc.stringMatching(/^[ -~\x80-\xff]{0,12}$/))
  .map(([name, value]) => `X-${name}: ${value}`)

const statusLine = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom('HTTP/1.1 200 OK', 'HTTP/1.1 200 OK', 'HTTP/1.0 200 OK', 'HTTP/1.1 404 Not Found'),
  },
  fc.constantFrom(
    ...['HTTP/1.1 200', 'HTTP/1.1 200 ', 'HTTP/1.1 204 No Content', 'HTTP/1.1 304 Not Modified', 'HTTP/1.1 205 R'],
    ...[
      'HTTP/1.1  200 OK',
      'HTTP/1.1 20 OK',
      'HTTP/1.1 2000 OK',
      'HTTP/1.1 600 OK',
      'HTTP/1.1 099 OK',
      'HTTP/1.1 000 OK',
    ],
    ...['HTTP/1.1 200OK', 'HTTP/1.1 200\tOK', 'HTTP/1.1 200 O\0K', 'HTTP/1.1 200 O\x7fK', 'HTTP/1.1 200 \xe9'],
    ...[
      'HTTP/1.1 200 O\rK',
      'HTTP/1.1 200 O\nK',
      'HTTP/1.2 200 OK',
      'HTTP/2.0 200 OK',
      'HTTP/0.9 200 OK',
      'HTTP/01.1 200',
    ],
    ...['http/1.1 200 OK', 'HTTP/1.1\t200 OK', 'HTTP/1.1 +20 OK', 'HTTP/1.1 2e2 OK', ' HTTP/1.1 200 OK', 'ICY 200 OK'],
    ...['\r\nHTTP/1.1 200 OK', '\nHTTP/1.1 200 OK', '\rHTTP/1.1 200 OK', 'HTTP/1.1 200 OK\r', 'HTTP/1.1 200 OK '],
    ...['HTTP/1.1 101 Switching Protocols', 'HTTP/1.1 100 Continue', 'HTTP/1.1 103 Early Hints', 'HTTP/1.1 199 x'],
  ),
)

/** Header lines on which HTTP readers are known to disagree, or that change the meaning of what follows. */
const oddLine = fc.constantFrom(
  ...['Content-Length: 0', 'Content-Length: 2', 'Content-Length: +2', 'Content-Length: 02', 'Content-Length: 0x2'],
  ...['Content-Length: 2, 2', 'Content-Length: 2 2', 'Content-Length: -1', 'Content-Length: 99999999999999999999'],
  ...['Content-Length:', 'Content-Length: 2\t', 'Content-Length:\t2', 'Content-Length : 2', 'Content-Length: 2;'],
  ...['Content-Length: 2 ', 'Content-Length:   2', 'content-length:2', ' Content-Length: 2', 'Content-Length: 2.0'],
  ...['Content-Length: 000000000000000000002', 'Content-Length: \x80', 'Content-Length: 2\0', 'Content-Length\0: 2'],
  ...['Transfer-Encoding: chunked', 'transfer-encoding:chunked', 'TRANSFER-ENCODING: Chunked', 'Transfer-Encoding:'],
  ...['Transfer-Encoding: identity', 'Transfer-Encoding : chunked', 'Transfer-Encoding: gzip, chunked'],
  ...['Transfer-Encoding: chunked, gzip', 'Transfer-Encoding: gzip', 'Transfer-Encoding: chunked, chunked'],
  ...['Transfer-Encoding:\tchunked', ' Transfer-Encoding: chunked', 'Transfer-Encoding: xchunked'],
  ...[
    'Transfer-Encoding: chunked ',
    'Transfer-Encoding: chunked\t',
    'Transfer-Encoding: chunked,',
    'Transfer-Encoding: ,chunked',
  ],
  ...[
    'Transfer-Encoding: "chunked"',
    'Transfer-Encoding: chunked;q=1',
    'Transfer-Encoding: chun ked',
    'Transfer-Encoding: chunkedx',
  ],
  ...['Connection: close', 'Connection: keep-alive', 'Connection: upgrade', 'Connection:', 'Connection: x, close'],
  ...['Upgrade: websocket', 'Proxy-Connection: close', 'Keep-Alive: timeout=5', 'Keep-Alive: timeout=x', 'Trailer: x'],
  ...[
    'Set-Cookie: a=1',
    'Set-Cookie: b=2',
    '__proto__: x',
    'constructor: x',
    'Date: x',
    'Content-Type: application/json',
  ],
  ...[
    ': empty',
    'no colon',
    ' folded',
    '\tfolded',
    'a: b\rc',
    'a: b\nc',
    'a\r: b',
    'a b: c',
    'a\t: b',
    'a: \0',
    'a:\r\n b',
  ],
  ...[
    'a: b\r',
    'a:\tb',
    'a: b\t',
    'a: \xe9',
    '\xe9: a',
    'a: \x7f',
    'a: \x01',
    'a: :',
    'a::',
    '"a": b',
    'a(b): c',
    '@: b',
  ],
  ...['a: b\r\n c', 'a: b\r\n\tc', 'a: \xa0', 'a:  ', 'a: b  ', 'a: "b', 'A: B', 'a: b'],
)

const text = fc.string({
  unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  maxLength: 20,
})

const extension = fc.oneof(
  { weight: 6, arbitrary: fc.constant('') },
  fc.constantFrom(
    ...[';a', ';a=b', ';a="b c"', ';a="b\\"c";d', ';a=""', ';a=b;c=d', ';a="\t\xe9"', ';;a', ';a=', ';=b', ';a=b"c"'],
    ...[
      ';',
      ' ',
      '\t',
      '; a=b',
      ';a =b',
      ';a=b ',
      ';a=b;',
      ';a="b"c',
      ';"b"',
      ';a==b',
      ';a=\rb',
      ';a\rb',
      ';\xe9',
      ';a="\x01"',
    ],
    ...[';a="b', ';a=\0', ';a="\0"', ';a="\x7f"', ';a="\r"', ';a\n', ';a=b\n', ' ;a', ';a="\\\x01"', ';a="\\"', ';\r'],
  ),
)

const sizeOf = (length: number) =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(length.toString(16), length.toString(16).toUpperCase()) },
    fc.constantFrom(
      ...[
        `0${length.toString(16)}`,
        `0x${length.toString(16)}`,
        `+${length}`,
        `-${length}`,
        ` ${length}`,
        '',
        'g',
        '1g',
      ],
      ...[
        `00000000000000000000${length.toString(16)}`,
        `1000000000000000${length}`,
        'fffffffffffffffff',
        `${length}.0`,
      ],
    ),
  )

const lineEnd = fc.oneof(
  { weight: 12, arbitrary: fc.constant('\r\n') },
  fc.constantFrom('\n', '\r', '\r\r\n', '\n\n', ''),
)

const chunk = text
  .filter((data) => data !== '')
  .chain((data) => fc.tuple(sizeOf(data.length), extension, lineEnd, fc.constant(data), lineEnd))
  .map((parts) => parts.join(''))

const lastChunk = fc
  .tuple(fc.oneof({ weight: 6, arbitrary: fc.constant('0') }, fc.constantFrom('00', '0;a', '0 ', '', '0x0')), lineEnd)
  .map((parts) => parts.join(''))

const trailers = fc
  .tuple(fc.array(fc.oneof({ weight: 3, arbitrary: plainLine }, oddLine), { maxLength: 2 }), lineEnd)
  .map(([lines, end]) => [...lines.map((line) => `${line}\r\n`), end].join(''))

const chunks = fc
  .tuple(fc.array(chunk, { maxLength: 3 }), lastChunk, trailers)
  .map(([parts, last, end]) => [...parts, last, end].join(''))

/** How the body is framed: a header line, and the bytes of the body. */
const framed = fc.oneof(
  text.map((body) => ({ line: `Content-Length: ${body.length}`, body })),
  chunks.map((body) => ({ line: 'Transfer-Encoding: chunked', body })),
  text.map((body) => ({ line: undefined, body })),
)

const early = fc.oneof(
  { weight: 9, arbitrary: fc.constant('') },
  fc.constantFrom(
    ...[
      'HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n',
      'HTTP/1.1 102 Processing\r\n\r\n',
      'HTTP/1.1 100 Continue\r\n\r\n',
    ],
    ...['HTTP/1.1 103 E\r\nContent-Length: 2\r\n\r\n', 'HTTP/1.1 103 E\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ...['HTTP/1.0 103 E\r\n\r\n', 'HTTP/1.1 103 E\r\nConnection: close\r\n\r\n', 'HTTP/1.1 101 S\r\n\r\n'],
    ...['HTTP/1.1 103 E\r\n\r\n\r\n', 'HTTP/1.1 103 E\r\n\n', 'HTTP/1.1 103 E\nA: b\r\n\r\n'],
  ),
)

const response = fc
  .tuple(
    early,
    statusLine,
    fc.array(fc.oneof({ weight: 2, arbitrary: plainLine }, oddLine), { maxLength: 2 }),
    framed,
    fc.nat(3),
  )
  .map(([before, line, lines, { line: frame, body }, at]) => {
    const all = frame === undefined ? lines : lines.toSpliced(Math.min(at, lines.length), 0, frame)
    return `${before}${[line, ...all, '', ''].join('\r\n')}${body}`
  })

const mutation = fc.oneof(
  fc.tuple(fc.nat(200), fc.constantFrom('\r', '\n', '\r\n', '\0', ' ', '\t', ':', '\x80', ';', '0', 'a', '')).map(
    ([at, byte]) =>
      (bytes: string) =>
        bytes.slice(0, at) + byte + bytes.slice(at + 1),
  ),
  fc.tuple(fc.nat(200), fc.constantFrom('\r', '\n', ' ', '\t', '\0', '0')).map(
    ([at, byte]) =>
      (bytes: string) =>
        bytes.slice(0, at) + byte + bytes.slice(at),
  ),
  fc.nat(200).map((at) => (bytes: string) => bytes.slice(0, at)),
  fc.constant((bytes: string) => bytes.replaceAll('\r\n', '\n')),
  fc.nat(12).map((nth) => (bytes: string) => {
    let count = 0
    return bytes.replaceAll('\r\n', (found) => (count++ === nth ? '\n' : found))
  }),
  fc
    .constantFrom('x', '\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    .map((behind) => (bytes: string) => bytes + behind),
)

/** A response with any number of oddities, cut into pieces at random places. */
export const anyAnswer = fc
  .tuple(
    response,
    fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, fc.array(mutation, { maxLength: 2 })),
    fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 4 }),
  )
  .map(([bytes, mutations, cuts]) => {
    const all = Buffer.from(
      mutations.reduce((text, mutate) => mutate(text), bytes),
      'latin1',
    )
    const pieces: Buffer[] = []
    let at = 0
    for (const length of cuts) {
      if (at + length >= all.length) break
      pieces.push(all.subarray(at, at + length))
      at += length
    }
    return [...pieces, all.subarray(at)].filter(({ length }) => length > 0)
  })
