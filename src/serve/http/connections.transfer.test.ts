import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import type { HandedConnection, Membership } from '../../core/cluster.ts'
import { openTestServer, token } from './server.fixture.ts'

const requestTo = (port: number) =>
  [
    ...['POST /mcp HTTP/1.1', `Host: 127.0.0.1:${port}`, `Authorization: Bearer ${token}`, 'Mcp-Session-Id: owner.1'],
    ...['Content-Type: application/json', 'Content-Length: 40', '', '{"jsonrpc":"2.0","id":1,"method":"ping"}'],
  ].join('\r\n')

/** A worker that offers connections to another one, which answers what is forwarded. */
async function openWorker(transferConnection: (replica: string, connection: HandedConnection) => Promise<boolean>) {
  const open = new AsyncDisposableStack()
  const forwarded: string[] = []
  const owner = createServer(async (request, response) => {
    forwarded.push(await text(request))
    response.end('forwarded')
  }).listen(0, '127.0.0.1')
  await once(owner, 'listening')
  open.defer(() => void owner.close().closeAllConnections())
  const address = `http://127.0.0.1:${(owner.address() as AddressInfo).port}`
  const addressOf = (replica: string) => (replica === 'owner' ? address : undefined)
  const membership = {
    self: 'self',
    addressOf,
    transferConnection,
    sign: (note: string) => note,
    verify: () => undefined,
  }
  const { server } = open.use(await openTestServer({ membership: membership as unknown as Membership }))
  const socket = connect(server.port, '127.0.0.1').on('error', () => {})
  open.defer(() => void socket.destroy())
  const request = requestTo(server.port)
  return { socket, request, forwarded, [Symbol.asyncDispose]: () => open.disposeAsync() }
}

test('B10: a refused connection stays, and its requests are forwarded', async () => {
  const offered: string[] = []
  await using worker = await openWorker(async (replica, { bytes }) => offered.push(`${replica} ${bytes}`) === 0)
  for (let round = 1; round <= 3; round++) {
    worker.socket.write(worker.request)
    expect(String(await once(worker.socket, 'data'))).toContain('forwarded')
    expect(worker.forwarded).toHaveLength(round)
  }
  expect(offered).toEqual(Array(3).fill(`owner ${worker.request}`))
})

test('B10: after a connection has been handed over, its request is not forwarded, and its bytes are not read', async () => {
  const { promise: isOffered, resolve: offer } = Promise.withResolvers<void>()
  const { promise: answer, resolve: take } = Promise.withResolvers<boolean>()
  await using worker = await openWorker(() => {
    offer()
    return answer
  })
  worker.socket.write(worker.request)
  await isOffered
  worker.socket.write(worker.request)
  await new Promise((resolve) => setTimeout(resolve, 50))
  take(true)
  await new Promise((resolve) => worker.socket.once('close', resolve))
  expect(worker.forwarded).toEqual([])
})

test('B10: a connection is not offered while a pipelined request waits', async () => {
  let offers = 0
  await using worker = await openWorker(async () => ++offers < 0)
  worker.socket.resume().write(worker.request + worker.request)
  await expect.poll(() => worker.forwarded).toHaveLength(2)
  expect(offers).toBe(1)
})
