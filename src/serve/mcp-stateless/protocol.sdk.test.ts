import { PassThrough } from 'node:stream'
import { Client, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { callOf } from '../../core/call.fixture.ts'
import { createLineReader } from '../../wire/bytes.ts'
import type { TestAccess } from '../access.fixture.ts'
import { info, token } from '../http/server.fixture.ts'
import { serveStdio } from '../stdio.ts'
import { annotated, createModernAccess, openStatelessServer, prefix } from './stateless.fixture.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})

/** The official client's end of a pair of pipes. */
function pipeTransport(input: PassThrough, output: PassThrough): Transport {
  const transport: Transport = {
    async start() {
      const line = (bytes: Buffer) => transport.onmessage?.(JSON.parse(String(bytes)))
      const reader = createLineReader({ maxLength: 1e7, line, tooLong() {} })
      output.on('data', (chunk: Buffer) => reader.push(chunk)).on('end', () => transport.onclose?.())
    },
    async send(message) {
      input.write(`${JSON.stringify(message)}\n`)
    },
    async close() {
      input.end()
      transport.onclose?.()
    },
  }
  return transport
}

async function overHttp() {
  const server = open.use(await openStatelessServer())
  const withToken = { requestInit: { headers: { Authorization: `Bearer ${token}` } } }
  return { access: server.access, transport: new StreamableHTTPClientTransport(new URL(server.server.url), withToken) }
}

async function overPipes() {
  const input = new PassThrough()
  const output = new PassThrough()
  const access = createModernAccess()
  const { caller } = callOf()
  const served = serveStdio({ input, output, access, info, caller, clock: createManualClock(), log: createKeptLog() })
  open.defer(async () => {
    input.end()
    await served
  })
  return { access, transport: pipeTransport(input, output) }
}

type Mode = 'auto' | { pin: string }

async function connect(way: () => Promise<{ access: TestAccess; transport: Transport }>, mode: Mode = 'auto') {
  const { access, transport } = await way()
  const client = new Client(
    { name: 'sdk', version: '1' },
    { capabilities: { elicitation: {}, sampling: {}, roots: {} }, versionNegotiation: { mode } },
  )
  const heard: unknown[] = []
  client.setRequestHandler('elicitation/create', ({ params }) => {
    heard.push(params.message)
    return { action: 'accept', content: { said: params.message } }
  })
  client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///a' }] }))
  client.setNotificationHandler('notifications/message', ({ params }) => void heard.push(params.data))
  client.setNotificationHandler('notifications/tools/list_changed', () => void heard.push('tools'))
  client.setNotificationHandler('notifications/prompts/list_changed', () => void heard.push('prompts'))
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => void heard.push(params.uri))
  await client.connect(transport)
  open.defer(() => client.close())
  return { client, access, heard }
}

const textOf = ({ content }: { content: unknown }) => JSON.parse((content as [{ text: string }])[0].text)

const elicit = (message: string) => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties: { said: { type: 'string' } } } },
})

describe.each([
  ['HTTP', overHttp],
  ['pipes', overPipes],
])('B2: the official client in the stateless era, over %s', (_name, way) => {
  test.each<[string, Mode]>([
    ['by itself', 'auto'],
    ['when told', { pin: '2026-07-28' }],
  ])('finds out %s', async (_how, mode) => {
    const { client } = await connect(way, mode)
    expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28')
    expect(client.getServerVersion()).toMatchObject({ name: 'toolway' })
    expect(client.getInstructions()).toBe('Use the tools.')
    expect(client.getServerCapabilities()).toMatchObject({ logging: {}, resources: { subscribe: true } })
  })

  test('lists, calls, reads, prompts and completes', async () => {
    const { client } = await connect(way)
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('pretty')
    const echoed = await client.callTool({ name: 'echo', arguments: { a: 1 } })
    expect(echoed.content).toEqual([{ type: 'text', text: '{"a":1}' }])
    expect((await client.readResource({ uri: 'test://日本' })).contents).toEqual([{ uri: 'test://日本', text: 'text' }])
    expect((await client.listResources()).resources[0]?.uri).toBe('test://static')
    expect((await client.listResourceTemplates()).resourceTemplates[0]?.uriTemplate).toBe('test://{id}')
    expect((await client.listPrompts()).prompts[0]?.name).toBe('refused')
    expect((await client.getPrompt({ name: 'greet' })).messages).toHaveLength(1)
    const ref = { type: 'ref/prompt' as const, name: 'greet' }
    expect((await client.complete({ ref, argument: { name: 'x', value: 'y' } })).completion.total).toBe(1)
  })

  test('E1: sees failures as they are meant', async () => {
    const { client } = await connect(way)
    const refused = await client.callTool({ name: 'refuse', arguments: { code: 'RATE_LIMITED' } })
    expect(refused.isError).toBe(true)
    await expect(client.callTool({ name: 'nothing' })).rejects.toMatchObject({ code: -32602 })
    const gone = client.readResource({ uri: 'nothing://here' })
    await expect(gone).rejects.toMatchObject({ code: -32602, data: { uri: 'nothing://here' } })
    const questions = [{ method: 'elicitation/create', params: { mode: 'url', message: '', url: 'https://a.example' } }]
    const incapable = client.callTool({ name: 'ask_all', arguments: { questions } })
    await expect(incapable).rejects.toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { elicitation: { url: {} } } },
    })
  })

  test('answers questions in mid-call, several at once and one after another', async () => {
    const { client, heard } = await connect(way)
    const both = await client.callTool({
      name: 'ask_all',
      arguments: { questions: [elicit('one'), elicit('two'), { method: 'roots/list' }] },
    })
    const accepted = (said: string) => ({ action: 'accept', content: { said } })
    expect(textOf(both)).toEqual([accepted('one'), accepted('two'), { roots: [{ uri: 'file:///a' }] }])
    const turns = await client.callTool({ name: 'ask_in_turn', arguments: { questions: ['a', 'b', 'c'].map(elicit) } })
    expect(textOf(turns)).toEqual(['a', 'b', 'c'].map(accepted))
    expect(heard).toEqual(['one', 'two', 'a', 'b', 'c'])
  })

  test('answers a server of its own era', async () => {
    const { client } = await connect(way)
    expect(textOf(await client.callTool({ name: 'more_wanted' }))).toEqual({
      inputResponses: { user_name: { action: 'accept', content: { said: '?' } } },
      requestState: 'theirs',
    })
  })

  test('gets progress before the result', async () => {
    const { client } = await connect(way)
    const seen: number[] = []
    await client.callTool({ name: 'progress' }, { onprogress: ({ progress }) => void seen.push(progress) })
    expect(seen).toEqual([1, 2, 3])
  })

  test('gets the log messages that it asks for', async () => {
    const { client, heard } = await connect(way)
    await client.callTool({ name: 'log' })
    expect(heard).toEqual([])
    await client.callTool({ name: 'log', _meta: { [`${prefix}logLevel`]: 'info' } })
    await until(() => heard.length > 0, { what: 'the message' })
    expect(heard).toEqual(['hi'])
  })

  test('cancels', async () => {
    const { client, access } = await connect(way)
    const aborting = new AbortController()
    const waiting = client.callTool({ name: 'wait' }, { signal: aborting.signal }).catch((error: Error) => error)
    const call = await until(() => access.calls[0], { what: 'the call' })
    aborting.abort()
    expect(await waiting).toBeInstanceOf(Error)
    await until(() => call.signal.aborted, { what: 'the cancellation' })
  })

  test('listens, and stops', async () => {
    const { client, access, heard } = await connect(way)
    const filter = { toolsListChanged: true, resourceSubscriptions: ['test://static'] }
    const subscription = await client.listen(filter)
    expect(subscription.honoredFilter).toEqual(filter)
    access.change('prompt')
    access.change('tool')
    access.update('test://static')
    await until(() => heard.length === 2, { what: 'the news' })
    expect(heard).toEqual(['tools', 'test://static'])
    await subscription.close()
    await until(() => access.followed.length === 0, { what: 'the end' })
  })
})

describe('B2: the official client over HTTP', () => {
  test('repeats arguments in headers', async () => {
    const { client } = await connect(overHttp)
    const { tools } = await client.listTools()
    const toolDefinition = { ...tools[0], name: 'in_headers', inputSchema: annotated } as (typeof tools)[number]
    const args = { region: 'Zürich', count: 7, deep: { dry: true } }
    expect(textOf(await client.callTool({ name: 'in_headers', arguments: args }, { toolDefinition }))).toEqual(args)
  })
})
