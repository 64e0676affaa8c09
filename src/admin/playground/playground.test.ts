import { afterEach, expect, test } from 'vitest'
import { eventsOf } from '../../serve/openai/openai.fixture.ts'
import { openTestAdmin } from '../admin.fixture.ts'

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})

test('V11: a playground call is a stream of events; its arguments keep their bytes', async () => {
  const { api, asked } = stack.use(await openTestAdmin())
  const { status, headers, text } = await api('playground', { body: { name: 'files__read', arguments: { n: 1 } } })
  expect([status, headers['content-type']]).toEqual([200, 'text/event-stream'])
  expect(eventsOf(text).map(({ kind }) => kind)).toEqual(['start', 'end'])
  expect(asked[0]).toMatchObject({ what: 'playground', given: { operation: 'call_tool', sent: '{"n":1}' } })
})

test('V11: a failure is a status, or an event where the stream has begun', async () => {
  const { api } = stack.use(await openTestAdmin())
  const refused = await api('playground', { body: { name: 'nothing' } })
  expect([refused.status, refused.json.error.code]).toEqual([404, 'TOOL_NOT_FOUND'])
  const failed = await api('playground', { body: { name: 'fails' } })
  expect(eventsOf(failed.text).at(-1)).toMatchObject({ kind: 'error', code: 'OVERLOADED' })
})

test('V11: only admins make a call again; answers are passed on', async () => {
  const { api, asked } = stack.use(await openTestAdmin())
  expect((await api('calls/c1/run', { method: 'POST', token: 'dev' })).status).toBe(403)
  expect((await api('calls/c1/run', { method: 'POST' })).json).toMatchObject({ call: 'c10' })
  const body = { result: { action: 'decline' } }
  expect((await api('playground/ask-1/answer', { body, token: 'dev' })).status).toBe(204)
  expect(asked.at(-1)).toMatchObject({ what: 'answer', given: { id: 'ask-1', answer: body } })
})
