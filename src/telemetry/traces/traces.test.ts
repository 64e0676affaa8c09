import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { callOf } from '../../core/call.fixture.ts'
import { observedOf } from '../metrics/observed.fixture.ts'
import { everything, type TraceSettings } from './call-spans.ts'
import { decodeRequest } from './otlp.fixture.ts'
import { plainDelivery, type Received, type Receiver, startReceiver } from './receiver.fixture.ts'
import { serverOf } from './server.fixture.ts'
import { openTraces } from './traces.ts'

const servers = new Map([['files', serverOf({ command: 'files' })]])

/** Sends the spans of two calls that are over, to the end. */
async function traced(changes: Partial<TraceSettings> = {}, where = (url: string) => `${url}/v1/traces`) {
  await using receiver: Receiver = await startReceiver()
  const log = createKeptLog()
  const settings = {
    url: where(receiver.url),
    headers: {},
    resource: {},
    sampling: everything,
    delivery: plainDelivery,
    ...changes,
  }
  const traces = openTraces({ settings, version: '1.2.3', clock: createManualClock(), log })
  const tracer = traces.tracer({ redact: (text) => text, servers })
  for (const id of ['one', 'two']) {
    const call = callOf({ id })
    tracer.ended(observedOf({ call, trail: { steps: [], trace: tracer.enter(call) } }))
  }
  await traces[Symbol.asyncDispose]()
  return { batch: receiver.received[0] as Received, batches: receiver.received.length, stats: traces.stats(), log }
}

test('F16: a batch is what OTLP over HTTP wants: one resource, one scope, its spans', async () => {
  const { batch, stats } = await traced({ resource: { 'service.name': 'mine "here"', team: 'a' } })
  expect(batch).toMatchObject({
    method: 'POST',
    url: '/v1/traces',
    headers: { 'content-type': 'application/x-protobuf' },
  })
  expect(decodeRequest(batch.body)).toEqual({
    resourceSpans: [
      {
        resource: {
          attributes: expect.arrayContaining([
            { key: 'service.name', value: { stringValue: 'mine "here"' } },
            { key: 'service.version', value: { stringValue: '1.2.3' } },
            { key: 'service.instance.id', value: { stringValue: expect.any(String) } },
            { key: 'team', value: { stringValue: 'a' } },
          ]),
        },
        scopeSpans: [
          {
            scope: { name: 'toolway', version: '1.2.3' },
            spans: [
              expect.objectContaining({ name: 'tools/call read' }),
              expect.objectContaining({ name: 'tools/call read' }),
            ],
          },
        ],
      },
    ],
  })
  expect(stats).toEqual({ sent: 2, dropped: 0, queued: 0 })
})

test('F16: credentials come from headers or from the address, and go nowhere else', async () => {
  const { batch } = await traced(
    { headers: { 'Api-Key': 'secret' } },
    (url) => `${url.replace('//', '//me:p%40ss@')}/x?y=1`,
  )
  const authorization = `Basic ${Buffer.from('me:p@ss').toString('base64')}`
  expect(batch).toMatchObject({ url: '/x?y=1', headers: { 'api-key': 'secret', authorization } })
  const other = await traced({ headers: { Authorization: 'Bearer x' } }, (url) => url.replace('//', '//me:100%@'))
  expect(other.batch.headers.authorization).toBe('Bearer x')
})

test('B6, F16: the log names the receiver and none of its secrets', async () => {
  const { log, batches, stats } = await traced(
    { headers: { key: 'hunter2' } },
    () => 'http://me:hunter2@127.0.0.1:9/hunter2',
  )
  expect(batches).toBe(0)
  expect(stats).toMatchObject({ sent: 0, dropped: 2 })
  expect(log.lines[0]?.facts).toMatchObject({ receiver: 'http://127.0.0.1:9' })
  expect(JSON.stringify(log.lines)).not.toContain('hunter2')
})

test('F16: a header that cannot be sent loses the traces, not the gateway', async () => {
  const { log, stats } = await traced({ headers: { key: 'hunter2\r\nx: y' } })
  expect(stats).toMatchObject({ sent: 0, dropped: 2 })
  expect(JSON.stringify(log.lines)).not.toContain('hunter2')
})

test('F16: unsampled spans are not sent', async () => {
  expect(await traced({ sampling: { parentBased: true, ratio: 0 } })).toMatchObject({ batches: 0, stats: { sent: 0 } })
})
