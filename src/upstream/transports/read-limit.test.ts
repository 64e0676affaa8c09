import { brotliCompressSync, constants } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { result, stream } from '../../../tests/fixtures/rogue-http.ts'
import { call, opened, rogue, serving } from './http.fixture.ts'
import { ResponseHead, receiveDecoded } from './http-channel.ts'
import { createReadBudget, ReadLimit } from './read-limit.ts'
import { SseTransport } from './sse.ts'

const notification = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { data: 'again' } })
/** More notifications than are read in one second, and a response behind them. */
const flood = `data: ${notification}\n\n`.repeat(12_000)
const response = (id: unknown): string => `data: ${result(id)}\n\n`

test('G2: a source is paused beyond the limit, until the next second', () => {
  const clock = createManualClock()
  const calls: string[] = []
  const limit = new ReadLimit({ pause: () => calls.push('pause'), resume: () => calls.push('resume') }, clock)
  clock.advance(300)
  for (let line = 0; line < 60_000; line++) limit.line(Buffer.from('y'))
  expect(calls).toEqual([])
  for (let line = 0; line < 60_000; line++) limit.line(Buffer.from('y'))
  expect(calls).toEqual(['pause'])
  clock.advance(699)
  expect(calls).toEqual(['pause'])
  clock.advance(1)
  expect(calls).toEqual(['pause', 'resume'])
  limit.line(Buffer.from('y'))
  expect(clock.pending).toBe(0)
  for (let message = 0; message < 10_000; message++) limit.message(Buffer.from('{}'))
  limit.end()
  expect(calls).toEqual(['pause', 'resume', 'pause', 'resume'])
  expect(clock.pending).toBe(0)
})

test('G2: messages with many values are limited by their values, which cost more to parse than their bytes', () => {
  let paused = 0
  const source = { pause: () => void paused++, resume() {} }
  const limit = new ReadLimit(source, createManualClock())
  const dense = Buffer.from(`[${'0,'.repeat(99_999)}0]`)
  for (let message = 0; message < 2; message++) limit.message(dense)
  expect(paused).toBe(0)
  limit.message(dense)
  expect(paused).toBe(1)
})

describe('G2: the streams of one server have a common limit', () => {
  const setup = (count: number) => {
    const clock = createManualClock()
    const budget = createReadBudget()
    const paused = new Set<number>()
    const resumed: number[] = []
    const limits = Array.from({ length: count }, (_, stream) => {
      const source = {
        pause: () => void paused.add(stream),
        resume() {
          paused.delete(stream)
          resumed.push(stream)
        },
      }
      return new ReadLimit(source, clock, undefined, budget)
    })
    return { clock, paused, resumed, limits }
  }
  const megabyte = 1024 * 1024

  test('so many streams together are not read more than one', () => {
    const { paused, limits } = setup(64)
    for (const limit of limits) limit.bytes(megabyte)
    expect(paused.size).toBe(64 - 16)
  })

  test('a stream that brings little is read although others flood', () => {
    const { paused, limits } = setup(3)
    limits[0]?.bytes(17 * megabyte)
    limits[1]?.message(Buffer.from('{}'))
    limits[2]?.bytes(megabyte)
    expect([...paused]).toEqual([0, 2])
  })

  test('all continue, one after the other, and wait again if those before them bring too much', () => {
    const { clock, paused, resumed, limits } = setup(4)
    for (const limit of limits) limit.bytes(17 * megabyte)
    expect(paused.size).toBe(4)
    clock.advance(1_000)
    expect(resumed).toEqual([0])
    limits[0]?.bytes(17 * megabyte)
    clock.advance(990)
    expect(resumed).toEqual([0])
    for (let second = 0; second < 4; second++) clock.advance(1_000)
    expect(new Set(resumed).size).toBe(4)
    for (const limit of limits) limit.end()
    expect(clock.pending).toBe(0)
  })

  test('no stream waits much longer than the others, however many flood', () => {
    const { clock, paused, limits } = setup(51)
    const [modest, ...flooding] = limits
    let waitedMs = 0
    let longestMs = 0
    for (let ms = 0; ms < 10_000; ms += 10) {
      for (const [index, limit] of flooding.entries()) if (!paused.has(index + 1)) limit.bytes(megabyte / 4)
      if (!paused.has(0)) modest?.bytes(megabyte / 512)
      waitedMs = paused.has(0) ? waitedMs + 10 : 0
      longestMs = Math.max(longestMs, waitedMs)
      clock.advance(10)
    }
    expect(longestMs).toBeLessThan(2_000)
  })
})

describe('G2: a flood of notifications waits', () => {
  test("on the stream of a request, and the server's response follows", async () => {
    const clock = createManualClock()
    const found: unknown[] = []
    const { transport, heard } = await rogue(
      ({ method, message }, answer) => {
        if (method === 'GET') return answer.writeHead(405).end()
        return stream(answer).end(flood + response(message?.id))
      },
      { clock, exceeded: (limit) => found.push(limit.kind) },
    )
    await call(transport)
    await expect.poll(() => found).toEqual(['flood'])
    expect(heard.heard.length).toBeLessThan(9_000)
    while (heard.heard.length < 12_002) await clock.pass(500)
    expect(heard.heard.at(-1)).toMatchObject({ kind: 'response', exchange: 1 })
  })

  test.each([
    ['comments', ': still here\n'.repeat(80_000)],
    ['empty lines', '\n'.repeat(300_000)],
    ['events of another type', 'event: x\ndata: y\n\n'.repeat(20_000)],
    ['ids without data', 'id: 1\n\n'.repeat(40_000)],
  ])('also if it consists of %s, on the stream of a request', async (_what, noise) => {
    const clock = createManualClock()
    const found: unknown[] = []
    const { transport, heard } = await rogue(
      ({ method, message }, answer) => {
        if (method === 'GET') return answer.writeHead(405).end()
        return stream(answer).end(noise + response(message?.id))
      },
      { clock, exceeded: (limit) => found.push(limit.kind) },
    )
    await call(transport)
    // Another timer may be pending before the limit is exceeded, and time that passed then would raise it.
    await expect.poll(() => found).toEqual(['flood'])
    expect(heard.heard).toHaveLength(1)
    while (heard.heard.length < 2) await clock.pass(500)
    expect(found).toEqual(['flood'])
  })

  test("in an event without end on the server's own stream, which is reported", async () => {
    const clock = createManualClock()
    const found: unknown[] = []
    await rogue(
      ({ method }, answer) => {
        if (method !== 'GET') return answer.writeHead(202).end()
        const chunk = Buffer.alloc(1024 * 1024, 'x')
        const events = stream(answer)
        events.write('data: ')
        for (let written = 0; written < 40; written++) events.write(chunk)
      },
      { clock, exceeded: (limit) => found.push(limit.kind) },
    )
    await expect.poll(() => found).toEqual(['large-message', 'flood'])
  })

  test("on the server's own stream", async () => {
    const clock = createManualClock()
    const found: unknown[] = []
    const { heard } = await rogue(
      ({ method }, answer) =>
        method === 'GET' ? void stream(answer).write(flood + response(77)) : answer.writeHead(202).end(),
      { clock, exceeded: (limit) => found.push(limit.kind) },
    )
    await expect.poll(() => found).toEqual(['flood'])
    expect(heard.heard.length).toBeLessThan(9_000)
    while (heard.heard.length < 12_002) await clock.pass(500)
  })

  test('on the stream of the older transport', async () => {
    const clock = createManualClock()
    const server = await serving(({ method }, answer) => {
      if (method === 'GET') stream(answer).write(`event: endpoint\ndata: /message\n\n${flood}`)
      else answer.writeHead(202).end()
    })
    const { heard } = await opened(server.url, { clock }, SseTransport)
    await expect.poll(() => heard.heard.length).toBeGreaterThan(5_000)
    await expect.poll(() => clock.pending).toBeGreaterThan(0)
    expect(heard.heard.length).toBeLessThan(9_000)
    while (heard.heard.length < 12_000) await clock.pass(500)
  })
})

test('G2: a paused body is not decoded either, because a few bytes may become gigabytes', async () => {
  const decoded = Buffer.alloc(4 * 1024 * 1024, flood)
  const body = brotliCompressSync(decoded, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } })
  /** Reads the body, and pauses it after the first piece if asked to. */
  const read = (pauses: boolean) => {
    const ended = Promise.withResolvers<void>()
    const control = { pause() {}, resume() {}, abort() {} }
    const kept = { length: 0, ended: ended.promise, head: control }
    const headers = new Map(Object.entries({ 'content-type': 'text/event-stream', 'content-encoding': 'br' }))
    const head = new ResponseHead({ status: 200, headers, repeated: [] }, control)
    const reader = receiveDecoded(head, (head) => {
      kept.head = head
      const data = (chunk: Buffer) => {
        kept.length += chunk.length
        if (pauses && kept.length === chunk.length) head.pause()
      }
      return { data, end: ended.resolve, lost: ended.reject }
    })
    reader.data(body)
    reader.end()
    return kept
  }
  const paused = read(true)
  await read(false).ended
  expect(paused.length).toBeLessThan(decoded.length / 2)
  paused.head.resume()
  await paused.ended
  expect(paused.length).toBe(decoded.length)
})
