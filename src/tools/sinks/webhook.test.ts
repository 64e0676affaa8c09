import { describe, expect, test } from 'vitest'
import { createManualClock, type ManualClock } from '../../../tests/fixtures/clock.ts'
import { unusedPort } from '../../../tests/fixtures/listening.ts'
import { createKeptLog, type KeptLog } from '../../../tests/fixtures/log.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { callOf } from '../../core/call.fixture.ts'
import { ToolwayError } from '../../core/errors.ts'
import { breaksOff, hangsUp, receiver, silent, status } from './receiver.fixture.ts'
import type { Artifact } from './sink.ts'
import { createWebhookSink } from './webhook.ts'

const artifact: Artifact = {
  id: 'a-1',
  sink: 'hook',
  agent: 'writer',
  content: 'text',
  metadata: { about: 'x' },
  timestamp: '2026-11-07T12:30:45.678Z',
}

interface Posting {
  readonly clock: ManualClock
  readonly log: KeptLog
  readonly stop: AbortController
  readonly outcome: Promise<Record<string, unknown>>
}

const secret = 'hunter2-hunter2'

function post(url: string, more: { attempts?: number; random?: () => number } = {}): Posting {
  const clock = createManualClock()
  const log = createKeptLog()
  const stop = new AbortController()
  const { attempts = 4, random = () => 1 } = more
  const config = { url, headers: { Authorization: `Bearer ${secret}` }, attempts, timeout: 10_000 }
  const context = { call: callOf(), signal: stop.signal }
  const sink = createWebhookSink({ name: 'hook', config, clock, log, random })
  const outcome = sink.write(artifact, context) as Promise<Record<string, unknown>>
  // It may fail while the test still moves the clock.
  outcome.catch(() => {})
  return { clock, log, stop, outcome }
}

const failure = async ({ outcome }: Posting): Promise<ToolwayError> => {
  const thrown: unknown = await outcome.then(
    () => undefined,
    (error) => error,
  )
  expect(thrown).toBeInstanceOf(ToolwayError)
  return thrown as ToolwayError
}

/** Moves time as soon as something waits for it: a pause, once the attempt before it is over. */
async function passPauses({ clock, log }: Posting, ...pauses: readonly number[]): Promise<void> {
  for (const [index, ms] of pauses.entries()) {
    await until(() => log.lines.length > index, { what: 'a pause' })
    expect(log.lines[index]?.facts.ms).toBe(ms)
    await clock.pass(ms)
  }
}

describe('webhooks', () => {
  test('J4: an artifact is posted as JSON, with its id as the key', async () => {
    await using hook = await receiver(status(201, { location: '/artifacts/77' }))
    const pointer = await post(`${hook.url}?team=1`).outcome
    expect(hook.deliveries).toEqual([
      {
        path: '/artifacts?team=1',
        headers: expect.objectContaining({
          'idempotency-key': 'a-1',
          'content-type': 'application/json',
          authorization: `Bearer ${secret}`,
        }),
        body: artifact,
      },
    ])
    expect(pointer).toEqual({ uri: `${hook.url}/77`, status: 201, attempts: 1 })
  })

  test.each([
    [undefined, 'sink://hook/a-1'],
    ['javascript:alert(1)', 'sink://hook/a-1'],
    ['http://me:pass@example.com/', 'sink://hook/a-1'],
    ['https://example.com/x', 'https://example.com/x'],
  ])('J4: a receiver that says %s is pointed to as %s', async (location, uri) => {
    await using hook = await receiver(status(200, location === undefined ? {} : { location }))
    expect((await post(hook.url).outcome).uri).toBe(uri)
  })

  test.each([500, 502, 503, 429])(
    'J4: HTTP %i is tried again with the same key, until it is acknowledged',
    async (code) => {
      await using hook = await receiver(status(code), status(code), status(204))
      const posting = post(hook.url)
      await passPauses(posting, 500, 1000)
      expect(await posting.outcome).toMatchObject({ attempts: 3, status: 204 })
      expect(hook.deliveries.map(({ headers }) => headers['idempotency-key'])).toEqual(['a-1', 'a-1', 'a-1'])
      expect(hook.deliveries[2]?.body).toEqual(artifact)
    },
  )

  test.each([
    [400, 'INVALID_ARGUMENTS'],
    [422, 'INVALID_ARGUMENTS'],
    [401, 'SERVER_UNAVAILABLE'],
    [404, 'SERVER_UNAVAILABLE'],
    [302, 'SERVER_UNAVAILABLE'],
  ])('J4: HTTP %i is never tried again, and nothing is followed', async (code, expected) => {
    await using elsewhere = await receiver(status(200))
    await using hook = await receiver(status(code, { location: elsewhere.url }))
    const refusal = await failure(post(hook.url))
    expect(refusal).toMatchObject({ code: expected, message: expect.stringContaining(`HTTP ${code}`) })
    expect([hook.deliveries.length, elsewhere.deliveries.length]).toEqual([1, 0])
  })

  test('J4: an acknowledged delivery is never repeated, even if the response is incomplete', async () => {
    await using hook = await receiver(breaksOff)
    expect(await post(hook.url).outcome).toMatchObject({ attempts: 1, status: 200 })
    expect(hook.deliveries).toHaveLength(1)
  })

  test('J4: after a closed connection the delivery is repeated with the same key, and in the end OUTCOME_UNKNOWN', async () => {
    await using hook = await receiver(hangsUp)
    const posting = post(hook.url, { attempts: 2 })
    await passPauses(posting, 500)
    const error = await failure(posting)
    expect(error.code).toBe('OUTCOME_UNKNOWN')
    expect(error.message).toContain('2 attempts')
    expect(error.message).toContain('metadata.id "a-1"')
    expect(hook.deliveries.map(({ headers }) => headers['idempotency-key'])).toEqual(['a-1', 'a-1'])
  })

  test('J4: a receiver that says nothing in time is asked again with the same key', async () => {
    await using hook = await receiver(silent, status(200))
    const posting = post(hook.url)
    await hook.delivery(1)
    await posting.clock.pass(10_000)
    await passPauses(posting, 500)
    expect(await posting.outcome).toMatchObject({ attempts: 2 })
    expect(hook.deliveries.map(({ headers }) => headers['idempotency-key'])).toEqual(['a-1', 'a-1'])
  })

  test('J4: if no process listens, the error says that nothing was delivered', async () => {
    const posting = post(`http://127.0.0.1:${await unusedPort()}/`, { attempts: 2 })
    await passPauses(posting, 500)
    const error = await failure(posting)
    expect(error).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringContaining('nothing was delivered'),
    })
    expect(error.message).toContain('ECONNREFUSED')
  })

  test('J4: Retry-After is respected, unless it is too long', async () => {
    await using hook = await receiver(status(429, { 'retry-after': '7' }), status(200))
    const posting = post(hook.url, { random: () => 0 })
    await passPauses(posting, 7000)
    await posting.outcome
    await using busy = await receiver(status(503, { 'retry-after': '600' }))
    expect((await failure(post(busy.url))).details.retryAfterMs).toBe(600_000)
    expect(busy.deliveries).toHaveLength(1)
  })

  test('F10: cancelling ends it, during an attempt and between two', async () => {
    await using hook = await receiver(silent)
    const posting = post(hook.url)
    await hook.delivery(1)
    posting.stop.abort(new Error('enough'))
    await expect(posting.outcome).rejects.toThrow('enough')
    await using failing = await receiver(status(500))
    const pausing = post(failing.url)
    await until(() => pausing.log.lines.length > 0, { what: 'a pause' })
    pausing.stop.abort(new Error('enough'))
    await expect(pausing.outcome).rejects.toThrow('enough')
    expect([pausing.clock.pending, failing.deliveries.length]).toEqual([0, 1])
  })

  test('B6: neither what headers hold nor the address is in an error or the log', async () => {
    await using hook = await receiver(status(500))
    const posting = post(`${hook.url}/T0KEN-in-the-path`, { attempts: 2 })
    await passPauses(posting, 500)
    const told = JSON.stringify([(await failure(posting)).message, posting.log.lines])
    expect(told).not.toMatch(/hunter2|T0KEN|127\.0\.0\.1/)
  })
})
