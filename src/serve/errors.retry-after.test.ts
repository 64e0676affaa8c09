import { afterAll, beforeAll, expect, test } from 'vitest'
import { ToolwayError } from '../core/errors.ts'
import { silentLog } from '../core/log.ts'
import { HttpError, retryAfter, toHttpError } from './errors.ts'
import { openStatelessServer } from './mcp-stateless/stateless.fixture.ts'

let server: Awaited<ReturnType<typeof openStatelessServer>>
beforeAll(async () => {
  server = await openStatelessServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const limited = { name: 'refuse', arguments: { code: 'RATE_LIMITED' } }

test.each([
  [1, '1'],
  [999, '1'],
  [1_000, '1'],
  [1_001, '2'],
  [60_000, '60'],
  [0, '1'],
])('F8: %i ms become a Retry-After of %s s, never too early', (ms, seconds) => {
  expect(retryAfter(ms)).toEqual({ 'Retry-After': seconds })
})

test('F8: a refusal has a retry time, in the response and in its header', () => {
  const refusal = HttpError.of('RATE_LIMITED', 'Later.', {
    rule: 'r',
    retryAfterMs: 1_500,
    headers: { Connection: 'close' },
  })
  expect(refusal).toMatchObject({
    status: 429,
    details: {
      data: { code: 'RATE_LIMITED', rule: 'r', retryAfterMs: 1_500 },
      headers: { 'Retry-After': '2', Connection: 'close' },
    },
  })
  const details = { server: 'files', rule: 'r[0]', retryAfterMs: 10 }
  expect(toHttpError(new ToolwayError('OVERLOADED', 'Later.', details), silentLog, 7).details).toEqual({
    id: 7,
    data: { code: 'OVERLOADED', ...details },
    headers: { 'Retry-After': '1' },
  })
})

test('F8: a refused call of the stateless era carries the header where its answer is plain JSON', async () => {
  const { status, headers, result } = await server.ask('tools/call', limited)
  expect(status).toBe(200)
  expect(headers['retry-after']).toBe('1')
  expect(result).toMatchObject({ isError: true, _meta: { 'dev.toolway/error': { retryAfterMs: 7 } } })
  expect((await server.ask('tools/call', { name: 'echo' })).headers['retry-after']).toBeUndefined()
})

test('F8: and so does one in a session', async () => {
  const session = await server.session()
  const plain = await session.send({ id: 1, method: 'tools/call', params: limited })
  expect(plain.headers).toMatchObject({ 'content-type': 'application/json', 'retry-after': '1' })
  await plain.body.dump()
  const fine = await session.send({ id: 2, method: 'tools/call', params: { name: 'echo' } })
  expect(fine.headers['retry-after']).toBeUndefined()
  await fine.body.dump()
})

test('F8: an answer that has become a stream says it in the message alone', async () => {
  const headers = { accept: 'text/event-stream' }
  const { headers: answered, body } = await server.post('tools/call', limited, { headers })
  expect(answered).toMatchObject({ 'content-type': 'text/event-stream' })
  expect(answered['retry-after']).toBeUndefined()
  expect(await body.text()).toContain('"retryAfterMs":7')
})
