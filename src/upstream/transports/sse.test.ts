import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { json, type Script, stream } from '../../../tests/fixtures/rogue-http.ts'
import { systemClock } from '../../core/clock.ts'
import type { ToolwayError } from '../../core/errors.ts'
import { silentLog } from '../../core/log.ts'
import { call, everything, handshake, opened, quick, serving, thrown } from './http.fixture.ts'
import { ask, collector } from './receiver.fixture.ts'
import { SseTransport } from './sse.ts'

/** A server of the older transport that handles POST according to the script; `say` writes to its event stream. */
const older = async (onPost: Script, endpoint = '/message?session=1') => {
  let events: ServerResponse | undefined
  const server = await serving((got, response, socket) => {
    if (got.method !== 'GET') return onPost(got, response, socket)
    events = stream(response)
    events.write(`event: endpoint\ndata: ${endpoint}\n\n`)
  })
  const say = (text: string) => events?.write(text)
  return {
    server,
    say,
    end: () => events?.end(),
    opening: () => opened(server.url, { headers: { 'X-Key': 'k' } }, SseTransport),
  }
}

const accepted: Script = (_, response) => response.writeHead(202).end()

describe('a well-behaved server', () => {
  test('T3: the official server answers a handshake, a list and a call over HTTP+SSE', async () => {
    const origin = await everything('sse')
    const { transport, heard } = await opened(`${origin}/sse`, { clock: systemClock }, SseTransport)
    await handshake(transport, heard)
    const { tools } = await ask(transport, heard, 2, 'tools/list')
    expect(tools.map(({ name }) => name)).toContain('echo')
    const { content } = await ask(transport, heard, 3, 'tools/call', { name: 'echo', arguments: { message: 'hello' } })
    expect(content[0]?.text).toBe('Echo: hello')
    await transport[Symbol.asyncDispose]()
    expect(heard.downs).toBe(0)
  })

  test('T3: messages go to the named endpoint with the configured headers, answers come on the stream', async () => {
    const { server, say, opening } = await older((got, response) => {
      response.writeHead(202).end()
      say(`data: ${JSON.stringify({ jsonrpc: '2.0', id: got.message?.id, result: { ok: true } })}\n\n`)
    })
    const { transport, heard } = await opening()
    expect(await ask(transport, heard, 1, 'ping')).toEqual({ ok: true })
    expect(heard.heard[0]?.exchange).toBeUndefined()
    expect(server.got.map(({ method, path, headers }) => [method, path, headers['x-key']])).toEqual([
      ['GET', '/mcp', 'k'],
      ['POST', '/message?session=1', 'k'],
    ])
  })
})

describe('opening', () => {
  test.each([
    ['at another origin', 'http://evil.example/message', /another origin, http:\/\/evil\.example/],
    ['with another scheme', 'https://127.0.0.1/message', /another origin/],
    ['that is not a URL', 'http://', /not a URL/],
    ['that is too long', `/${'x'.repeat(9_000)}`, /of more than 8 KiB/],
  ])('security: an endpoint %s is refused, so no credential is sent there', async (_, endpoint, sentence) => {
    const { server, opening } = await older(accepted, endpoint)
    expect(await thrown(opening())).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringMatching(sentence),
    })
    expect(server.got).toHaveLength(1)
  })

  test.each<[string, Script, RegExp]>([
    ['a status', (_, response) => response.writeHead(401).end(), /credential/],
    [
      'a page',
      (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('x'),
      /text\/html.*mcpServers\.rogue\.url/,
    ],
    ['a message', (_, response) => json(response, '{}'), /application\/json/],
    ['a stream that ends', (_, response) => stream(response).end(': nothing\n\n'), /closed the event stream/],
    ['a reset', (_, _response, socket) => socket.resetAndDestroy(), /closed the connection/],
  ])('E1: %s instead of an endpoint is SERVER_UNAVAILABLE', async (_, script, sentence) => {
    const server = await serving(script)
    const error = await thrown(opened(server.url, {}, SseTransport))
    expect(error).toMatchObject({ code: 'SERVER_UNAVAILABLE', message: expect.stringMatching(sentence) })
  })

  test('G2: a server that names no endpoint can be given up, and its stream is closed', async () => {
    const closed = Promise.withResolvers<void>()
    const controller = new AbortController()
    const server = await serving((_, response) => {
      stream(response).once('close', () => closed.resolve())
      setImmediate(() => controller.abort(new Error('too slow')))
    })
    const transport = new SseTransport({ name: 'rogue', url: server.url, headers: {}, clock: quick, log: silentLog })
    await expect(transport.open(collector(), controller.signal)).rejects.toThrow('too slow')
    await closed.promise
    await transport[Symbol.asyncDispose]()
  })

  test('E1: sending before it is open is SERVER_UNAVAILABLE', async () => {
    const transport = new SseTransport({
      name: 'rogue',
      url: 'http://127.0.0.1:9/',
      headers: {},
      clock: quick,
      log: silentLog,
    })
    expect(await thrown(call(transport))).toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    await transport[Symbol.asyncDispose]()
  })
})

describe('an open connection', () => {
  test('F12: the end of the stream closes the connection: pending calls are OUTCOME_UNKNOWN, later ones did not run', async () => {
    const { end, opening } = await older(accepted)
    const { transport, heard } = await opening()
    transport.established('2024-11-05')
    await call(transport)
    end()
    expect(await heard.down).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringContaining('closed the event stream'),
    })
    expect(await thrown(call(transport, 2))).toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    expect(heard.downs).toBe(1)
  })

  test('security: an event that is too long closes the connection', async () => {
    const { server, say, opening } = await older(accepted)
    const { transport, heard } = await opening()
    transport.established('2024-11-05')
    say(`data: ${'x'.repeat(17 * 1024 * 1024)}\n\n`)
    expect((await heard.down).message).toContain('longer than 16 MiB')
    await transport[Symbol.asyncDispose]()
    await expect.poll(() => server.connections()).toBe(0)
  })

  test.each([
    [429, 'SERVER_UNAVAILABLE'],
    [307, 'SERVER_UNAVAILABLE'],
    [500, 'OUTCOME_UNKNOWN'],
  ])('F12: HTTP %i to a message is %s', async (status, code) => {
    const { opening } = await older((_, response) => response.writeHead(status).end())
    const { transport, heard } = await opening()
    transport.established('2024-11-05')
    expect(await thrown(call(transport))).toMatchObject({ code })
    expect(heard.downs).toBe(0)
  })

  test.each([
    [404, ''],
    [400, 'No transport found for sessionId'],
  ])('F12: HTTP %i with the body "%s" ends the connection: the request may be sent again', async (status, body) => {
    let forgotten = false
    const { say, opening } = await older((_, response) =>
      forgotten ? response.writeHead(status).end(body) : response.writeHead(202).end(),
    )
    const { transport, heard } = await opening()
    transport.established('2024-11-05')
    await call(transport)
    forgotten = true
    await expect(transport.send({ body: Buffer.from('{}') })).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    expect(transport.usable).toBe(true)
    expect(await thrown(call(transport, 2))).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      details: { sessionEnded: 'established', resendable: true },
    })
    expect(transport.usable).toBe(false)
    // A response that is already on its way still arrives.
    say(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result: {} })}\n\n`)
    expect(await heard.down).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect(heard.heard).toHaveLength(1)
    expect(await thrown(call(transport, 3))).toMatchObject({ code: 'SERVER_UNAVAILABLE', details: { unsent: true } })
  })

  test('F12: a session that is rejected before it was used once is not opened again for the same request', async () => {
    const { opening } = await older((_, response) => response.writeHead(404).end())
    const { transport } = await opening()
    transport.established('2024-11-05')
    const { details } = (await thrown(call(transport))) as ToolwayError
    expect([details.sessionEnded, details.resendable]).toEqual(['fresh', undefined])
  })

  test('F12, V4: a message that is not acknowledged times out', async () => {
    const { opening } = await older(() => {})
    const { transport } = await opening()
    transport.established('2024-11-05')
    expect(await thrown(call(transport))).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringContaining('(a fixed limit)'),
    })
  })

  test('security: disposing closes the stream without an event', async () => {
    const { server, opening } = await older(() => {})
    const { transport, heard } = await opening()
    const pending = thrown(call(transport))
    await server.until(({ method }) => method === 'POST')
    await Promise.all([transport[Symbol.asyncDispose](), transport[Symbol.asyncDispose]()])
    await expect.poll(() => server.connections()).toBe(0)
    expect(await pending).toBeInstanceOf(Error)
    expect(heard.downs).toBe(0)
  })
})
