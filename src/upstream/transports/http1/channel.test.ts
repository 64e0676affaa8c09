import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, createServer as createRawServer, type Socket } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createManualClock } from '../../../../tests/fixtures/clock.ts'
import { selfSigned } from '../../../../tests/fixtures/self-signed.ts'
import { systemClock } from '../../../core/clock.ts'
import { type ChannelRequest, NoResponse, type ResponseHead, readWholeBody } from '../http-channel.ts'
import { noResponseError } from '../transport-errors.ts'
import { Http1Channel } from './channel.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** A server that counts its connections. */
async function serving(answer: Answer, options = {}) {
  const server: Server = createServer({ keepAliveTimeout: 60_000, ...options }, answer)
  const sockets: Socket[] = []
  server.on('connection', (socket) => sockets.push(socket))
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets }
}

function open(url: string, clock = systemClock): Http1Channel {
  const channel = new Http1Channel(url, clock)
  onTestFinished(() => channel[Symbol.asyncDispose]() as Promise<void>)
  return channel
}

const post = (body = 'ping', more: Partial<ChannelRequest> = {}): ChannelRequest => ({
  method: 'POST',
  path: '/mcp?a=b',
  headers: { 'content-type': 'text/plain' },
  body: Buffer.from(body),
  ...more,
})

/** Sends a request and reads the whole response. */
async function ask(channel: Http1Channel, request = post()): Promise<{ head: ResponseHead; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const read = (head: ResponseHead) =>
    readWholeBody(head, {
      maxLength: 4 << 20,
      done: (bytes) => resolve(bytes.toString()),
      lost: reject,
      tooLong: reject,
    })
  const head = await channel.request(request, read)
  return { head, text: await promise }
}

const echo: Answer = async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  response.setHeader('content-length', Buffer.concat(chunks).length)
  response.end(Buffer.concat(chunks))
}

describe('G1: HTTP to a server', () => {
  test('security: a server that keeps its connections busy gets at most maxConnections', async () => {
    const { url, sockets } = await serving((_, response) => response.writeHead(200).write('and so on'))
    await using channel = new Http1Channel(url, systemClock, { maxConnections: 2 })
    const endless = () => channel.request(post(), () => ({ data() {}, end() {}, lost() {} }))
    const [first] = [await endless(), await endless()]
    await expect(endless()).rejects.toMatchObject({ written: false, cause: { code: 'EMFILE' } })
    first.abort()
    expect((await endless()).status).toBe(200)
    expect(sockets).toHaveLength(3)
  })

  test('V4: a server that accepts and never finishes TLS fails with the limit', async () => {
    const server = createRawServer()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    onTestFinished(() => void server.close())
    const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    const clock = createManualClock()
    const accepted = once(server, 'connection')
    const failure = ask(open(origin, clock)).catch((error: unknown) => error)
    await accepted
    clock.advance(10_000)
    const thrown = await failure
    expect(thrown).toMatchObject({ written: false, cause: { code: 'ETIMEDOUT' } })
    expect(noResponseError({ name: 's', origin, established: false }, thrown)).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringContaining('within 10 s (a fixed limit)'),
    })
  })

  test('a request arrives as it was meant, and one connection serves one after another', async () => {
    const seen: IncomingMessage[] = []
    const { url, sockets } = await serving((request, response) => {
      seen.push(request)
      void echo(request, response)
    })
    const channel = open(url)
    for (const text of ['one', 'two', 'x'.repeat(200_000), 'y'.repeat(1 << 20), '']) {
      expect((await ask(channel, post(text))).text).toBe(text)
    }
    expect(sockets).toHaveLength(1)
    const [first] = seen
    expect([first?.method, first?.url, first?.headers.host]).toEqual(['POST', '/mcp?a=b', new URL(url).host])
    expect(first?.headers).toMatchObject({ 'content-type': 'text/plain', 'content-length': '3' })
  })

  test('as many connections as requests at a time, and no more', async () => {
    const { url, sockets } = await serving(echo)
    const channel = open(url)
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => ask(channel, post(`${round} ${n}`))))
      expect(answers.map(({ text }) => text)).toEqual(Array.from({ length: 8 }, (_, n) => `${round} ${n}`))
    }
    expect(sockets).toHaveLength(8)
  })

  test('F12: one that has been idle for long, or as long as its server waits, is not used again', async () => {
    const { url, sockets } = await serving(echo)
    const clock = createManualClock()
    const channel = open(url, clock)
    await ask(channel)
    clock.advance(14_000)
    await ask(channel)
    expect(sockets).toHaveLength(1)
    clock.advance(15_000)
    await ask(channel)
    expect(sockets).toHaveLength(2)
    const brief = await serving(echo, { keepAliveTimeout: 3_000 })
    const other = open(brief.url, clock)
    await ask(other)
    clock.advance(1_001)
    await ask(other)
    expect(brief.sockets).toHaveLength(2)
  })

  test('a connection that the server closes while it is idle is forgotten', async () => {
    const { url, sockets } = await serving(echo)
    const channel = open(url)
    await ask(channel)
    const [socket] = sockets
    socket?.destroy()
    await once(socket as Socket, 'close')
    // The client notices the closed connection only after a while.
    await expect.poll(async () => (await ask(channel).catch(() => undefined))?.text).toBe('ping')
    expect(sockets.length).toBeGreaterThan(1)
  })

  test('F12: a response that is refused may belong to a request that has run', async () => {
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n'
    for (const bytes of [
      `${head}Content-Length: 2\r\n\r\n`,
      `${head}A: b\nC: d\r\n\r\n`,
      'HTTP/1.1 200 OK\nA: b\r\n',
    ]) {
      const server = createRawServer((socket) => socket.on('error', () => {}).once('data', () => socket.write(bytes)))
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      onTestFinished(() => void server.close())
      const channel = open(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
      await expect(ask(channel)).rejects.toMatchObject({ written: true, cause: { code: 'BAD_HTTP' } })
    }
  })

  test('F12: a server that is not there was surely not written to, one that breaks off may have been', async () => {
    const gone = await serving(echo)
    const { url } = gone
    const rude = await serving((_, response) => response.socket?.destroy())
    const closed = createRawServer()
    await new Promise<void>((listening) => closed.listen(0, '127.0.0.1', listening))
    const { port } = closed.address() as AddressInfo
    await new Promise((done) => closed.close(done))
    await expect(ask(open(`http://127.0.0.1:${port}`))).rejects.toMatchObject({ written: false })
    await expect(ask(open(rude.url))).rejects.toMatchObject({ written: true })
    const bad = post('ping', { headers: { 'x-evil': 'a\r\nx-other: b' } })
    await expect(ask(open(url), bad)).rejects.toSatisfy((error) => error instanceof NoResponse && !error.written)
  })

  test('F10: an aborted request closes its connection, and no other', async () => {
    const { url, sockets } = await serving((request, response) => {
      if (request.headers['x-wait'] === undefined) void echo(request, response)
    })
    const channel = open(url)
    const controller = new AbortController()
    const waiting = ask(channel, post('ping', { headers: { 'x-wait': '1' }, signal: controller.signal }))
    await expect.poll(() => sockets.length).toBe(1)
    const [held] = sockets
    await ask(channel)
    controller.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    if (!held?.destroyed) await once(held as Socket, 'close')
    expect((await ask(channel)).text).toBe('ping')
    expect(sockets).toHaveLength(2)
  })

  test('F10: aborting after the end does not affect the next request', async () => {
    const { url, sockets } = await serving(echo)
    const channel = open(url)
    const controller = new AbortController()
    const { head } = await ask(channel, post('ping', { signal: controller.signal }))
    const next = ask(channel)
    controller.abort()
    head.abort()
    expect((await next).text).toBe('ping')
    expect(sockets).toHaveLength(1)
  })

  test('an incomplete response is an error', async () => {
    const { url } = await serving((_, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('half', () => response.socket?.destroy())
    })
    await expect(ask(open(url))).rejects.toThrow('closed')
  })

  test('unsolicited bytes close the connection and are dropped', async () => {
    const server = createRawServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil')
      })
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    onTestFinished(() => void server.close())
    const channel = open(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    expect((await ask(channel)).text).toBe('ok')
    expect((await ask(channel)).text).toBe('ok')
  })

  test('B6: TLS connections are read the same way, and untrusted certificates are rejected', async () => {
    const pair = await selfSigned()
    const server = createSecureServer(pair, echo)
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    await expect(ask(open(url))).rejects.toMatchObject({
      written: false,
      cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
    })
    const usual = getCACertificates('default')
    setDefaultCACertificates([...usual, pair.cert])
    onTestFinished(() => setDefaultCACertificates(usual))
    const channel = open(url)
    for (const text of ['one', 'x'.repeat(1 << 20), 'two']) expect((await ask(channel, post(text))).text).toBe(text)
  })

  test('a channel that is closed closes everything, at once', async () => {
    const { url, sockets } = await serving(() => {})
    const channel = new Http1Channel(url, systemClock)
    const waiting = ask(channel)
    await expect.poll(() => sockets.length).toBe(1)
    await channel[Symbol.asyncDispose]()
    await expect(waiting).rejects.toThrow(NoResponse)
    await expect(ask(channel)).rejects.toThrow(NoResponse)
  })
})
