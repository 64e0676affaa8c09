import type { ServerResponse } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { openClient } from './client.fixture.ts'
import { openTaken, sendWhole } from './connections.fixture.ts'
import { post } from './requests.fixture.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})

const get = 'GET / HTTP/1.1\r\n\r\n'
const empty = (response: ServerResponse) => void response.writeHead(200, { 'Content-Length': 0 }).end()

test('V6: of the requests that a connection pipelines, one begins in each iteration of the event loop', async () => {
  const begun: number[] = []
  let iteration = 0
  const server = await openTaken((_, response) => {
    begun.push(iteration)
    sendWhole(response)
  })
  open.use(server)
  const client = open.use(await openClient(server.port))
  const counting = (async () => {
    for (; begun.length < 100; iteration++) await turn()
  })()
  client.send(post().repeat(100))
  for (let count = 0; count < 100; count++) await client.answer()
  await counting
  expect(new Set(begun).size).toBe(100)
})

test('V6: node:http begins a few pipelined requests, and the next ones when they are answered', async () => {
  const waiting: ServerResponse[] = []
  let handled = 0
  const server = await openTaken((_, response) => {
    handled++
    waiting.push(response)
  })
  open.use(server)
  const client = open.use(await openClient(server.port))
  const request = `GET / HTTP/1.1\r\nX: ${'x'.repeat(300)}\r\n\r\n`
  client.send(request.repeat(20))
  for (let answered = 0; answered < 20; ) {
    while (waiting.length === 0) await turn()
    expect(handled - answered).toBeLessThanOrEqual(8)
    for (const response of waiting.splice(0)) {
      empty(response)
      answered++
      expect((await client.answer()).status).toBe(200)
    }
  }
})

test('V6: a connection that pipelines thousands of requests costs little, and is closed after the first are answered', async () => {
  let emitted = 0
  let handled = 0
  const server = await openTaken((_, response) => {
    handled++
    setImmediate(empty, response)
  })
  open.use(server)
  server.server.on('request', () => emitted++)
  const client = open.use(await openClient(server.port))
  client.send(get.repeat(10_000))
  await client.closed()
  expect(handled).toBe(8)
  expect(emitted).toBeLessThan(100)
})
