import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../../tests/fixtures/runs.ts'
import { type ParsedHead, ResponseReader } from './response-reader.ts'

interface Told {
  readonly head: ParsedHead
  readonly body: string
  readonly pieces: number
}

/** What the reader reports for these bytes if they arrive in these pieces. */
function read(pieces: readonly (string | Buffer)[], { whole = 0, ended = true } = {}) {
  const answers: Told[] = []
  let head: ParsedHead | undefined
  let body: Buffer[] = []
  const reader = new ResponseReader({
    head(told) {
      head = told
      return whole
    },
    data: (chunk) => void body.push(chunk),
    end() {
      answers.push({ head: head as ParsedHead, body: Buffer.concat(body).toString('latin1'), pieces: body.length })
      body = []
      head = undefined
    },
  })
  for (const piece of pieces) {
    const bytes = Buffer.from(piece as string, 'latin1')
    // Deliver the bytes as a socket does: directly into `place` if the reader has one, as far as there is room.
    for (let at = 0; at < bytes.length; ) {
      const { place } = reader
      if (place === undefined) {
        reader.push(bytes.subarray(at))
        // Overwrite the bytes, as the next read would: the reader must not keep them.
        bytes.fill(0, at)
        break
      }
      const length = bytes.copy(place, 0, at)
      reader.placed(length)
      at += length
    }
  }
  return { answers, well: ended ? reader.ended() : undefined }
}

const chunked = (...chunks: string[]) =>
  `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks
    .map((chunk) => `${chunk.length.toString(16)};x=y\r\n${chunk}\r\n`)
    .join('')}0\r\nTrailer: t\r\n\r\n`
const sized = (body: string, more = '') => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`

describe('G1: answers over HTTP/1.1', () => {
  test('a body ends by its length, by its chunks, or with the connection', () => {
    expect(read([sized('hello')]).answers).toMatchObject([{ body: 'hello' }])
    expect(read([chunked('hel', 'lo')]).answers).toMatchObject([{ body: 'hello' }])
    expect(read(['HTTP/1.0 200 OK\r\n\r\nhello']).answers).toMatchObject([{ body: 'hello', head: { reuse: false } }])
    expect(read(['HTTP/1.1 204 No Content\r\n\r\n']).answers).toMatchObject([{ body: '', head: { status: 204 } }])
  })

  test('one that is cut off has not ended well', () => {
    expect(read(['HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello'])).toMatchObject({ answers: [], well: false })
    expect(read([chunked('hello').slice(0, -2)])).toMatchObject({ answers: [], well: false })
    expect(read(['HTTP/1.1 200']).well).toBe(false)
  })

  test('answers that only announce another one are passed over', () => {
    expect(read([`HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n${sized('hello')}`]).answers).toMatchObject([
      { body: 'hello', head: { status: 200 } },
    ])
  })

  test('several headers of one name are all kept', () => {
    const { answers } = read([sized('', 'WWW-Authenticate: Basic\r\nwww-authenticate: Bearer\r\n')])
    expect(answers[0]?.head.headers.get('www-authenticate')).toBe('Basic')
    expect(answers[0]?.head.repeated).toEqual([['www-authenticate', 'Bearer']])
  })

  test('how long a connection may be idle is what the server says', () => {
    expect(read([sized('', 'Keep-Alive: timeout=5, max=100\r\n')]).answers[0]?.head.keepAliveMs).toBe(5_000)
    expect(read([sized('', 'Connection: close\r\n')]).answers[0]?.head.reuse).toBe(false)
    expect(read(['HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n']).answers[0]?.head.reuse).toBe(false)
  })

  const bad: Record<string, string> = {
    'another protocol': 'SSH-2.0-OpenSSH_9.2\r\n',
    'another protocol that says little': 'RFB',
    'a status that is none': 'HTTP/1.1 999 What\r\n\r\n',
    'another version': 'HTTP/2.0 200 OK\r\n\r\n',
    'a switch of protocols': 'HTTP/1.1 101 Switching Protocols\r\n\r\n',
    'a length and chunks': chunked('hello').replace('\r\n\r\n', '\r\nContent-Length: 3\r\n\r\n'),
    'one length twice': 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc',
    'two codings': chunked('hello').replace('\r\n\r\n', '\r\nTransfer-Encoding: gzip\r\n\r\n'),
    'a length before a space': 'HTTP/1.1 200 OK\r\nContent-Length: 3 \r\n\r\nabc',
    'a line of the head that ends with LF': 'HTTP/1.1 200 OK\r\nA: b\nContent-Length: 3\r\n\r\nabc',
    'a head that ends with LF': 'HTTP/1.1 200 OK\nA: b\n\n',
    'CR in a value': 'HTTP/1.1 200 OK\r\nA: b\rc\r\nContent-Length: 3\r\n\r\nabc',
    'NUL in a value': 'HTTP/1.1 200 OK\r\nA: \0\r\nContent-Length: 3\r\n\r\nabc',
    'a chunk line that ends with LF': chunked('hello').replace('x=y\r\n', 'x=y\n'),
    'a chunk that ends with LF': chunked('hello').replace('hello\r\n', 'hello\n'),
    'a space behind the size of a chunk': chunked('hello').replace('5;x=y', '5 '),
    'CR in the extension of a chunk': chunked('hello').replace('x=y', 'x=\ry'),
    'a trailer that ends with LF': chunked('hello').replace('Trailer: t\r\n', 'Trailer: t\n'),
    'a trailer without a name': chunked('hello').replace('Trailer: t', 'Trailer'),
    'a length in a trailer': chunked('hello').replace('Trailer: t', 'Content-Length: 3'),
    'leave to go on': `HTTP/1.1 100 Continue\r\n\r\n${sized('hello')}`,
    'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd',
    'a length with a sign': 'HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc',
    'a header without a name': 'HTTP/1.1 200 OK\r\n: 3\r\n\r\n',
    'a header that goes on in the next line': 'HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n',
    'a space before the colon': 'HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nabc',
    'a coding that nobody asked for': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n',
    'a chunk without a size': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n',
    'a chunk longer than it says': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n',
    'a head without end': `HTTP/1.1 200 OK\r\nA: ${'b'.repeat(40_000)}`,
    'a line without end': `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'0'.repeat(5_000)}`,
  }
  test.each(Object.entries(bad))('%s is refused', (_, bytes) => {
    expect(() => read([bytes])).toThrow(expect.objectContaining({ name: 'MalformedResponse' }))
  })

  test('a long answer that is wanted whole comes in one piece, a longer one in pieces', () => {
    const body = 'x'.repeat(100_000)
    const [head, ...rest] = [sized(body).slice(0, 1_000), sized(body).slice(1_000, 50_000), sized(body).slice(50_000)]
    expect(read([head as string, ...rest], { whole: 100_000 }).answers).toMatchObject([{ body, pieces: 1 }])
    expect(read([head as string, ...rest], { whole: 99_999 }).answers).toMatchObject([{ body, pieces: 3 }])
    const two = sized(body) + sized('next')
    expect(read([two.slice(0, 200), two.slice(200)], { whole: 1 << 20 }).answers).toMatchObject([
      { body },
      { body: 'next' },
    ])
  })

  const body = fc.oneof(fc.string({ unit: 'binary-ascii', maxLength: 50 }), fc.constant('y'.repeat(40_000)))
  test('the result does not depend on how the bytes are split', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ body, chunks: fc.boolean() }), { minLength: 1, maxLength: 4 }),
        fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 30 }),
        fc.constantFrom(0, 1 << 20),
        (answers, cuts, whole) => {
          const bytes = answers
            .map(({ body, chunks }) => (chunks ? chunked(...(body.match(/[\s\S]{1,7000}/g) ?? [])) : sized(body)))
            .join('')
          const pieces: string[] = []
          let at = 0
          for (let n = 0; at < bytes.length; n++) {
            // Use small pieces at first, where the head is, and larger ones later, so that long bodies do not take too
            // long.
            const length = (cuts[n % cuts.length] as number) * (n < 40 ? 1 : 500)
            pieces.push(bytes.slice(at, at + length))
            at += length
          }
          expect(read(pieces, { whole }).answers.map((told) => told.body)).toEqual(answers.map((one) => one.body))
        },
      ),
      runs(40, 2_000),
    )
  })
})

describe('G2: a response that is mostly framing is malformed', () => {
  const start = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
  const times = (text: string, count: number) =>
    Array.from({ length: Math.ceil(count / 1_000) }, () => text.repeat(1_000))

  test.each([
    ['chunks of one byte', [start, ...times('1\r\nx\r\n', 500_000)]],
    ['extensions of chunks', [start, ...times(`1;${'x'.repeat(500)}\r\nx\r\n`, 4_000)]],
    ['trailers', [start, '0\r\n', ...times('a: b\r\n', 200_000)]],
    ['informational responses', times('HTTP/1.1 102 Processing\r\n\r\n', 50_000)],
  ])('%s', (_what, pieces) => {
    expect(() => read(pieces)).toThrow('more framing than content')
  })

  test('but not one of many short chunks', () => {
    const { answers, well } = read([start, ...times('6\r\n: hi\n\n\r\n', 300_000), '0\r\n\r\n', sized('next')])
    expect(answers).toMatchObject([{ pieces: 300_000 }, { body: 'next' }])
    expect(well).toBe(true)
  })
})
