import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { json, result, type Script, stream } from '../../../tests/fixtures/rogue-http.ts'
import { call, onPost, opened, rogue, serving, thrown } from './http.fixture.ts'
import { ask } from './receiver.fixture.ts'

describe('connections that break', () => {
  test('E1: a refused connection is SERVER_UNAVAILABLE, without the secrets of the address', async () => {
    const server = await serving(() => {})
    await server[Symbol.asyncDispose]()
    const { transport } = await opened(`${server.url}?key=secret`)
    const error = await thrown(call(transport))
    expect(error).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringMatching(/Could not reach rogue at .*ECONNREFUSED.*mcpServers\.rogue\.url/),
      details: { unsent: true },
    })
    expect(error.message).not.toContain('secret')
  })

  test('F12: a connection that is reset after the request was written is OUTCOME_UNKNOWN', async () => {
    const { transport } = await rogue(onPost((_, _response, socket) => socket.resetAndDestroy()))
    expect(await thrown(call(transport))).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringContaining('closed the connection'),
    })
  })

  test('F12: during the handshake that is SERVER_UNAVAILABLE, since no call was sent', async () => {
    const server = await serving((_, _response, socket) => socket.resetAndDestroy())

    const { transport } = await opened(server.url)
    expect(await thrown(call(transport))).toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  })

  test('E1: a server that does not use HTTP is an error, not a crash', async () => {
    const open = new Set<Socket>()
    const server = createServer((socket) => {
      open.add(socket)
      socket.on('error', () => {}).on('data', () => socket.write('SSH-2.0-OpenSSH\r\n'))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => {
      for (const socket of open) socket.destroy()
      server.close()
    })
    const { transport } = await opened(`http://127.0.0.1:${(server.address() as { port: number }).port}/`)
    expect(await thrown(call(transport))).toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  })

  test.each([
    ['a JSON answer', 'application/json', '{"jsonrpc":"2.0","id":1,"res'],
    ['a stream without event ids', 'text/event-stream', 'data: {"jsonrpc":"2.0","method":"x"}\n\n'],
  ])('F12: %s that breaks off fails that call alone', async (_, type, part) => {
    const { transport, heard } = await rogue(
      onPost((got, response, socket) => {
        if (got.message?.id === 2) return json(response, result(2))
        response.writeHead(200, { 'content-type': type }).write(part, () => socket.destroySoon())
      }),
    )
    await call(transport, 1)
    expect(await heard.failure(1)).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await ask(transport, heard, 2, 'ping')
    expect(heard.downs).toBe(0)
  })

  test.each([
    ['nothing', ''],
    ['garbage', 'oops'],
    ['a notification', '{"jsonrpc":"2.0","method":"x"}'],
  ])('F12: %s where an answer should be fails that call', async (_, text) => {
    const { transport, heard } = await rogue(onPost((_, response) => json(response, text)))
    await call(transport)
    expect(await heard.failure(1)).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  })

  test.each(['application/json', 'text/event-stream'])('security: an endless answer as %s is cut off', async (type) => {
    const { server, transport, heard } = await rogue(
      onPost((_, response) => {
        response.writeHead(200, { 'content-type': type })
        response.write('data: {"jsonrpc":"2.0","id":1,"result":{"text":"')
        const chunk = 'x'.repeat(1024 * 1024)
        const more = () => {
          while (!response.destroyed && response.write(chunk));
        }
        response.on('drain', more)
        more()
      }),
    )
    await call(transport)
    expect((await heard.failure(1)).message).toMatch(/16 MiB/)
    await transport[Symbol.asyncDispose]()
    await expect.poll(() => server.connections()).toBe(0)
  })
})

describe('streams that are picked up again', () => {
  const resumable = (resumed: Script, start = 'id: e1\nretry: 10\ndata:\n\n') =>
    rogue((got, response, socket) => {
      if (got.method === 'GET' && !got.headers['last-event-id']) return response.writeHead(405).end()
      if (got.method === 'GET') return resumed(got, response, socket)
      return stream(response).end(start)
    })

  test('F12: a stream that ends before the answer is continued after its last event', async () => {
    let tries = 0
    const { server, transport, heard } = await resumable((_, response) => {
      if (++tries === 1) return response.writeHead(503).end()
      if (tries === 2)
        return stream(response).end('id: e2\ndata: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n')
      return stream(response).end(`id: e3\ndata: ${result(1)}\n\n`)
    })
    await call(transport)
    expect(await heard.until(({ kind, exchange }) => kind === 'response' && exchange === 1)).toMatchObject({ id: 1 })
    const ids = server.got.map(({ headers }) => headers['last-event-id']).filter(Boolean)
    expect(ids).toEqual(['e1', 'e1', 'e2'])
    expect(server.got.at(-1)?.headers).toMatchObject({ 'mcp-session-id': 'session-1', accept: 'text/event-stream' })
  })

  test('F12: attempts that bring nothing are bounded', async () => {
    const { server, transport, heard } = await resumable((_, response) => stream(response).end())
    await call(transport)
    expect(await heard.failure(1)).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringContaining('could not be reached again'),
    })
    expect(server.got.filter(({ headers }) => headers['last-event-id'])).toHaveLength(5)
  })

  test('F12: a server that will not continue fails the call at once', async () => {
    const { server, transport, heard } = await resumable((_, response) => response.writeHead(400).end())
    await call(transport)
    expect((await heard.failure(1)).message).toContain('HTTP 400')
    expect(server.got.filter(({ headers }) => headers['last-event-id'])).toHaveLength(1)
  })

  test('F10: the stream of a cancelled call is not resumed', async () => {
    const controller = new AbortController()
    const closed = Promise.withResolvers<void>()
    const { server, transport, heard } = await resumable((_, response) => {
      stream(response).once('close', () => closed.resolve())
      controller.abort()
    })
    await call(transport, 1, controller.signal)
    await closed.promise
    await transport[Symbol.asyncDispose]()
    expect(server.got.filter(({ headers }) => headers['last-event-id'])).toHaveLength(1)
    expect(heard.failures.size).toBe(0)
  })
})
