import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import type { Definition, Entry } from '../../core/entry.ts'
import type { Source } from '../../core/source.ts'
import { defineTool } from '../../tools/define-tool.ts'
import { add, ask, chatting, forecast } from '../chat.fixture.ts'
import { calls, says } from '../models/server.fixture.ts'
import { searchAll } from './discover.ts'

const many = Array.from({ length: 40 }, (_, number) =>
  defineTool({
    name: `record_${number}`,
    description: `Looks up record ${number} of the archive.`,
    input: z.object({}),
    run: () => 'found',
  }),
)

const code = defineTool({
  name: 'execute_code',
  description: 'Runs code.',
  input: z.object({
    code: z.string(),
    language: z.string().optional(),
    environment: z.string().optional(),
    timeout_ms: z.int().max(30_000).optional(),
  }),
  run: (args) => args,
})

const agent = { mode: 'agent' }

async function offered(options: object, request: object = {}, said = 'Hello') {
  const { chat, server, ...rest } = await chatting([says('Well.')], { config: agent, ...options })
  await ask(chat, said, request)
  return { tools: server.asked[0]?.body.tools?.map(({ function: { name } }) => name) ?? [], ...rest }
}

const withDefinition = (name: string, definition: Definition) => (source: Source) => {
  const entry: Entry = {
    kind: 'tool',
    server: source.name,
    name,
    definition: { description: 'Odd.', inputSchema: { type: 'object' }, ...definition },
    traits: { readOnly: true, idempotent: true, timeoutMs: 1_000 },
    run: async (call) => ({ body: call.input.arguments as never, isError: false }),
  }
  return { ...source, entries: () => [entry] }
}

describe('the candidate tools', () => {
  test('S3: few tools are all offered, without the meta-tools, in a stable order', async () => {
    expect((await offered({})).tools).toEqual(['arithmetic__add', 'weather__forecast'])
  })

  test('S3: of many tools, the best are offered, up to the limit', async () => {
    const config = { ...agent, maxTools: 4 }
    const servers = { archive: many, weather: [forecast], arithmetic: [add] }
    const { tools } = await offered({ config, servers }, {}, 'How is the weather in Rome? Then adds 22 and 33.')
    expect(tools).toHaveLength(4)
    expect(tools).toEqual(expect.arrayContaining(['weather__forecast', 'arithmetic__add']))
  })

  test('S3: a follow-up question is searched with the messages before it', async () => {
    const { chat, server } = await chatting([says('Well.')], {
      config: { ...agent, maxTools: 2 },
      servers: { archive: many, weather: [forecast] },
    })
    await ask(chat, [
      { role: 'user', content: 'How is the weather?' },
      { role: 'assistant', content: 'Where?' },
      { role: 'user', content: 'Rome!' },
    ])
    expect(server.asked[0]?.body.tools?.map(({ function: { name } }) => name)).toContain('weather__forecast')
  })

  test('S3: if the search finds nothing, some tools of every server are offered', async () => {
    const servers = { archive: many, weather: [forecast], arithmetic: [add] }
    const { tools } = await offered({ config: { ...agent, maxTools: 4 }, servers }, {}, 'xyzzy')
    expect(tools).toEqual(['archive__record_0', 'archive__record_1', 'arithmetic__add', 'weather__forecast'])
  })

  test('S3: without tools, the model answers directly', async () => {
    expect((await offered({ servers: {} })).tools).toEqual([])
  })

  test('W3: tools that only pages of apps may call are not offered, neither all nor the best', async () => {
    const servers = {
      clock: withDefinition('refresh', { _meta: { ui: { visibility: ['app'] } } }),
      weather: [forecast],
    }
    expect((await offered({ servers })).tools).toEqual(['weather__forecast'])
    const config = { ...agent, maxTools: 4 }
    expect((await offered({ config, servers: { ...servers, archive: many } }, {}, 'refresh')).tools).not.toContain(
      'clock__refresh',
    )
  })

  test('S6: only tools that match the request', async () => {
    expect((await offered({}, { only: ['weather.*'] })).tools).toEqual(['weather__forecast'])
    expect((await offered({}, { only: [] })).tools).toEqual([])
  })

  test('S3: waits for servers that are still starting', async () => {
    let waited = 0
    await offered({ ready: async () => void waited++ })
    expect(waited).toBe(1)
  })

  test('S1: only the first question of a chat starts a conversation', async () => {
    let started = 0
    const { chat } = await chatting([says('One.'), says('Two.')], {
      config: agent,
      conversationStarted: () => started++,
    })
    await ask(chat, 'Hello')
    expect(started).toBe(1)
    const [greeting, answer, question] = ['Hello', 'One.', 'And now?']
    await ask(chat, [
      { role: 'user', content: greeting },
      { role: 'assistant', content: answer },
      { role: 'user', content: question },
    ])
    expect(started).toBe(1)
  })

  test('S3: results for the last message come first, and only three messages are searched', async () => {
    const found: Record<string, string> = { last: 'a b', before: 'b c', first: 'd', forgotten: 'e' }
    const search = async (query: string) => found[query]?.split(' ').map((name) => ({ name })) ?? []
    const all = await searchAll(['last', 'before', 'first', 'forgotten'], search)
    expect(all.map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd'])
  })
})

describe('running code', () => {
  const servers = { native: [code], archive: many }
  const on = { ...agent, maxTools: 4, codeExecution: { enabled: true, environment: 'desk', timeout: '9s' } }

  test('S7: is offered if enabled, independent of the search', async () => {
    expect((await offered({ servers, config: on }, {}, 'record 7')).tools).toContain('native__execute_code')
    expect((await offered({ servers, config: { ...agent, maxTools: 99 } })).tools).not.toContain('native__execute_code')
    expect((await offered({ servers, config: on }, { codeExecution: false })).tools).not.toContain(
      'native__execute_code',
    )
  })

  test('S7: the model cannot choose its environment or timeout', async () => {
    const call = calls({ name: 'execute_code', arguments: { code: '1', environment: 'mine' } })
    const { chat, server, gateway } = await chatting([call, says('Well.')], { servers, config: on })
    await ask(chat, 'x')
    const tool = server.asked[0]?.body.tools?.find(({ function: { name } }) => name === 'native__execute_code')
    expect(tool?.function.parameters).toEqual({
      type: 'object',
      properties: { code: { type: 'string' }, language: { type: 'string' } },
      required: ['code'],
      additionalProperties: false,
    })
    expect(gateway.calls[0]?.input.arguments.value).toEqual({ code: '1', environment: 'desk', timeout_ms: 9_000 })
  })

  test('S7: a request can enable it and choose its options', async () => {
    const call = calls({ name: 'execute_code', arguments: { code: '1' } })
    const { chat, gateway } = await chatting([call, says('Well.')], { servers, config: agent })
    await ask(chat, 'x', { codeExecution: { timeoutMs: 5 } })
    expect(gateway.calls[0]?.input.arguments.value).toEqual({ code: '1', environment: 'scratch', timeout_ms: 5 })
  })

  test("S7: a timeout above the sandbox's limit becomes that limit", async () => {
    const call = calls({ name: 'execute_code', arguments: { code: '1' } })
    const config = { ...on, codeExecution: { ...on.codeExecution, timeout: '1m' } }
    const { chat, gateway } = await chatting([call, says('Well.'), call, says('Well.')], { servers, config })
    for (const request of [{}, { codeExecution: { timeoutMs: 60_000 } }]) await ask(chat, 'x', request)
    const timeouts = gateway.calls.map(({ input }) => input.arguments.value.timeout_ms)
    expect(timeouts).toEqual([30_000, 30_000])
  })
})

describe('a malformed schema', () => {
  const withSchema = (name: string, inputSchema: unknown) =>
    withDefinition(name, { inputSchema: inputSchema as Record<string, unknown> })

  test('S3: loses only its invalid keywords', async () => {
    const odd = {
      type: 'object',
      properties: { a: { type: 'sting', enum: [] }, b: { $ref: '#/$defs/gone' }, c: { type: 'string', pattern: '(' } },
      required: 'a',
    }
    const { chat, server } = await chatting([calls({ name: 'odd', arguments: { a: 1 } }), says('Well.')], {
      config: agent,
      servers: { strange: withSchema('odd', odd), weather: [forecast] },
    })
    expect((await ask(chat, 'x')).text).toBe('Well.')
    expect(server.asked[0]?.body.tools?.[0]?.function.parameters).toEqual({
      type: 'object',
      properties: { a: {}, b: {}, c: { type: 'string' } },
    })
  })

  test('S3: only a tool whose schema is not an object is left out', async () => {
    const { tools, log } = await offered({
      servers: { strange: withSchema('odd', { type: 'string' }), weather: [forecast] },
    })
    expect(tools).toEqual(['weather__forecast'])
    expect(log.lines.map(({ message }) => message)).toContainEqual(expect.stringContaining('not offered'))
  })
})
