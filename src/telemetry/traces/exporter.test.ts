import { afterEach, describe, expect, test, vi } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { startProxy } from '../../../tests/fixtures/proxy.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { createExporter, type Exporter } from './exporter.ts'
import { createOtlpClient } from './otlp-client.ts'
import { plainDelivery, type Receiver, startReceiver, taken } from './receiver.fixture.ts'

const open = new Set<AsyncDisposable>()

afterEach(async () => {
  for (const one of open) await one[Symbol.asyncDispose]()
  open.clear()
})

async function exporting() {
  const receiver: Receiver = await startReceiver()
  const clock = createManualClock()
  const log = createKeptLog()
  const exporter: Exporter = createExporter({
    post: createOtlpClient({
      ...{ url: new URL(`${receiver.url}/v1/traces`), headers: { 'api-key': 'hunter2' } },
      delivery: plainDelivery,
      clock,
    }),
    encode: (spans) => Buffer.from(spans.join(',')),
    receiver: 'the receiver',
    clock,
    log,
    random: () => 1,
  })
  open.add(receiver)
  /** When each batch came. */
  const at: number[] = []
  const start = clock.now()
  const answers: Receiver['answers'] = (next) =>
    receiver.answers((number) => {
      at.push(clock.now() - start)
      return next(number)
    })
  return {
    receiver,
    exporter,
    clock,
    log,
    at,
    answers,
    push: (...names: string[]) => exporter.push(names.map((name) => `span ${name}`)),
    /** Lets time pass until something has happened. */
    passing: (condition: () => unknown, what: string) =>
      until(
        async () => {
          await clock.pass(500)
          return condition()
        },
        { what },
      ),
    arrived: (count: number) => until(() => receiver.received.length >= count, { what: `batch ${count}` }),
  }
}

const names = (count: number, prefix = '') => Array.from({ length: count }, (_, index) => `${prefix}${index}`)

describe('F16: spans leave in batches', () => {
  test('a second after the first of them, in protobuf', async () => {
    const { push, clock, receiver, exporter, arrived } = await exporting()
    push('a')
    await clock.pass(900)
    push('b', 'c')
    expect(receiver.received).toEqual([])
    await clock.pass(100)
    await arrived(1)
    expect(receiver.received).toMatchObject([
      {
        method: 'POST',
        url: '/v1/traces',
        headers: { 'content-type': 'application/x-protobuf', 'api-key': 'hunter2' },
        body: Buffer.from('span a,span b,span c'),
      },
    ])
    await until(() => exporter.stats().sent === 3, { what: 'the answer' })
    expect(exporter.stats()).toEqual({ sent: 3, dropped: 0, queued: 0 })
  })

  test('at once when there are enough; those of one call stay together', async () => {
    const { push, receiver, exporter, arrived, passing } = await exporting()
    for (const name of names(200)) push(`${name} a`, `${name} b`, `${name} c`)
    await arrived(1)
    expect(receiver.received[0]?.names).toHaveLength(510)
    await passing(() => exporter.stats().sent === 600, 'the rest')
    expect(receiver.received.map((batch) => batch.names.length)).toEqual([510, 90])
    expect(receiver.received.flatMap((batch) => batch.names)).toHaveLength(600)
  })
})

describe('F16: a receiver that does not take them', () => {
  test.each([429, 502, 503, 504])('HTTP %s: they come again, later and later, until they are taken', async (status) => {
    const { push, answers, receiver, exporter, passing, at, log } = await exporting()
    answers((number) => (number < 4 ? { status } : taken))
    push('a')
    await passing(() => exporter.stats().sent === 1, 'the batch to be taken')
    expect(receiver.received.map(({ body }) => String(body))).toEqual(Array(4).fill('span a'))
    const pauses = at.slice(1).map((time, index) => time - (at[index] as number))
    for (const [index, pause] of pauses.entries()) expect(pause).toBeGreaterThanOrEqual(1_000 * 2 ** index)
    expect(log.lines.map(({ level, message }) => [level, message])).toEqual([
      ['warn', expect.stringContaining('cannot be exported')],
      ['info', expect.stringContaining('works again')],
    ])
  })

  test.each([
    ['7', 7_000],
    [new Date(1_800_000_000_000 + 30_000).toUTCString(), 29_000],
    ['soon', 1_000],
  ])('Retry-After is respected: %s', async (header, least) => {
    const { push, answers, exporter, passing, at } = await exporting()
    answers((number) => (number === 1 ? { status: 503, headers: { 'retry-after': header } } : taken))
    push('a')
    await passing(() => exporter.stats().sent === 1, 'the batch to be taken')
    expect((at[1] as number) - 1_000).toBeGreaterThanOrEqual(least - 100)
    expect((at[1] as number) - (at[0] as number)).toBeLessThan(least + 3_000)
  })

  test.each([400, 401, 404, 413, 415, 500])(
    'HTTP %s: they are dropped, counted and logged, and not sent again',
    async (status) => {
      const { push, answers, receiver, exporter, passing, log } = await exporting()
      answers((number) => (number === 1 ? { status, body: 'hunter2' } : taken))
      push('a', 'b')
      await passing(() => exporter.stats().dropped === 2, 'the refusal')
      expect(log.lines).toMatchObject([
        { level: 'warn', facts: { receiver: 'the receiver', reason: `HTTP ${status}` } },
      ])
      push('c')
      await passing(() => exporter.stats().sent === 1, 'the next')
      expect(receiver.received.map((batch) => batch.names)).toEqual([['span a', 'span b'], ['span c']])
    },
  )

  test('one that is unavailable: tried five times, then dropped; the next ones are sent as soon as it is back', async () => {
    const { push, receiver, exporter, passing, log } = await exporting()
    receiver.answers((number) => (number <= 5 ? { status: 503 } : taken))
    push('a')
    await passing(() => exporter.stats().dropped === 1, 'giving up')
    push('b')
    await passing(() => exporter.stats().sent === 1, 'the next')
    expect(receiver.received.map((batch) => batch.names[0])).toEqual([...Array(5).fill('span a'), 'span b'])
    expect(log.lines).toHaveLength(2)
  })

  test('the queue is bounded: the newest spans are dropped and counted, without an error', async () => {
    const { receiver, exporter, clock } = await exporting()
    await receiver[Symbol.asyncDispose]()
    const heavy = ['x'.repeat(100_000)]
    for (let count = 0; count < 200; count++) exporter.push(heavy)
    const { queued, dropped } = exporter.stats()
    expect(queued + dropped).toBe(200)
    expect(queued * 100_000).toBeLessThanOrEqual(8 * 1024 * 1024)
    expect(dropped).toBeGreaterThan(100)
    await clock.pass(1_000)
  })

  test('one that takes only some: those it did not take are counted', async () => {
    const { push, answers, exporter, passing } = await exporting()
    answers(() => ({ status: 200, body: '\x0a\x05\x08\x02\x12\x01x' }))
    push('a', 'b', 'c')
    await passing(() => exporter.stats().sent === 1, 'the answer')
    expect(exporter.stats()).toEqual({ sent: 1, dropped: 2, queued: 0 })
  })

  test.each(['', '\x0a\0', '\x0a\x06\x12\x04beca', '{"partialSuccess":{}}', 'x'.repeat(200_000)])(
    'an answer that says nothing means that all were taken: %.20s',
    async (body) => {
      const { push, answers, exporter, passing } = await exporting()
      answers(() => ({ status: 200, body }))
      push('a')
      await passing(() => exporter.stats().sent === 1, 'the answer')
    },
  )

  test('one that never answers is given up after ten seconds', async () => {
    const { push, answers, exporter, passing, log } = await exporting()
    answers((number) => (number === 1 ? undefined : taken))
    push('a')
    await passing(() => exporter.stats().sent === 1, 'the second attempt')
    expect(log.lines[0]?.facts).toMatchObject({ reason: expect.stringContaining('10 s (OTEL_EXPORTER_OTLP_TIMEOUT)') })
  })

  test('B6: no credential and nothing that was sent is in the log', async () => {
    const { push, answers, receiver, exporter, passing, log } = await exporting()
    answers(() => ({ status: 401, body: 'hunter2 is no key' }))
    push('a')
    await passing(() => exporter.stats().dropped === 1, 'the refusal')
    await receiver[Symbol.asyncDispose]()
    push('b')
    const closing = exporter[Symbol.asyncDispose]()
    await passing(() => exporter.stats().dropped === 2, 'the end')
    await closing
    expect(log.lines.length).toBeGreaterThan(0)
    expect(JSON.stringify(log.lines)).not.toMatch(/hunter2|span/)
  })
})

test('G1: a receiver behind a company proxy gets them through it, and the log names errors of the proxy', async () => {
  await using proxy = await startProxy()
  vi.stubEnv('HTTP_PROXY', proxy.url)
  const receiver = await startReceiver()
  open.add(receiver)
  const url = new URL(`${receiver.url.replace('127.0.0.1', 'traces.invalid')}/v1/traces`)
  const signal = new AbortController().signal
  const send = async () => {
    await using post = createOtlpClient({ url, headers: {}, delivery: plainDelivery, clock: createManualClock() })
    return await post.send(Buffer.from('{}'), signal)
  }
  try {
    expect(await send()).toEqual({ kind: 'taken', rejected: 0 })
    await proxy[Symbol.asyncDispose]()
    expect(await send()).toMatchObject({ kind: 'later', why: expect.stringContaining('Check HTTP_PROXY') })
    vi.stubEnv('HTTP_PROXY', 'socks5://127.0.0.1:1')
    expect(await send()).toMatchObject({ kind: 'later', why: expect.stringMatching(/HTTP_PROXY.*socks5/) })
  } finally {
    vi.unstubAllEnvs()
  }
})

describe('F16: at the end', () => {
  test('queued spans are sent', async () => {
    const { push, receiver, exporter, clock } = await exporting()
    for (const name of names(600)) push(name)
    await exporter[Symbol.asyncDispose]()
    expect(receiver.received.flatMap((batch) => batch.names)).toHaveLength(600)
    expect(exporter.stats()).toEqual({ sent: 600, dropped: 0, queued: 0 })
    expect(clock.pending).toBe(0)
  })

  test('it is waited for at most two seconds', async () => {
    const { push, answers, exporter, clock, log, arrived } = await exporting()
    answers(() => undefined)
    for (const name of names(600)) push(name)
    await arrived(1)
    const closing = exporter[Symbol.asyncDispose]()
    await clock.pass(2_000)
    await closing
    expect(exporter.stats()).toEqual({ sent: 0, dropped: 600, queued: 0 })
    expect(log.lines.at(-1)).toMatchObject({ level: 'warn', facts: { dropped: 600 } })
    expect(clock.pending).toBe(0)
  })

  test('a pause is cut short, and what comes later is dropped', async () => {
    const { push, answers, receiver, exporter, passing } = await exporting()
    answers((number) => (number === 1 ? { status: 503, headers: { 'retry-after': '300' } } : taken))
    push('a')
    await passing(() => receiver.received.length === 1, 'the first attempt')
    await exporter[Symbol.asyncDispose]()
    push('b')
    expect(receiver.received.map((batch) => batch.names)).toEqual([['span a'], ['span a']])
    expect(exporter.stats()).toEqual({ sent: 1, dropped: 1, queued: 0 })
  })
})
