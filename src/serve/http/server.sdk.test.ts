import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CreateMessageRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { Agent, fetch as undiciFetch } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../../../tests/fixtures/until.ts'
import { openTestServer, token } from './server.fixture.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})

const identity = { name: 'sdk', version: '1' }
const withToken = { requestInit: { headers: { Authorization: `Bearer ${token}` } } }
const answer = { role: 'assistant' as const, model: 'm', content: { type: 'text' as const, text: 'hello' } }

/** A way out whose connections break when a test says so. */
function brittleFetch() {
  const agents = new Set<Agent>()
  return {
    fetch: ((url: string | URL, init?: RequestInit) => {
      const dispatcher = new Agent()
      agents.add(dispatcher)
      return undiciFetch(url, { ...init, dispatcher } as Parameters<typeof undiciFetch>[1])
    }) as unknown as typeof fetch,
    async breakConnections() {
      const broken = [...agents]
      agents.clear()
      await Promise.all(broken.map((agent) => agent.destroy()))
    },
  }
}

async function connectV1() {
  const server = open.use(await openTestServer())
  const { fetch, breakConnections } = brittleFetch()
  const client = new ClientV1(identity, { capabilities: { sampling: {} } })
  const transport = new TransportV1(new URL(server.server.url), { ...withToken, fetch })
  const logged: string[] = []
  const updates: string[] = []
  let changes = 0
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++)
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logged.push(params.level))
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void updates.push(params.uri))
  client.setRequestHandler(CreateMessageRequestSchema, () => answer)
  await client.connect(transport as Parameters<typeof client.connect>[0])
  open.defer(breakConnections)
  open.defer(() => client.close())
  const again = async (sessionId: string) => {
    const next = new ClientV1(identity)
    const transport = new TransportV1(new URL(server.server.url), { ...withToken, sessionId })
    await next.connect(transport as Parameters<typeof client.connect>[0])
    open.defer(() => next.close())
    return next
  }
  return { ...server, client, transport, changes: () => changes, logged, updates, breakConnections, again }
}

async function connectV2() {
  const server = open.use(await openTestServer())
  const { fetch, breakConnections } = brittleFetch()
  const client = new ClientV2(identity, { capabilities: { sampling: {} } })
  const transport = new TransportV2(new URL(server.server.url), { ...withToken, fetch })
  const logged: string[] = []
  const updates: string[] = []
  let changes = 0
  client.setNotificationHandler('notifications/tools/list_changed', () => void changes++)
  client.setNotificationHandler('notifications/message', ({ params }) => void logged.push(params.level))
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => void updates.push(params.uri))
  client.setRequestHandler('sampling/createMessage', () => answer)
  await client.connect(transport)
  open.defer(breakConnections)
  open.defer(() => client.close())
  const again = async (sessionId: string) => {
    const next = new ClientV2(identity)
    await next.connect(new TransportV2(new URL(server.server.url), { ...withToken, sessionId }))
    open.defer(() => next.close())
    return next
  }
  return { ...server, client, transport, changes: () => changes, logged, updates, breakConnections, again }
}

describe.each([
  ['v1', connectV1 as unknown as typeof connectV2],
  ['v2', connectV2],
])('B2: the official client %s', (_name, connect) => {
  test('lists, calls, reads, prompts and completes', async () => {
    const { client } = await connect()
    expect(client.getServerVersion()).toMatchObject({ name: 'toolway' })
    expect(client.getInstructions()).toBe('Use the tools.')
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain('echo')
    const echoed = await client.callTool({ name: 'echo', arguments: { a: 1 } })
    expect(echoed.content).toEqual([{ type: 'text', text: '{"a":1}' }])
    expect((await client.readResource({ uri: 'test://7' })).contents).toEqual([{ uri: 'test://7', text: 'text' }])
    expect((await client.listResources()).resources[0]?.uri).toBe('test://static')
    expect((await client.listResourceTemplates()).resourceTemplates[0]?.uriTemplate).toBe('test://{id}')
    expect((await client.listPrompts()).prompts[0]?.name).toBe('refused')
    expect((await client.getPrompt({ name: 'greet' })).messages).toHaveLength(1)
    const ref = { type: 'ref/prompt' as const, name: 'greet' }
    expect((await client.complete({ ref, argument: { name: 'x', value: 'y' } })).completion.total).toBe(1)
    await client.ping()
  })

  test('E1: sees results and errors as they are meant', async () => {
    const { client } = await connect()
    expect(await client.callTool({ name: 'refuse', arguments: { code: 'RATE_LIMITED' } })).toMatchObject({
      isError: true,
    })
    await expect(client.callTool({ name: 'nothing' })).rejects.toMatchObject({ code: -32602 })
    await expect(client.callTool({ name: 'server_error' })).rejects.toMatchObject({ code: -32099, data: { n: 100 } })
  })

  test('gets progress before the result', async () => {
    const { client } = await connect()
    const seen: number[] = []
    const onprogress = ({ progress }: { progress: number }) => void seen.push(progress)
    await callWith(client, { name: 'progress' }, { onprogress })
    expect(seen).toEqual([1, 2, 3])
  })

  test('cancels', async () => {
    const { client, access } = await connect()
    const cancelling = new AbortController()
    const pending = callWith(client, { name: 'wait' }, { signal: cancelling.signal })
    await until(() => access.calls.length === 1, { what: 'the call' })
    cancelling.abort('enough')
    await expect(pending).rejects.toThrow()
    await until(() => access.calls[0]?.signal.aborted, { what: 'the cancellation' })
    await client.ping()
  })

  test('G3: answers what a call asks of it', async () => {
    const { client } = await connect()
    const { content } = await client.callTool({ name: 'ask' })
    expect(content).toEqual([{ type: 'text', text: expect.stringContaining('"hello"') }])
  })

  test('F4: gets a notification of a changed list', async () => {
    const { access, changes } = await connect()
    access.change('tool')
    await until(() => changes() === 1, { what: 'the notification' })
  })

  test('sets its log level', async () => {
    const { client, logged } = await connect()
    await client.setLoggingLevel('error')
    await client.callTool({ name: 'log_all' })
    expect(logged).toEqual(['error', 'critical', 'alert', 'emergency'])
  })

  test('follows a resource until it does not want to any more', async () => {
    const { client, access, updates } = await connect()
    const uri = 'test://7'
    await client.subscribeResource({ uri })
    access.update(uri)
    await until(() => updates.length === 1, { what: 'the update' })
    await client.unsubscribeResource({ uri })
    expect(access.followed).toEqual([])
    expect(updates).toEqual([uri])
  })

  test('resumes its call when its connection breaks', async () => {
    const { client, access, logged, breakConnections } = await connect()
    const pending = client.callTool({ name: 'start' })
    await until(() => logged.length === 1, { what: 'the first message' })
    await breakConnections()
    access.release()
    expect((await pending).content).toEqual([{ type: 'text', text: 'finished' }])
    expect(access.calls[0]?.signal.aborted).toBe(false)
    expect(access.calls).toHaveLength(1)
  })

  test('fetches the answer to a call of a client that is gone, by its resumption token', async () => {
    const { client, access, transport, again } = await connect()
    const tokens: string[] = []
    const lost = callWith(client, { name: 'start' }, { onresumptiontoken: (token: string) => tokens.push(token) })
    lost.catch(() => {})
    await until(() => tokens.length === 2, { what: 'the tokens' })
    const sessionId = transport.sessionId as string
    await client.close()
    access.release()
    const next = await again(sessionId)
    const answer = await callWith(next, { name: 'start' }, { resumptionToken: tokens[1] })
    expect(answer).toMatchObject({ content: [{ type: 'text', text: 'finished' }] })
    expect(access.calls).toHaveLength(1)
  })

  test('ends its session', async () => {
    const { transport, client } = await connect()
    await transport.terminateSession()
    await expect(client.ping()).rejects.toThrow()
  })

  test('B6: gets an error about its wrong token', async () => {
    const { server } = open.use(await openTestServer({ token: 'another' }))
    const wrong =
      _name === 'v1'
        ? new ClientV1(identity).connect(
            new TransportV1(new URL(server.url), withToken) as Parameters<ClientV1['connect']>[0],
          )
        : new ClientV2(identity).connect(new TransportV2(new URL(server.url), withToken))
    await expect(wrong).rejects.toThrow(/token|401|Unauthorized/i)
  })
})

/** The generations differ in where they take the options. */
const callWith = (client: ClientV2, params: { name: string }, options: object): Promise<unknown> =>
  client instanceof ClientV2
    ? client.callTool(params, options)
    : (client as unknown as ClientV1).callTool(params, undefined, options)
