import { afterEach, describe, expect, test } from 'vitest'
import { ToolwayError } from '../../core/errors.ts'
import { aborted, createTestChat, endOf, usual } from '../../serve/openai/chat.fixture.ts'
import { eventsOf } from '../../serve/openai/openai.fixture.ts'
import { json, openTestAdmin } from '../admin.fixture.ts'

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})
const open = async (chat: ReturnType<typeof createTestChat> | undefined = createTestChat()) => ({
  ...stack.use(await openTestAdmin({ chat: () => chat })),
  chat,
})
const messages = [{ role: 'user', content: 'Hi' }]

describe('G10, S6: the chat of the dashboard', () => {
  test('lists the models, and an error says so if there is none', async () => {
    const { api } = await open()
    expect((await api('chat', { token: 'dev' })).json).toEqual({ models: ['local', 'large'], vision: ['large'] })
    const none = stack.use(await openTestAdmin())
    expect((await none.api('chat')).json).toEqual({ models: [], vision: [] })
    const refused = await none.api('chat', { body: { messages } })
    expect([refused.status, refused.json.error.code]).toEqual([404, 'model_not_found'])
  })

  test('answers as a stream of events, as the agent that is asked for', async () => {
    const { api, chat, access } = await open()
    access.agentOf = (_, asked) => asked ?? 'usual'
    const body = { messages, model: 'large', mode: 'agent', agent: 'dev', only: ['files.*'] }
    const { status, headers, text } = await api('chat', { body })
    expect([status, headers['content-type']]).toEqual([200, 'text/event-stream'])
    const { handed, ...end } = endOf()
    const [asked] = chat.asked
    const start = { kind: 'start', id: asked?.id, model: 'large' }
    expect(eventsOf(text)).toEqual([start, ...usual.slice(0, -1), end])
    expect(asked).toMatchObject({
      ...{ mode: 'agent', stream: true, messages, only: ['files.*'] },
      caller: { agent: 'dev', principal: 'token', session: 'admin token', capabilities: {} },
    })
  })

  test('images reach only models that accept them, and are bounded', async () => {
    const { api, chat } = await open()
    const image = (url: string) => ({ type: 'image_url', image_url: { url } })
    const ask = async (model: string, ...parts: readonly object[]) => {
      const { status, json } = await api('chat', { body: { model, messages: [{ role: 'user', content: parts }] } })
      return [status, json?.error?.code]
    }
    const png = image('data:image/png;base64,iVBORw0KGgo=')
    const text = { type: 'text', text: 'What is this?' }
    expect(await ask('large', text, png)).toEqual([200, undefined])
    expect(chat.asked.map((one) => one.messages[0]?.content)).toEqual([[text, png]])
    expect(await ask('local', text, png)).toEqual([400, 'INVALID_ARGUMENTS'])
    expect(await ask('local', text)).toEqual([200, undefined])
    // The gateway must not make the model server fetch anything, or read other formats.
    for (const url of ['https://example.com/a.png', 'data:image/svg+xml;base64,AAAA', 'data:image/png;base64,A A'])
      expect((await ask('large', image(url)))[0], url).toBe(400)
    expect((await ask('large', image(`data:image/png;base64,${'A'.repeat(1_400_000)}`)))[0]).toBeGreaterThanOrEqual(400)
    expect((await ask('large', ...Array.from({ length: 9 }, () => png)))[0]).toBe(400)
    expect(chat.asked).toHaveLength(2)
  })

  test('B6: by cookie it needs the header that only our page can send', async () => {
    const { raw, logIn, chat } = await open()
    const { browser } = await logIn()
    const body = JSON.stringify({ messages })
    const ask = (headers: Record<string, string>) =>
      raw('/admin/api/chat', { method: 'POST', body, headers: { ...json, ...browser, ...headers } })
    expect((await ask({})).status).toBe(403)
    expect((await ask({ 'toolway-admin': '1', 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    expect(chat.asked).toEqual([])
    expect((await ask({ 'toolway-admin': '1' })).status).toBe(200)
  })

  test('a failure is a status, or an event where the answer has begun', async () => {
    const chat = createTestChat(async function* () {
      yield* [] as never[]
      throw new ToolwayError('RATE_LIMITED', 'Slow down.', { retryAfterMs: 1 })
    })
    const { api } = await open(chat)
    const early = await api('chat', { body: { messages } })
    expect([early.status, early.json]).toEqual([
      429,
      { error: { code: 'RATE_LIMITED', message: 'Slow down.', retryAfterMs: 1 } },
    ])
    chat.script = async function* () {
      yield { kind: 'text', text: 'Hel' }
      throw new ToolwayError('TIMEOUT', 'Late.')
    }
    const late = eventsOf((await api('chat', { body: { messages } })).text)
    expect(late.at(-1)).toEqual({ kind: 'error', code: 'TIMEOUT', message: 'Late.' })
  })

  test('closing the stream stops the answer', async () => {
    const chat = createTestChat(async function* ({ signal }) {
      yield { kind: 'text', text: 'Hel' }
      await aborted(signal)
    })
    const { origin } = await open(chat)
    const leaving = new AbortController()
    const answer = await fetch(`${origin}/admin/api/chat`, {
      method: 'POST',
      headers: { ...json, authorization: 'Bearer operator' },
      body: JSON.stringify({ messages }),
      signal: leaving.signal,
    })
    expect(answer.status).toBe(200)
    leaving.abort()
    await expect.poll(() => chat.open).toBe(0)
  })
})
