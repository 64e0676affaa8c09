import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OlderClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OlderTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startCommand } from '../../fixtures/command.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'

const open = new AsyncDisposableStack()
const servers = { mcpServers: { report: stdioServers.report() }, sandbox: { minIsolation: 'worker' } }
const configured = {
  ...servers,
  agents: {
    reader: { allow: { servers: ['*'] }, expose: 'both', results: { maxTokens: 1_000 } },
    'reader.junior': {},
    other: { allow: { servers: ['*'] }, expose: 'both', results: { maxTokens: 1_000 } },
    whole: { allow: { servers: ['*'] }, results: { maxTokens: 0 } },
  },
  defaults: { agent: 'reader' },
}

let plain: LocalToolway
let limited: LocalToolway

beforeAll(async () => {
  plain = open.use(await startToolway(servers))
  limited = open.use(await startToolway(configured))
  await Promise.all([plain.gateway.refresh(), limited.gateway.refresh()])
})

afterAll(() => open.disposeAsync())

type Era = 'session' | 'stateless'

async function connect(
  toolway: Pick<LocalToolway, 'url' | 'token'>,
  era: Era,
  { name = 'story', agent = '' } = {},
): Promise<Client> {
  const mode = era === 'stateless' ? { pin: '2026-07-28' } : 'legacy'
  const client = new Client({ name, version: '1.0.0' }, { versionNegotiation: { mode } })
  const headers = { authorization: `Bearer ${toolway.token}`, ...(agent && { 'toolway-agent': agent }) }
  await client.connect(new StreamableHTTPClientTransport(new URL(toolway.url), { requestInit: { headers } }))
  open.defer(() => client.close())
  return client
}

const wholeLines = (count: number): string =>
  Array.from({ length: count }, (_, id) => `${id}: The record number ${id} of the report`).join('\n')

interface Told {
  readonly handle: string
  readonly tokens: number
  readonly maxTokens: number
  readonly missing: { readonly characters: number; readonly ofCharacters: number }
}

type Called = Awaited<ReturnType<Client['callTool']>>

const told = ({ _meta }: Called): Told => _meta?.['dev.toolway/result'] as Told
const texts = ({ content }: Called): string[] => content.flatMap((block) => (block.type === 'text' ? [block.text] : []))
const length = (result: Called): number => texts(result).join('').length

/** Reads a whole result by handle, part by part. */
async function readAll(client: Client, handle: string): Promise<string> {
  let text = ''
  for (let offset = 0; ; ) {
    const part = await client.callTool({ name: 'read_result', arguments: { handle, offset } })
    const { end, characters } = told(part) as unknown as { end: number; characters: number }
    text += texts(part)[0]
    if (end === characters) return text
    offset = end
  }
}

describe.each(['session', 'stateless'] as const)('a client of the %s era', (era) => {
  test('W7: a result over the limit is cut between lines, and read_result and a resource return the rest exactly', async () => {
    const client = await connect(limited, era)
    const result = await client.callTool({ name: 'report__lines', arguments: { count: 1_000 } })
    const whole = wholeLines(1_000)
    const [text = '', notice] = texts(result)
    expect(length(result)).toBeLessThanOrEqual(4_000)
    const [head = '', tail = ''] = text.split(/… .* left out here …/)
    expect([whole.startsWith(head), head.endsWith('\n'), whole.endsWith(tail), tail.startsWith('\n')]).not.toContain(
      false,
    )
    const { handle, tokens, maxTokens, missing } = told(result)
    expect({ tokens, maxTokens, of: missing.ofCharacters }).toEqual({
      tokens: Math.ceil(whole.length / 4),
      maxTokens: 1_000,
      of: whole.length,
    })
    expect(notice).toContain(`${missing.characters} of ${whole.length} characters`)
    expect(await readAll(client, handle)).toBe(whole)
    const link = result.content.find((block) => block.type === 'resource_link')
    expect(link).toMatchObject({ uri: `toolway://results/${handle}` })
    const read = await client.readResource({ uri: `toolway://results/${handle}` })
    expect(read.contents).toEqual([{ uri: `toolway://results/${handle}`, mimeType: 'text/plain', text: whole }])
    const found = await client.callTool({ name: 'read_result', arguments: { handle, pattern: 'number 99[5-9] ' } })
    expect(texts(found)[0]).toBe(whole.split('\n').slice(995).join('\n'))
  })

  test('W7: JSON is cut between elements, and stays JSON; read_result returns the value at a path', async () => {
    const client = await connect(limited, era)
    const result = await client.callTool({ name: 'report__rows', arguments: { count: 500 } })
    const rows = JSON.parse(texts(result)[0] ?? '')
    expect(rows[0]).toEqual({ id: 0, name: 'The record number 0 of the report' })
    expect(rows.at(-1)).toEqual({ id: 499, name: 'The record number 499 of the report' })
    expect(rows).toContainEqual(`… ${500 - rows.length + 1} of 500 items left out here …`)
    const { handle } = told(result)
    for (const path of ['$[250].name', '/250/name']) {
      const found = await client.callTool({ name: 'read_result', arguments: { handle, path } })
      expect(texts(found)).toEqual(['The record number 250 of the report'])
    }
  })

  test('W7: a client that knows the output schema accepts a cut result', async () => {
    const client = await connect(limited, era)
    const { tools } = await client.listTools()
    expect(tools.find(({ name }) => name === 'report__table')?.outputSchema).toBeDefined()
    const cut = await client.callTool({ name: 'report__table', arguments: { count: 500 } })
    const { rows } = cut.structuredContent as { rows: object[] }
    expect(rows.length).toBeGreaterThan(5)
    expect(rows.length).toBeLessThan(100)
    expect(length(cut) + JSON.stringify(cut.structuredContent).length).toBeLessThanOrEqual(4_000)
    const found = await client.callTool({
      name: 'read_result',
      arguments: { handle: told(cut).handle, path: '$.rows[77].id' },
    })
    expect(texts(found)).toEqual(['77'])
    // The schema allows no part, so the client gets everything.
    const strict = await client.callTool({ name: 'report__strict', arguments: { count: 1_000 } })
    expect(told(strict)).toBeUndefined()
    expect((strict.structuredContent as { rows: object[] }).rows).toHaveLength(1_000)
  })

  test('W7: another agent cannot read a result, and one that may not use the tool any more is refused', async () => {
    const own = await open.use(await startToolway(configured))
    await own.gateway.refresh()
    const client = await connect(own, era)
    const { handle } = told(await client.callTool({ name: 'report__lines', arguments: { count: 1_000 } }))
    const uri = `toolway://results/${handle}`
    const other = await connect(own, era, { agent: 'other' })
    const refused = await other.callTool({ name: 'read_result', arguments: { handle } })
    expect([refused.isError, texts(refused)[0]]).toEqual([true, expect.stringContaining('There is no result')])
    await expect(other.readResource({ uri })).rejects.toThrow('There is no result')
    const { reader } = configured.agents
    const denied = { ...reader, deny: { tools: { report: ['lines'] } } }
    await own.rewrite({ ...configured, agents: { ...configured.agents, reader: denied } })
    await own.gateway.reload()
    const late = await client.callTool({ name: 'read_result', arguments: { handle } })
    expect([late.isError, texts(late)[0]]).toEqual([true, expect.stringContaining('lines')])
    await expect(client.readResource({ uri })).rejects.toThrow()
  })

  test('W7: a client that cuts results itself gets 20,000 tokens by default, and others get everything', async () => {
    const capped = await connect(plain, era, { name: 'claude-code' })
    const names = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name)
    expect(await names(capped)).toContain('read_result')
    expect((await capped.listResourceTemplates()).resourceTemplates).toHaveLength(1)
    const cut = await capped.callTool({ name: 'report__lines', arguments: { count: 5_000 } })
    expect(length(cut)).toBeLessThanOrEqual(80_000)
    expect(await readAll(capped, told(cut).handle)).toBe(wholeLines(5_000))
    const free = await connect(plain, era)
    expect(await names(free)).not.toContain('read_result')
    expect((await free.listResourceTemplates()).resourceTemplates).toEqual([])
    const whole = await free.callTool({ name: 'report__lines', arguments: { count: 5_000 } })
    expect([texts(whole), whole._meta]).toEqual([[wholeLines(5_000)], undefined])
  })

  test('W7: calls of execute_tool and of batches have the limit of the agent, which a child inherits and 0 turns off', async () => {
    const asked = { server: 'report', tool: 'table', args: { count: 500 } }
    const one = async (agent: string) =>
      (await connect(limited, era, { agent })).callTool({ name: 'execute_tool', arguments: asked })
    const junior = await one('reader.junior')
    expect(junior.structuredContent).toBeUndefined()
    expect(length(junior)).toBeLessThanOrEqual(4_000)
    const whole = await one('whole')
    expect(texts(whole)[0]?.length).toBeGreaterThan(20_000)
    const client = await connect(limited, era)
    const calls = [1, 2, 3].map(() => asked)
    const batch = await client.callTool({ name: 'execute_tools', arguments: { calls } })
    expect(length(batch)).toBeLessThanOrEqual(4_000)
    const { results } = batch.structuredContent as { results: { result: Called }[] }
    const handles = results.map(({ result }) => told(result).handle)
    expect(new Set(handles).size).toBe(3)
    expect(JSON.parse(await readAll(client, handles[2] as string)).rows).toHaveLength(500)
  })

  test('W7: programs get whole results, and what they print has the limit', async () => {
    const client = await connect(limited, era)
    const code = (last: string) => `const { rows } = await tools.report.table({ count: 500 })\n${last}`
    const run = (last: string) => client.callTool({ name: 'execute_code', arguments: { code: code(last) } })
    expect(JSON.stringify(await run('return rows.length'))).toContain('500')
    expect(told(await run('return JSON.stringify(rows)'))).toMatchObject({ maxTokens: 1_000 })
  })
})

test('W7: the older official client accepts a cut result too, also by execute_tool', async () => {
  const client = new OlderClient({ name: 'story', version: '1.0.0' })
  const headers = { authorization: `Bearer ${limited.token}` }
  // The SDK's own types do not fit its interface with exact optional properties.
  await client.connect(new OlderTransport(new URL(limited.url), { requestInit: { headers } }) as never)
  open.defer(() => client.close())
  await client.listTools()
  const cut = await client.callTool({ name: 'report__table', arguments: { count: 500 } })
  expect(cut._meta).toHaveProperty(['dev.toolway/result', 'handle'])
  const asked = { server: 'report', tool: 'table', args: { count: 500 } }
  const nested = await client.callTool({ name: 'execute_tool', arguments: asked })
  expect(nested._meta).toHaveProperty(['dev.toolway/result', 'handle'])
})

test('W7: with workers, every worker returns the rest of a result', async () => {
  const toolway = open.use(await startCommand(configured, { words: ['--workers', '2'] }))
  const client = await connect(toolway, 'stateless')
  const { handle } = told(await client.callTool({ name: 'report__lines', arguments: { count: 1_000 } }))
  const clients = await Promise.all(Array.from({ length: 8 }, () => connect(toolway, 'stateless')))
  const found = await Promise.all(clients.map((other) => readAll(other, handle)))
  expect(new Set(found)).toEqual(new Set([wholeLines(1_000)]))
})
