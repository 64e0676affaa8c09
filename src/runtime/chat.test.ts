import { afterAll, beforeAll, expect, test } from 'vitest'
import { type LocalToolway, startToolway } from '../../tests/fixtures/toolway.ts'
import { calls, type ModelServer, modelServer, says } from '../chat/models/server.fixture.ts'

const open = new AsyncDisposableStack()
let model: ModelServer
let toolway: LocalToolway

beforeAll(async () => {
  const blocked = calls({ name: 'native__hash', arguments: { data: 'x' }, id: 'a' })
  // Without tools, there is one question; with them, the first answer is a call.
  model = open.use(
    await modelServer((asked, response) => (asked.body.tools ? blocked : says('Done.'))(asked, response)),
  )
  toolway = open.use(
    await startToolway({
      history: {},
      native: { tools: ['hash', 'time'] },
      models: { local: { kind: 'openai', baseUrl: model.baseUrl, model: 'scripted', apiKey: 'sk-1' } },
      chat: { model: 'local', mode: 'agent', maxSteps: 1 },
      limits: { tools: { 'toolway.chat': 10 } },
      agents: {
        all: { allow: { servers: ['*'] } },
        often: { allow: { servers: ['*'] } },
        mute: { allow: { servers: ['*'] }, deny: { tools: { toolway: ['chat'] } } },
        timekeeper: { allow: { tools: { native: ['time'] } } },
      },
    }),
  )
})
afterAll(() => open.disposeAsync())

const said = (content: unknown) => ({ model: 'local', messages: [{ role: 'user', content }] })

async function chat(agent: string | undefined, body: object = said('Hello')) {
  const { origin } = new URL(toolway.url)
  const headers = { authorization: `Bearer ${toolway.token}`, 'content-type': 'application/json' }
  const response = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { ...headers, ...(agent !== undefined && { 'toolway-agent': agent }) },
    body: JSON.stringify(body),
  })
  const json = (await response.json()) as { readonly id?: string; readonly error?: { readonly code: string } }
  return { status: response.status, id: response.headers.get('toolway-chat'), code: json.error?.code }
}

async function audited(query: string): Promise<readonly Record<string, unknown>[]> {
  const { origin } = new URL(toolway.url)
  const headers = { authorization: `Bearer ${toolway.token}` }
  const response = await fetch(`${origin}/admin/api/audit?${query}`, { headers })
  return ((await response.json()) as { readonly rows: readonly Record<string, unknown>[] }).rows
}

test('G6, F11: an agent that may not chat gets no answer of the model, and the refusal names the rule', async () => {
  const before = model.asked.length
  expect(await chat('mute')).toMatchObject({ status: 403, code: 'DENIED_BY_POLICY' })
  expect(model.asked.length).toBe(before)
  const [record] = await audited('operation=chat&agent=mute&limit=1')
  expect(record).toMatchObject({
    decision: 'DENY',
    server: 'toolway',
    tool: 'chat',
    rule: 'agents.mute.deny.tools.toolway[0]',
  })
})

test('B11: `why` explains whether an agent may chat', async () => {
  const { origin } = new URL(toolway.url)
  const why = async (agent: string) => {
    const headers = { authorization: `Bearer ${toolway.token}` }
    return (await fetch(`${origin}/admin/api/why?agent=${agent}&tool=toolway.chat`, { headers })).json()
  }
  expect(await why('mute')).toMatchObject({ rule: 'agents.mute.deny.tools.toolway[0]' })
  expect(await why('all')).toMatchObject({ rule: 'agents.all (meta-tools)' })
})

test.each([
  ['none', {}, {}, ['hash']],
  [
    'three',
    { generate: 'local', transcription: 'local', diffusion: 'local' },
    {},
    ['diffusion', 'generate', 'hash', 'speech'],
  ],
  ['a model that sees', {}, { vision: true }, ['hash', 'vision']],
])(
  'S3, F17: chats offer tools that run models only if a model is configured for them: %s',
  async (_, inference, eye, offered) => {
    const served = { kind: 'openai', baseUrl: model.baseUrl, model: 'scripted' }
    await using own = await startToolway({
      history: { disabled: true },
      native: { tools: ['hash', 'generate', 'vision', 'speech', 'diffusion'], inference },
      models: { local: served, eye: { ...served, ...eye } },
      chat: { model: 'local', mode: 'agent', maxSteps: 1 },
    })
    const headers = { authorization: `Bearer ${own.token}`, 'content-type': 'application/json' }
    const url = `${new URL(own.url).origin}/v1/chat/completions`
    expect((await fetch(url, { method: 'POST', headers, body: JSON.stringify(said('Hello')) })).status).toBe(200)
    const { tools = [] } = model.asked.findLast(({ body }) => body.tools)?.body ?? {}
    expect(tools.map(({ function: { name } }) => name)).toEqual(offered)
  },
)

test('G7: a caller that has not chosen one of its agents cannot chat', async () => {
  const before = model.asked.length
  expect(await chat(undefined)).toMatchObject({ status: 403, code: 'NO_FALLBACK_CONFIGURED' })
  expect(model.asked.length).toBe(before)
})

test('F11, J5: a chat leaves a record with its model, and so does a call to a tool that is denied', async () => {
  const { status, id } = await chat('timekeeper')
  expect(status).toBe(200)
  expect(await audited('operation=chat&agent=timekeeper&limit=1')).toMatchObject([
    { call: id, decision: 'ALLOW', arguments: { model: 'local' } },
  ])
  expect(await audited(`parent=${id}`)).toMatchObject([{ decision: 'DENY', server: 'native', tool: 'hash' }])
})

test('F8: chats are limited by a limit of their own', async () => {
  const answers = await Promise.all(Array.from({ length: 11 }, () => chat('often')))
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(10).fill(200), 429])
})

test.each([
  'file:///etc/passwd',
  '/etc/passwd',
  'http://169.254.169.254/latest/meta-data',
  'http://127.0.0.1:9/x.png',
  'http://localhost/x.png',
  'ftp://example.com/x.png',
])('F9: the model server is not asked to fetch %s', async (url) => {
  const before = model.asked.length
  const image = { type: 'image_url', image_url: { url } }
  expect(await chat('all', said([image]))).toMatchObject({ status: 400, code: 'INVALID_ARGUMENTS' })
  expect(model.asked.length).toBe(before)
})
