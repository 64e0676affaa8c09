import { once } from 'node:events'
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { settledBuffers } from '../../../tests/fixtures/memory.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { type Client, openClient } from './client.fixture.ts'
import { createTestServer, echo, type Handle, keeper, openTaken, sendWhole } from './connections.fixture.ts'
import { Connections, holdConnections } from './connections.ts'
import { lastRequest, oddRequest, post, wholeRequest } from './requests.fixture.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})
const take = async (handle: Handle, leaving?: () => boolean) => open.use(await openTaken(handle, leaving))
const clientOf = async (port: number) => open.use(await openClient(port))

const sized = (body: string) => ({ 'Content-Length': body.length })
const chunked = 'POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n'

describe('F14: any input, however it is split, gets the responses of node:http', () => {
  /** A socket without a network, on which every piece comes by itself. */
  class Wire extends Duplex {
    said = ''
    timeout = 0
    override _read() {}
    override _write(bytes: Buffer, _encoding: string, written: () => void) {
      this.said += bytes.toString('latin1')
      written()
    }
    setNoDelay() {}
    setTimeout(ms: number) {
      this.timeout = ms
    }
    destroySoon() {
      this.end(() => this.destroy())
    }
  }

  async function said(server: Server, pieces: readonly string[]): Promise<string> {
    const wire = new Wire()
    server.emit('connection', wire)
    for (const piece of pieces) {
      wire.push(Buffer.from(piece, 'latin1'))
      await turn()
    }
    if (!wire.closed) await once(wire, 'close')
    return wire.said.replace(/^Date: .*$/gm, 'Date: now')
  }

  test('byte for byte', async () => {
    const request = fc.oneof({ weight: 3, arbitrary: wholeRequest }, oddRequest)
    const conversation = fc.tuple(fc.array(request, { maxLength: 5 }), lastRequest)
    const cuts = fc.array(fc.nat(1_000), { maxLength: 8 })
    const alone = createTestServer(echo)
    const before = createTestServer(echo)
    const incoming = holdConnections(before)
    new Connections({ server: before, incoming, path: '/mcp', handle: echo, leaving: () => false })
    await fc.assert(
      fc.asyncProperty(conversation, cuts, async ([requests, last], cuts) => {
        const text = requests.join('') + last
        const places = [0, ...cuts.map((cut) => cut % text.length).toSorted((a, b) => a - b), text.length]
        const pieces = places.slice(1).map((place, index) => text.slice(places[index], place))
        expect(await said(before, pieces)).toBe(await said(alone, pieces))
      }),
      runs(20, 3_000),
    )
  })

  test('on real sockets, cut at every byte', async () => {
    const { port, sockets } = await take(echo)
    const request = post('{"id":1}', ['Accept: */*'])
    const whole = await (await clientOf(port)).ask(request)
    const cuts = Array.from({ length: request.length - 1 }, (_, index) => index + 1)
    const clients: Client[] = []
    for (const cut of cuts) {
      const client = await clientOf(port)
      client.send(request.slice(0, cut))
      clients.push(client)
    }
    await until(() => cuts.every((cut) => sockets[cut]?.bytesRead === cut), { what: 'the first pieces' })
    for (const [index, cut] of cuts.entries()) {
      const { status, body } = (await clients[index]?.ask(request.slice(cut))) ?? {}
      expect([status, body]).toEqual([200, whole.body])
    }
  })

  test('whole requests, then a stream, then any other request, all on one connection', async () => {
    const { port, sockets } = await take(echo)
    const client = await clientOf(port)
    const streamed = post('12345')
    expect((await client.ask(streamed)).headers).toMatchObject({ 'Transfer-Encoding': 'chunked' })
    for (let round = 0; round < 3; round++) {
      for (const length of [0, 1, 2, 3, 4, 5]) {
        const { status, body } = await client.ask(post('x'.repeat(length)))
        expect(status).toBe([200, 200, 200, 202, 204, 200][length])
        if (status === 200) expect(JSON.parse(body)).toMatchObject({ body: '78'.repeat(length) })
      }
    }
    for (let round = 0; round < 2; round++) {
      expect(JSON.parse((await client.ask(chunked)).body)).toMatchObject({ method: 'POST', body: '78' })
      expect(JSON.parse((await client.ask('GET /mcp HTTP/1.1\r\n\r\n')).body)).toMatchObject({ method: 'GET' })
      expect((await client.ask(streamed)).headers).toMatchObject({ 'Transfer-Encoding': 'chunked' })
      expect((await client.ask(post('{}', ['Expect: 100-continue']))).status).toBe(100)
      expect(JSON.parse((await client.answer()).body)).toMatchObject({ body: '7b7d' })
    }
    expect((await client.ask('POST /mcp HTTP/1.0\r\nContent-Length: 1\r\n\r\nx')).headers.Connection).toBe('close')
    expect(await client.closed()).toBe('')
    expect(sockets).toHaveLength(1)
  })
})

describe('B7: one request at a time', () => {
  test('those that come ahead wait their turn, and are answered in order', async () => {
    const { asked, handle, body } = keeper()
    const { port } = await take(handle)
    const client = await clientOf(port)
    client.send(post('"a"') + post('"b"'))
    client.send(post('"c"') + chunked)
    for (const [index, expected] of ['"a"', '"b"', '"c"'].entries()) {
      await until(() => asked.length > index, { what: 'the next request' })
      await turn()
      expect(asked).toHaveLength(index + 1)
      expect(body(index)).toBe(expected)
      sendWhole(asked[index]?.response, expected)
      expect((await client.answer()).body).toBe(expected)
    }
    await until(() => asked.length === 4, { what: 'the odd one' })
    asked[3]?.response.end('last')
    expect((await client.answer()).body).toBe('last')
    expect(asked.map(({ gone }) => gone)).toEqual([1, 1, 1, 1])
  })

  test.each([
    ['whole', (response: ServerResponse, body: string) => void sendWhole(response, body)],
    ['by node:http', (response: ServerResponse, body: string) => void response.writeHead(200, sized(body)).end(body)],
  ])(
    'a client that sends requests and does not read costs little and delays no other, where responses are sent %s',
    async (_, tell) => {
      let asked = 0
      const answer = 'x'.repeat(60_000)
      const { port, sockets } = await take((_, response) => {
        asked++
        tell(response, answer)
      })
      const before = await settledBuffers()
      const [client, other] = [await clientOf(port), await clientOf(port)]
      client.socket.pause()
      for (let sent = 0; sent < 400; sent += 10) {
        client.send(post().repeat(10))
        for (let turns = 0; turns < 5; turns++) await turn()
      }
      const [socket] = sockets as [Socket]
      let stopped = -1
      const isStopped = async () => {
        stopped = asked
        for (let turns = 0; turns < 20; turns++) await turn()
        return stopped === asked && socket.writableLength > 0
      }
      await until(isStopped, { what: 'the server to stop' })
      for (let round = 0; round < 20; round++) expect((await other.ask(post())).status).toBe(200)
      expect(asked).toBe(stopped + 20)
      expect(asked).toBeLessThan(300)
      expect(socket.writableLength).toBeLessThan(128 * 1024)
      expect((await settledBuffers(before + 1024 * 1024)) - before).toBeLessThan(1024 * 1024)
      client.socket.resume()
      for (let index = 0; index < 400; index++) expect((await client.answer()).body).toHaveLength(60_000)
      expect(asked).toBe(420)
    },
  )

  test('an answer of many megabytes is sent as it is read, and the next request is answered behind it', async () => {
    const large = 'x'.repeat(8 * 1024 * 1024)
    const { port } = await take((request, response) => {
      if (request.body?.length === 1) sendWhole(response)
      else response.writeHead(200, sized(large)).end(large)
    })
    const client = await clientOf(port)
    client.send(post('{}') + post('1') + post('{}') + post('1'))
    expect((await client.answer()).body).toHaveLength(large.length)
    expect((await client.answer()).body).toBe('{}')
    expect((await client.answer()).body).toHaveLength(large.length)
    expect((await client.answer()).body).toBe('{}')
  })

  test('the server takes no more connections than it may', async () => {
    const { port, server } = await take(echo)
    server.maxConnections = 2
    const [first, second, third] = [await clientOf(port), await clientOf(port), await clientOf(port)] as const
    expect(await third.closed()).toBe('')
    first.socket.destroy()
    expect((await second.ask(post())).status).toBe(200)
    await until(
      async () => {
        const fourth = await clientOf(port)
        return fourth.ask(post()).then(
          ({ status }) => status === 200,
          () => false,
        )
      },
      { what: 'a place' },
    )
  })
})
