import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, type Sdk, stdioProgram, type TestClient } from '../../fixtures/clients.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { startEverything, stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

const open = new AsyncDisposableStack()
let files: Folder
let toolway: LocalToolway
let directly: Record<Sdk, TestClient>

beforeAll(async () => {
  files = open.use(await temporaryFolder())
  await writeFile(join(files.path, 'note.txt'), 'a file behind Toolway')
  const [http, sse] = await Promise.all([startEverything('streamableHttp'), startEverything('sse')])
  open.use(http)
  open.use(sse)
  toolway = open.use(
    await startToolway({
      history: {},
      mcpServers: {
        everything: stdioServers.everything(),
        remote: { url: http.url },
        older: { url: sse.url, transport: 'sse' },
        files: stdioServers.filesystem(files.path),
        memory: stdioServers.memory(join(files.path, 'memory.jsonl')),
        probe: stdioServers.probe(),
      },
      discovery: { listDeadline: '20s' },
    }),
  )
  const server = { endpoint: { url: http.url, token: '' } }
  const [v1, v2] = await Promise.all([connect('v1', server), connect('v2', server)])
  directly = { v1: open.use(v1), v2: open.use(v2) }
})

afterAll(() => open.disposeAsync())

const transports = { http: () => ({ endpoint: toolway }), stdio: () => stdioProgram(toolway.configFile) }
const everythings = ['everything', 'remote', 'older'] as const

describe.each<[Sdk, keyof typeof transports]>([
  ['v1', 'http'],
  ['v2', 'http'],
  ['v1', 'stdio'],
  ['v2', 'stdio'],
])('the official client %s over %s', (sdk, transport) => {
  let client: TestClient
  /** The same client, connected to the server itself. */
  let direct: TestClient

  beforeAll(async () => {
    direct = directly[sdk]
    client = await connect(sdk, transports[transport]())
  })

  afterAll(() => client[Symbol.asyncDispose]())

  test('F1, T3: lists every tool of every server beside the native ones, and says where each comes from', async () => {
    const tools = await client.listTools()
    const names = tools.map(({ name }) => name)
    const own = (await direct.listTools()).map(({ name }) => name)
    for (const server of everythings)
      expect(names).toEqual(expect.arrayContaining(own.map((name) => `${server}__${name}`)))
    expect(names).toEqual(expect.arrayContaining(['files__read_text_file', 'memory__create_entities', 'hash', 'time']))
    expect(new Set(names).size).toBe(names.length)
    for (const { name, _meta } of tools) {
      const [server] = name.split('__') as [string]
      const forwarded = name.includes('__')
      expect(_meta, name).toMatchObject({
        'dev.toolway/source': forwarded ? 'forwarded' : 'native',
        'dev.toolway/server': forwarded ? server : expect.stringMatching(/^(native|toolway)$/),
      })
    }
  })

  test("F1, B2: a listed tool is its server's own but for its name and our marks", async () => {
    const [listed, original] = await Promise.all([client.request('tools/list'), direct.request('tools/list')])
    const served = (listed.tools as Definition[]).find(({ name }) => name === 'everything__get-structured-content')
    const own = (original.tools as Definition[]).find(({ name }) => name === 'get-structured-content')
    const { _meta, ...rest } = served as Definition
    expect({ ...rest, name: own?.name }).toEqual({ ...own })
    expect(own).toHaveProperty('outputSchema')
  })

  test.each(everythings)('T3, G1: calls a tool of %s', async (server) => {
    const { content } = await client.callTool(`${server}__echo`, { message: 'grüß dich 😀' })
    expect(content).toEqual([{ type: 'text', text: 'Echo: grüß dich 😀' }])
  })

  test('T3: calls the tools of the filesystem and memory servers', async () => {
    const read = await client.callTool('files__read_text_file', { path: join(files.path, 'note.txt') })
    expect(read.content).toEqual([{ type: 'text', text: 'a file behind Toolway' }])
    const entity = { name: `${sdk} ${transport}`, entityType: 'client', observations: ['was here'] }
    await client.callTool('memory__create_entities', { entities: [entity] })
    const found = await client.callTool('memory__open_nodes', { names: [entity.name] })
    expect(found.structuredContent).toMatchObject({ entities: [entity] })
  })

  test.each(everythings)('B2: an image from %s is what the server itself sends', async (server) => {
    const through = await client.callTool(`${server}__get-tiny-image`)
    expect(through.content).toContainEqual(expect.objectContaining({ type: 'image', mimeType: 'image/png' }))
    expect(JSON.stringify(through)).toBe(JSON.stringify(await direct.callTool('get-tiny-image')))
  })

  test.each(everythings)('B2: structured content from %s fits the schema that was listed', async (server) => {
    await client.listTools()
    const result = await client.callTool(`${server}__get-structured-content`, { location: 'Chicago' })
    expect(result.structuredContent).toEqual({ temperature: 36, conditions: 'Light rain / drizzle', humidity: 82 })
  })

  test('B2: a tool of a later protocol passes through with all its unknown fields', async () => {
    const result = await client.request('tools/call', { name: 'probe__odd', arguments: {} })
    expect(result).toEqual({
      content: [
        { type: 'hologram', beam: { depth: [1, 2.5e3, null] } },
        { type: 'text', text: '€ 😀 \u0000', extra: true },
      ],
      future: { unheard: 'of' },
      _meta: { 'example.com/key': 1 },
    })
  })

  test.each(everythings)('B2: lists and reads the resources of %s', async (server) => {
    const all = await client.listResources()
    const own = all.filter(({ _meta }) => _meta?.['dev.toolway/server'] === server)
    expect(own.map(({ name }) => name)).toContain('features.md')
    const features = own.find(({ name }) => name === 'features.md')
    const { contents } = await client.readResource(features?.uri as string)
    const { contents: original } = await direct.readResource('demo://resource/static/document/features.md')
    expect(contents).toEqual([{ ...original[0], uri: features?.uri }])
    expect(new Set(all.map(({ uri }) => uri)).size).toBe(all.length)
  })

  test.each(everythings)(
    'B2: reads a resource of %s through its template, and follows a link in a result',
    async (server) => {
      const uri = (await templateOf(client, server)).replace('{resourceId}', '7')
      const { contents } = await client.readResource(uri)
      expect(contents).toMatchObject([{ uri, text: expect.stringContaining('Resource 7:') }])

      const { content } = await client.callTool(`${server}__get-resource-links`, { count: 2 })
      const links = content.filter((block) => block.type === 'resource_link')
      expect(links).toHaveLength(2)
      for (const link of links) {
        const linked = await client.readResource(link.uri)
        expect(linked.contents).toMatchObject([{ uri: link.uri }])
      }
    },
  )

  test.each(everythings)('B2: lists, gets and completes the prompts of %s', async (server) => {
    const prompts = await client.listPrompts()
    expect(prompts.map(({ name }) => name)).toContain(`${server}__args-prompt`)
    const prompt = await client.getPrompt(`${server}__args-prompt`, { city: 'Bern' })
    expect(prompt.messages).toEqual([{ role: 'user', content: { type: 'text', text: "What's weather in Bern?" } }])
    const { completion } = await client.complete({
      ref: { type: 'ref/prompt', name: `${server}__completable-prompt` },
      argument: { name: 'name', value: 'A' },
      context: { arguments: { department: 'Engineering' } },
    })
    expect(completion.values).toEqual(['Alice'])
  })

  test('B2: completes the variable of a resource template', async () => {
    const { completion } = await client.complete({
      ref: { type: 'ref/resource', uri: await templateOf(client, 'remote') },
      argument: { name: 'resourceId', value: '12' },
    })
    expect(completion.values).toEqual(['12'])
  })

  test.each(everythings)('B2: progress of %s reaches the call that asked for it', async (server) => {
    const steps: unknown[] = []
    const args = { duration: 0.2, steps: 4 }
    await client.callTool(`${server}__trigger-long-running-operation`, args, {
      onprogress: ({ progress, total }) => steps.push([progress, total]),
    })
    // The last one may come with the answer itself, too late for a client that has just stopped listening.
    expect(steps.slice(0, 3)).toEqual([1, 2, 3].map((step) => [step, 4]))
  })

  test('F10: a cancelled call ends at once, also at the server, and nothing stays pending', async () => {
    const before = await stateOf(client)
    const abort = new AbortController()
    const call = client.callTool('probe__wait', {}, { signal: abort.signal })
    const failure = expect(call).rejects.toThrow()
    await until(async () => (await stateOf(client)).waiting === before.waiting + 1, { what: 'the call to arrive' })
    abort.abort('changed my mind')
    await failure
    const after = { waiting: before.waiting, cancelled: before.cancelled + 1 }
    await until(async () => JSON.stringify(await stateOf(client)) === JSON.stringify(after), {
      what: 'the cancellation',
    })
  })

  test.each(everythings)('F10: after a cancelled operation of %s the next call is quick', async (server) => {
    const abort = new AbortController()
    const args = { duration: 30, steps: 600 }
    const call = client.callTool(`${server}__trigger-long-running-operation`, args, {
      signal: abort.signal,
      onprogress: () => abort.abort('enough'),
    })
    await expect(call).rejects.toThrow()
    const { content } = await client.callTool(`${server}__echo`, { message: 'next' })
    expect(content).toEqual([{ type: 'text', text: 'Echo: next' }])
  })

  test('T2: a result with isError is a result', async () => {
    const result = await client.callTool('probe__refuse', { text: 'the file is locked' })
    expect(result).toEqual({ content: [{ type: 'text', text: 'the file is locked' }], isError: true })
    const missing = await client.callTool('files__read_text_file', { path: join(files.path, 'missing.txt') })
    expect(missing).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('ENOENT') }] })
    expect(missing._meta).toBeUndefined()
  })

  test('T2: an error of a server reaches the caller with its code, message and data', async () => {
    const error = { code: 4711, message: 'quota used up', data: { limit: 3, retry: ['tomorrow'] } }
    await expect(client.callTool('probe__fail', { error })).rejects.toMatchObject({
      code: 4711,
      message: expect.stringContaining('quota used up'),
      data: error.data,
    })
  })

  test('T2: so do the errors of a real server about prompts and resources', async () => {
    const own = await failureOf(direct.getPrompt('args-prompt', {}))
    expect(await failureOf(client.getPrompt('everything__args-prompt', {}))).toEqual(own)
    const bad = (await templateOf(client, 'everything')).replace('{resourceId}', 'zero')
    const unread = await failureOf(direct.readResource('demo://resource/dynamic/text/zero'))
    expect(await failureOf(client.readResource(bad))).toEqual(unread)
  })
})

interface Definition {
  readonly name: string
  readonly _meta?: Record<string, unknown>
}

/** The template of a server's text resources, as it is served. */
async function templateOf(client: TestClient, server: string): Promise<string> {
  const found = (await client.listResourceTemplates()).find(({ name, _meta }) => {
    return name === 'Dynamic Text Resource' && _meta?.['dev.toolway/server'] === server
  })
  return found?.uriTemplate ?? expect.unreachable(`${server} has no such template`)
}

async function stateOf(client: TestClient): Promise<{ waiting: number; cancelled: number }> {
  const { structuredContent } = await client.callTool('probe__state')
  const { waiting, cancelled } = structuredContent as { waiting: number; cancelled: number }
  return { waiting, cancelled }
}

async function failureOf(answer: Promise<unknown>): Promise<unknown> {
  const { code, message, data } = (await answer.then(
    () => expect.unreachable('it was answered'),
    (error) => error,
  )) as { code: number; message: string; data?: unknown }
  return { code, message, data }
}
