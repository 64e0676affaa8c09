import { brotliCompressSync, constants, createGzip, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { json, type RogueHttp, result, stream } from '../../../tests/fixtures/rogue-http.ts'
import { systemClock } from '../../core/clock.ts'
import { maxMessage } from '../../wire/message.ts'
import { call, everything, handshake, onPost, opened, rogue, serving, thrown } from './http.fixture.ts'
import { ask } from './receiver.fixture.ts'
import { LimitExceeded, refusesStreamableHttp } from './transport-errors.ts'

describe('a well-behaved server', () => {
  test('T3: the official server answers a handshake, a list and a call over Streamable HTTP', async () => {
    const origin = await everything('streamableHttp')
    const { transport, heard } = await opened(`${origin}/mcp`, { clock: systemClock })
    await handshake(transport, heard)
    const { tools } = await ask(transport, heard, 2, 'tools/list')
    expect(tools.map(({ name }) => name)).toContain('echo')
    const { content } = await ask(transport, heard, 3, 'tools/call', { name: 'echo', arguments: { message: 'hello' } })
    expect(content[0]?.text).toBe('Echo: hello')
    expect(heard.heard.find((message) => 'id' in message && message.id === 3)?.exchange).toBe(3)
    await transport[Symbol.asyncDispose]()
    expect([heard.downs, heard.failures.size]).toEqual([0, 0])
  })

  test('G3: session and version are sent once they are known, beside the configured headers and never instead of ours', async () => {
    const server = await serving((got, response) => {
      if (got.method !== 'POST') return response.writeHead(405).end()
      return json(response, result(got.message?.id, { protocolVersion: '2025-06-18' }), 200, {
        'mcp-session-id': 'abc',
      })
    })

    const headers = { Authorization: 'Bearer token', Accept: 'text/html', 'Content-Type': 'text/plain' }
    const { transport, heard } = await opened(server.url, { headers })
    await handshake(transport, heard)
    await ask(transport, heard, 1, 'tools/list')
    await transport[Symbol.asyncDispose]()
    const [first, ...later] = server.got.filter(({ method }) => method === 'POST')
    expect(first?.headers).toMatchObject({
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      authorization: 'Bearer token',
    })
    expect(first?.headers).not.toHaveProperty('mcp-session-id')
    for (const { headers } of later)
      expect(headers).toMatchObject({ 'mcp-session-id': 'abc', 'mcp-protocol-version': '2025-06-18' })
    const last = server.got.at(-1)
    expect([last?.method, last?.headers['mcp-session-id'], last?.headers.authorization]).toEqual([
      'DELETE',
      'abc',
      'Bearer token',
    ])
  })

  test('B6: a credential in the address becomes a header', async () => {
    const server = await serving(onPost((got, response) => json(response, result(got.message?.id))))

    const { transport, heard } = await opened(server.url.replace('//', '//ada:p%40ss@'))
    await ask(transport, heard, 1, 'ping')
    expect(server.got[0]?.headers.authorization).toBe(`Basic ${Buffer.from('ada:p@ss').toString('base64')}`)
  })

  test('security: a session or version that cannot be a header is not sent', async () => {
    const server = await serving(
      onPost((got, response) => json(response, result(got.message?.id), 200, { 'mcp-session-id': 'a b' })),
    )

    const { transport, heard } = await opened(server.url)
    await ask(transport, heard, 1, 'initialize')
    transport.established('1\r\nx-evil: 1')
    await ask(transport, heard, 2, 'ping')
    const { headers } = server.got.find(({ message }) => message?.id === 2) as RogueHttp['got'][0]
    expect(Object.keys(headers).filter((name) => /^(mcp|x-)/.test(name))).toEqual([])
  })

  test('E1: a configured header that cannot be sent is SERVER_UNAVAILABLE and points to the headers', async () => {
    const { transport } = await opened('http://127.0.0.1:9/', { headers: { 'x-key': 'secret\nvalue' } })
    const error = await thrown(call(transport))
    expect(error).toMatchObject({ code: 'SERVER_UNAVAILABLE', message: expect.stringContaining('its headers') })
    expect(error.message).not.toContain('secret')
  })

  test('F14: what a server says on the stream of a request carries its number', async () => {
    const { transport, heard } = await rogue(
      onPost((got, response) => {
        stream(response).write('data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}\n\n')
        response.end(`data: ${result(got.message?.id)}\n\n`)
      }),
    )
    await call(transport, 5)
    await heard.until((message) => message.kind === 'response' && message.id === 5)
    expect(heard.heard.slice(1).map(({ kind, exchange }) => [kind, exchange])).toEqual([
      ['notification', 5],
      ['response', 5],
    ])
  })

  test('G2: a call does not wait for another one', async () => {
    const { transport, heard } = await rogue(
      onPost((got, response) => {
        if (got.message?.id === 2) json(response, result(2))
      }),
    )
    void thrown(call(transport, 1))
    await call(transport, 2)
    await heard.until((message) => message.kind === 'response' && message.id === 2)
  })
})

describe('redirects', () => {
  test.each([307, 308])('F9: HTTP %i to another path is followed in the handshake, and remembered', async (status) => {
    const server = await serving(
      onPost((got, response) => {
        if (got.path !== '/mcp/?a=1') return response.writeHead(status, { location: '/mcp/?a=1' }).end('moved')
        return json(response, result(got.message?.id))
      }),
    )
    const { transport, heard } = await opened(`${new URL(server.url).origin}/mcp?a=1`)
    await ask(transport, heard, 1, 'initialize')
    transport.established('2025-11-25')
    await ask(transport, heard, 2, 'tools/call')
    const posts = server.got.filter(({ method }) => method === 'POST')
    expect(posts.map(({ path, message }) => [path, message?.id])).toEqual([
      ['/mcp?a=1', 1],
      ['/mcp/?a=1', 1],
      ['/mcp/?a=1', 2],
    ])
  })

  test('F12: a call is not sent again because of a redirect: the server may have run it', async () => {
    const { transport, server } = await rogue(
      onPost((_, response) => response.writeHead(307, { location: '/elsewhere' }).end()),
    )
    expect(await thrown(call(transport))).toMatchObject({ message: expect.stringContaining('another path') })
    expect(server.got.filter(({ message }) => message?.method === 'tools/call')).toHaveLength(1)
  })

  test('security: a redirect to another origin is not followed, and one in a circle ends', async () => {
    const other = await serving(onPost((_, response) => response.writeHead(500).end()))
    let location = `${other.url}x?key=secret`
    const server = await serving(onPost((_, response) => response.writeHead(307, { location }).end()))
    const { transport } = await opened(server.url, { headers: { authorization: 'Bearer secret' } })
    const error = await thrown(call(transport))
    expect(error).toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    expect(error.message).toContain(new URL(other.url).origin)
    expect(error.message).not.toContain('secret')
    expect(other.got).toEqual([])
    location = '/again'
    const before = server.got.length
    expect(await thrown(call(transport, 2))).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringContaining('another path'),
    })
    expect(server.got.length - before).toBe(6)
  })
})

describe('compressed responses', () => {
  const encodings: Record<string, (bytes: Buffer) => Buffer> = {
    gzip: (bytes) => gzipSync(bytes, { level: 1 }),
    deflate: (bytes) => deflateSync(bytes, { level: 1 }),
    // With the best quality, which is the default, a bomb would take seconds.
    br: (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
    zstd: zstdCompressSync,
  }

  test.each(Object.entries(encodings))('T3: a response with the encoding %s is decoded', async (encoding, encode) => {
    const { server, transport, heard } = await rogue(
      onPost((got, response) => {
        const encoded = (type: string, text: string) =>
          response.writeHead(200, { 'content-type': type, 'content-encoding': encoding }).end(encode(Buffer.from(text)))
        const text = result(got.message?.id, { text: 'x'.repeat(100_000) })
        if (got.message?.id === 1) encoded('application/json', text)
        else encoded('text/event-stream', `data: ${text}\n\n`)
      }),
    )
    for (const id of [1, 2])
      expect(await ask(transport, heard, id, 'tools/call')).toEqual({ text: 'x'.repeat(100_000) })
    expect(server.got.at(-1)?.headers['accept-encoding']).toBe('identity')
  })

  test('F4: an event of a compressed stream is delivered before the stream ends', async () => {
    const { transport, heard } = await rogue(
      onPost((_, response) => {
        const compressed = createGzip()
        compressed.pipe(stream(response, { 'content-encoding': 'gzip' }))
        compressed.write('data: {"jsonrpc":"2.0","method":"news"}\n\n')
        compressed.flush()
      }),
    )
    const controller = new AbortController()
    await call(transport, 1, controller.signal)
    await heard.until((message) => message.kind === 'notification')
    controller.abort()
  })

  test.each(Object.entries(encodings))('V6: a %s bomb is not decoded beyond the limit', async (encoding, encode) => {
    const bomb = encode(Buffer.alloc(maxMessage + 1024 * 1024, ' '))
    const { transport, heard } = await rogue(
      onPost((got, response) => {
        const type = got.message?.id === 1 ? 'application/json' : 'text/event-stream'
        response.writeHead(200, { 'content-type': type, 'content-encoding': encoding }).end(bomb)
      }),
    )
    await call(transport, 1)
    expect(LimitExceeded.in(await heard.failure(1))?.kind).toBe('large-message')
    await call(transport, 2)
    expect(LimitExceeded.in(await heard.failure(2))?.kind).toBe('large-message')
  })

  test('T1: an error names an encoding that is unknown, or that the response does not have', async () => {
    const { transport, heard } = await rogue(
      onPost((got, response) =>
        json(response, result(got.message?.id), 200, { 'content-encoding': got.message?.id === 1 ? 'lzma' : 'gzip' }),
      ),
    )
    expect((await thrown(call(transport, 1))).message).toContain('"lzma"')
    await call(transport, 2)
    expect((await heard.failure(2)).message).toContain('gzip')
    expect(transport.usable).toBe(true)
  })
})

describe('refusals', () => {
  test.each([
    [400, 'SERVER_UNAVAILABLE', /rejected the request/],
    [401, 'SERVER_UNAVAILABLE', /credential.*mcpServers\.rogue\.auth and mcpServers\.rogue\.headers/],
    [403, 'SERVER_UNAVAILABLE', /credential/],
    [404, 'SERVER_UNAVAILABLE', /rejected the request/],
    [405, 'SERVER_UNAVAILABLE', /rejected the request/],
    [413, 'SERVER_UNAVAILABLE', /rejected the request because it is too large .*Change its arguments/],
    [415, 'SERVER_UNAVAILABLE', /rejected the request.*Change its arguments/],
    [429, 'SERVER_UNAVAILABLE', /too busy/],
    [503, 'SERVER_UNAVAILABLE', /too busy/],
    [500, 'OUTCOME_UNKNOWN', /failed \(HTTP 500\)/],
    [502, 'OUTCOME_UNKNOWN', /failed/],
    [504, 'OUTCOME_UNKNOWN', /failed/],
    [303, 'OUTCOME_UNKNOWN', /redirect/],
    [302, 'SERVER_UNAVAILABLE', /redirects are not followed/],
    [307, 'SERVER_UNAVAILABLE', /another URL/],
    [204, 'OUTCOME_UNKNOWN', /HTTP 204/],
  ])('F12: HTTP %i is %s', async (status, code, sentence) => {
    const headers = { 'retry-after': '7' }
    const { transport, heard } = await rogue(
      onPost((_, response) => response.writeHead(status, headers).end('<html>')),
      { session: '' },
    )
    const error = await thrown(call(transport))
    expect(error).toMatchObject({ code, message: expect.stringMatching(sentence), details: { server: 'rogue' } })
    if (status === 429 || status === 503) expect(error.details.retryAfterMs).toBe(7_000)
    // Refusals that one caller's arguments can cause do not count for the breaker (J3).
    expect(error.details.requestOnly).toBe([400, 403, 413, 415].includes(status) ? true : undefined)
    // The request was sent, although the server rejected it.
    expect(error.details.unsent).toBeUndefined()
    expect(heard.downs).toBe(0)
  })

  test('F12: a proxy whose server broke off calls it 503, and the call may have run', async () => {
    const said = 'upstream connect error or disconnect/reset before headers. reset reason: connection termination'
    const { transport } = await rogue(onPost((_, response) => response.writeHead(503).end(said)))
    expect(await thrown(call(transport))).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringMatching(/failed \(HTTP 503\)/),
    })
  })

  test.each(['1', '"1"'])('T2: an error object with the id %s passes unchanged, whatever the status', async (id) => {
    const said = `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"no such method","data":{"a":1}}}`
    for (const status of [400, 404, 500]) {
      const { transport, heard } = await rogue(onPost((_, response) => json(response, said, status)))
      await call(transport)
      const error = await heard.until(({ kind }) => kind === 'error')
      expect(error.kind === 'error' && error.error.toString()).toBe(said.slice(said.indexOf('{"code"'), -1))
      expect(error.exchange).toBe(1)
    }
  })

  test('T2: an error object with the id of another request is not passed on', async () => {
    const said = '{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"x"}}'
    const { transport, heard } = await rogue(onPost((_, response) => json(response, said, 500)))
    expect(await thrown(call(transport))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect(heard.heard).toHaveLength(1)
  })

  test('security: a redirect is not followed, and the error names no more than its origin', async () => {
    const { server, transport } = await rogue(
      onPost((_, response) => response.writeHead(307, { location: 'http://evil.example/mcp?token=secret' }).end()),
    )
    const error = await thrown(call(transport))
    expect(error).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringContaining('redirects to http://evil.example,'),
    })
    expect(error.message).not.toContain('secret')
    expect(server.got.filter(({ message }) => message?.id === 1)).toHaveLength(1)
  })

  test('E1: a page instead of a message says to check the address', async () => {
    const server = await serving((_, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
    )

    const { transport } = await opened(server.url)
    const error = await thrown(call(transport))
    expect(error).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringMatching(/text\/html.*mcpServers\.rogue\.url/),
    })
  })

  test('T3: only the statuses of the older transport point to it', async () => {
    for (const [status, older] of [
      [404, true],
      [405, true],
      [400, true],
      [401, false],
      [500, false],
    ] as const) {
      const server = await serving((_, response) => response.writeHead(status).end())

      const { transport } = await opened(server.url)
      const error = await thrown(call(transport))
      expect([error.code, refusesStreamableHttp(error)]).toEqual(['SERVER_UNAVAILABLE', older])
    }
  })

  test('security: a refusal that never ends does not hold the call', async () => {
    const { transport } = await rogue(onPost((_, response) => response.writeHead(500).write('x')))
    expect(await thrown(call(transport))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  })
})
