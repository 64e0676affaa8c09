import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, stepCountIs, streamText, tool } from 'ai'
import OpenAI, { NotFoundError } from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import * as z from 'zod'
import {
  calls,
  type ModelServer,
  modelServer,
  type Reply,
  refuses,
  says,
} from '../../../src/chat/models/server.fixture.ts'
import { folder } from '../../../src/cli/folder.fixture.ts'
import { toolway } from '../../../src/cli/kit.fixture.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { asking, originOf } from '../admin/people.ts'

const open = new AsyncDisposableStack()
let server: ModelServer
let endpoint: { readonly baseURL: string; readonly apiKey: string }
let openai: OpenAI
let model: ReturnType<ReturnType<typeof createOpenAICompatible>>
let admin: ReturnType<typeof asking>

/** What the model says next, one after the other; the last goes on for ever. */
let script: Reply[] = []
const next: Reply = (asked, response) => (script.length > 1 ? script.shift() : script[0])?.(asked, response)

/** A gateway with one real server, whose model is a script; both clients, as anybody would set them up. */
beforeAll(async () => {
  server = open.use(await modelServer(next))
  const gateway = open.use(
    await startToolway({
      mcpServers: { everything: stdioServers.everything() },
      models: { local: { kind: 'openai', baseUrl: server.baseUrl, model: 'scripted' } },
      chat: { model: 'local', mode: 'agent' },
    }),
  )
  endpoint = { baseURL: `${originOf(gateway)}/v1`, apiKey: gateway.token }
  openai = new OpenAI({ ...endpoint, maxRetries: 0 })
  model = createOpenAICompatible({ name: 'toolway', ...endpoint, includeUsage: true })('local')
  admin = asking(originOf(gateway), gateway.token)
})
afterAll(() => open.disposeAsync())

const sum = () => calls({ name: 'everything__get-sum', arguments: { a: 2, b: 40 } })
const messages = [{ role: 'user' as const, content: 'What is 2 and 40?' }]
/** The results that the model was told last. */
const told = () =>
  JSON.stringify(
    server.asked
      .at(-1)
      ?.body.messages.filter(({ role }) => role === 'tool')
      .map(({ content }) => content),
  )

const weather = tool({
  description: 'Tells the weather of a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `sunny in ${city}`,
})

describe('S6: unchanged clients drive a real gateway', () => {
  test('openai: an answer with a tool of the catalog, joined with its call by its id', async () => {
    script = [sum(), says('It is 42.')]
    const completion = await openai.chat.completions.create({ model: 'local', messages })
    expect(completion.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'It is 42.' } })
    expect(completion.usage?.total_tokens).toBe(20)
    expect(told()).toContain('42')
    const { json } = await admin('calls?operation=call_tool')
    const call = { parent: completion.id, server: 'everything', name: 'get-sum', outcome: 'answered' }
    expect(json.calls).toMatchObject([call])
    const recorded = await until(async () => (await admin(`audit?parent=${completion.id}`)).json.rows[0], {
      what: 'the record of the call',
    })
    expect(recorded).toMatchObject({ tool: 'get-sum', decision: 'ALLOW' })
  })

  test('openai: the same as a stream, with the activity of tools beside it', async () => {
    script = [sum(), says('It is 42.')]
    const stream = await openai.chat.completions.create({ model: 'local', messages, stream: true })
    let text = ''
    const activity: string[] = []
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? ''
      const { toolway } = chunk as { toolway?: { kind: string; name?: string } }
      if (toolway && toolway.kind !== 'stage') activity.push(`${toolway.kind} ${toolway.name ?? ''}`.trim())
    }
    expect(text).toBe('It is 42.')
    expect(activity).toEqual(['call everything__get-sum', 'result', 'end'])
  })

  test('ai: its own tool and one of the catalog in one conversation, streaming or not', async () => {
    const own = () => calls({ name: 'weather', arguments: { city: 'Oslo' }, id: 'own_1' })
    for (const streaming of [false, true]) {
      script = [sum(), own(), says('It is 42, and sunny.')]
      const options = { model, tools: { weather }, prompt: 'Sum and weather?', stopWhen: stepCountIs(4) }
      const text = streaming ? await streamText(options).text : (await generateText(options)).text
      expect(text).toBe('It is 42, and sunny.')
      expect(told()).toContain('sunny in Oslo')
    }
  })

  test('errors keep their status and their sentence', async () => {
    script = [refuses(401, 'no such key')]
    await expect(openai.chat.completions.create({ model: 'gpt-4', messages })).rejects.toThrow(NotFoundError)
    const failure = await openai.chat.completions.create({ model: 'local', messages }).catch((error: unknown) => error)
    expect(failure).toMatchObject({
      status: expect.toSatisfy((status: number) => status >= 500),
      code: expect.any(String),
    })
    expect((await openai.models.list()).data.map(({ id }) => id)).toEqual(['local'])
  })

  test('toolway chat: the same in a terminal, with a gateway of its own', async () => {
    script = [calls({ name: 'hash', arguments: { data: 'hello', algorithm: 'sha256' } }), says('It begins with 2cf24.')]
    await using place = await folder({
      'toolway.json': { models: { local: { kind: 'openai', baseUrl: server.baseUrl, model: 'scripted' } } },
    })
    const words = ['chat', 'Hash hello.', '--mode', 'agent']
    const { code, stdout, stderr } = await toolway(words, place)
    expect([code, stdout]).toEqual([0, 'It begins with 2cf24.\n'])
    expect(stderr).toMatch(/^✓ hash \{"data":"hello","algorithm":"sha256"\} \d+ ms\n$/)
    expect(told()).toContain('2cf24')
  })
})
