import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { settledHeap } from '../../../tests/fixtures/memory.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { openClient } from './client.fixture.ts'
import { echo, type Handle, keeper, openTaken, sendWhole } from './connections.fixture.ts'
import { post } from './requests.fixture.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})
const take = async (handle: Handle, leaving?: () => boolean) => open.use(await openTaken(handle, leaving))
const clientOf = async (port: number) => open.use(await openClient(port))

/** A client with a pending request, and both ends of its connection. */
async function underWay(request = post(), leaving?: () => boolean) {
  const kept = keeper()
  const taken = await take(kept.handle, leaving)
  const client = await clientOf(taken.port)
  client.send(request)
  await until(() => kept.asked.length === 1, { what: 'the request' })
  const [one] = kept.asked
  return { ...kept, ...taken, client, one: one as NonNullable<typeof one>, socket: taken.sockets[0] as Socket }
}

const stream = { 'Content-Type': 'text/event-stream' }
/** A request that node:http reads. */
const odd = (request: string) => request.replace('Host', 'Te: x\r\nHost')

describe('B2: a client that disconnects is noticed by its response', () => {
  test.each([
    ['closes', (socket: Socket) => socket.destroy()],
    ['resets', (socket: Socket) => socket.resetAndDestroy()],
    // Like node:http, which treats a half-closed client as disconnected.
    ['half-closes', (socket: Socket) => socket.end()],
  ])('one that %s before its answer', async (_, go) => {
    for (const [request, ...behind] of [
      [post()],
      [odd(post())],
      [post() + post()],
      [post(), post(), post(), odd(post())],
    ]) {
      const { client, one, asked, socket } = await underWay(request)
      for (const more of behind) {
        const read = socket.bytesRead
        client.send(more)
        await until(() => socket.bytesRead > read, { what: 'the next request' })
      }
      go(client.socket)
      await until(() => one.gone, { what: 'the disconnect' })
      expect(one.response.destroyed && one.response.closed).toBe(true)
      // Writing after the close is not an error.
      one.response.writeHead(200, { 'Content-Length': 2 }).end('{}')
      await turn()
      expect([one.gone, asked.length]).toEqual([1, 1])
    }
  })

  test.each([
    ['closes', (socket: Socket) => socket.destroy()],
    ['resets', (socket: Socket) => socket.resetAndDestroy()],
    ['half-closes', (socket: Socket) => socket.end()],
  ])('one that %s in the middle of it', async (_, go) => {
    for (const request of [post(), odd(post())]) {
      const { client, one } = await underWay(request)
      one.response.on('error', () => {})
      one.response.writeHead(200, stream).write('data: 1\n\n')
      await until(() => client.unread.includes('data: 1'), { what: 'the beginning' })
      go(client.socket)
      await until(() => one.gone, { what: 'the disconnect' })
      for (let count = 0; count < 3; count++) one.response.write('data: 2\n\n')
      one.response.end()
      await turn()
      expect(one.gone).toBe(1)
    }
  })

  test('one that half-closes behind its requests is answered what can be answered at once', async () => {
    const { port } = await take((_, response) => void sendWhole(response))
    const client = await clientOf(port)
    client.socket.end(post() + post() + post())
    for (let count = 0; count < 3; count++) expect((await client.answer()).status).toBe(200)
    expect(await client.closed()).toBe('')
  })

  test('a response on a closed connection is not an error', async () => {
    for (const tell of [sendWhole, (response: ServerResponse) => response.writeHead(200).end('{}')]) {
      const { client, one, socket } = await underWay()
      socket.end()
      tell(one.response)
      expect(await client.closed()).toBe('')
      await until(() => one.gone, { what: 'the end' })
      expect(one.gone).toBe(1)
    }
  })

  test('an answer that is given up closes the connection, once', async () => {
    for (const begun of [false, true]) {
      const { client, one } = await underWay()
      if (begun) one.response.writeHead(200, stream).flushHeaders()
      one.response.destroy()
      one.response.destroy(new Error('again'))
      await client.closed()
      await until(() => one.gone, { what: 'the disconnect' })
      expect(one.gone).toBe(1)
      expect(sendWhole(one.response)).toBe(false)
    }
  })
})

describe('B7: idle connections', () => {
  test('a connection that sends no request is closed', async () => {
    const { port, sockets } = await take(echo)
    const client = await clientOf(port)
    await until(() => sockets.length === 1, { what: 'the connection' })
    expect(sockets[0]?.timeout).toBe(10_000)
    sockets[0]?.emit('timeout')
    expect(await client.closed()).toBe('')
  })

  test('a connection may be idle a little longer than its Keep-Alive header says', async () => {
    const { client, one, socket } = await underWay()
    sendWhole(one.response)
    expect((await client.answer()).headers['Keep-Alive']).toBe('timeout=65')
    expect(socket.timeout).toBe(66_000)
    socket.emit('timeout')
    expect(await client.closed()).toBe('')
  })

  test('a connection that waits for a response is not closed', async () => {
    const { client, one, socket } = await underWay()
    socket.emit('timeout')
    sendWhole(one.response)
    expect((await client.answer()).status).toBe(200)
  })

  test('a client that does not read its response is disconnected if a timeout is set or the response is complete', async () => {
    for (const end of [false, true]) {
      const { client, one, socket } = await underWay()
      client.socket.pause()
      one.response.writeHead(200, stream).write('x'.repeat(16 * 1024 * 1024))
      socket.emit('timeout')
      expect(socket.destroyed).toBe(false)
      if (end) one.response.end()
      else one.response.setTimeout(60_000)
      expect(socket.timeout).toBe(end ? 66_000 : 60_000)
      socket.emit('timeout')
      await until(() => one.gone, { what: 'the end' })
    }
  })

  test('a timeout applies to one response', async () => {
    const { client, one, socket, asked } = await underWay()
    one.response.setTimeout(60_000)
    expect(socket.timeout).toBe(60_000)
    one.response.writeHead(200, stream).end()
    expect((await client.answer()).status).toBe(200)
    await until(() => one.gone, { what: 'the end' })
    expect(socket.timeout).toBe(66_000)
    client.send(post())
    await until(() => asked.length === 2, { what: 'the next' })
    socket.emit('timeout')
    sendWhole(asked[1]?.response)
    expect((await client.answer()).status).toBe(200)
  })
})

describe('B7: closing connections', () => {
  test('a response with Connection: close is the last one, and requests behind it are not started', async () => {
    const { client, one, asked } = await underWay(post('1') + post('2'))
    one.response.writeHead(200, { Connection: 'close', 'Content-Length': 2 }).end('{}')
    expect((await client.answer()).headers).toMatchObject({ Connection: 'close' })
    expect(await client.closed()).toBe('')
    expect(asked).toHaveLength(1)
  })

  test('a connection that is to be closed gets Connection: close with its response before that', async () => {
    for (const end of [sendWhole, (response: Parameters<typeof sendWhole>[0]) => response?.end('{}')]) {
      let leaving = false
      const { client, one, asked, body } = await underWay(post('1'), () => leaving)
      // The head of this one has been written: whoever has read it may ask again.
      one.response.writeHead(200, stream).flushHeaders()
      leaving = true
      one.response.end()
      expect((await client.answer()).headers.Connection).toBe('keep-alive')
      client.send(post('2') + post('3'))
      await until(() => asked.length === 2, { what: 'the next' })
      expect(body(1)).toBe('2')
      if (!end(asked[1]?.response)) asked[1]?.response.writeHead(200, { 'Content-Length': 2 }).end('{}')
      const { headers } = await client.answer()
      expect([headers.Connection, headers['Keep-Alive']]).toEqual(['close', undefined])
      expect(await client.closed()).toBe('')
      expect(asked).toHaveLength(2)
    }
  })

  test('an idle connection is closed, one with a request is not, and in the end all are', async () => {
    const { asked, handle } = keeper()
    const { port, connections, sockets } = await take(handle)
    const [idle, busy, fresh, handedOn] = [
      await clientOf(port),
      await clientOf(port),
      await clientOf(port),
      await clientOf(port),
    ] as const
    idle.send(post())
    await until(() => asked.length === 1, { what: 'the first' })
    sendWhole(asked[0]?.response)
    await idle.answer()
    busy.send(post())
    handedOn.send(odd(post()))
    await until(() => asked.length === 3 && sockets.length === 4, { what: 'the others' })
    connections.drain.start()
    fresh.send(post())
    await until(() => asked.length === 4, { what: 'the last' })
    expect(await idle.closed()).toBe('')
    for (const { response } of asked.slice(1, 3)) response.writeHead(200, { 'Content-Length': 2 }).end('{}')
    expect((await busy.answer()).status).toBe(200)
    expect((await handedOn.answer()).status).toBe(200)
    await Promise.all([busy.closed(), handedOn.closed()])
    expect(fresh.socket.closed).toBe(false)
    connections.drain.closeAll()
    await fresh.closed()
  })
})

describe('F14: nothing is left behind', () => {
  const counts = (socket: Socket) => socket.eventNames().map((name) => [name, socket.listenerCount(name)])

  test('hundreds of requests leave no listener on the socket, nor anything that holds an answer', async () => {
    const answers: WeakRef<object>[] = []
    const { port, sockets } = await take((request, response) => {
      answers.push(new WeakRef(response))
      echo(request, response)
    })
    const client = await clientOf(port)
    const round = async () => {
      // As many as there are ways to answer.
      for (let length = 0; length < 6; length++) await client.ask(post('x'.repeat(length)))
      await turn()
    }
    await round()
    const before = counts(sockets[0] as Socket)
    for (let rounds = 0; rounds < 50; rounds++) await round()
    expect(counts(sockets[0] as Socket)).toEqual(before)
    await settledHeap()
    expect(answers.filter((answer) => answer.deref() !== undefined).length).toBeLessThan(10)
    expect(client.socket.closed).toBe(false)
  })

  test('a connection that is handed on has node:http’s own listeners, and no more', async () => {
    const { port, sockets, server } = await take(echo)
    const direct = await clientOf(port)
    await direct.ask(odd(post()))
    const later = await clientOf(port)
    for (let length = 0; length < 6; length++) await later.ask(post('x'.repeat(length)))
    await later.ask(odd(post()))
    expect(counts(sockets[1] as Socket).toSorted()).toEqual(counts(sockets[0] as Socket).toSorted())
    expect(sockets[1]?.timeout).toBe(sockets[0]?.timeout)
    server.closeIdleConnections()
    await Promise.all([direct.closed(), later.closed()])
  })
})
