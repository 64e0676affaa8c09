import { join } from 'node:path'
import { Client, InMemoryTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { App } from '@modelcontextprotocol/ext-apps'
import { AppBridge } from '@modelcontextprotocol/ext-apps/app-bridge'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { asRecord } from '../../../src/lib/is-record.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { rawModern } from '../../fixtures/raw-callers.ts'
import { type RpcAnswer, rawSession } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'

/*
 * The story of a host of MCP Apps with two published servers. Their pages call tools by the names that their own server
 * gave them.
 */

const open = new AsyncDisposableStack()
let toolway: LocalToolway
let folder: Folder

const modes = ['both', 'meta', 'code'] as const
const allow = { servers: ['*'] }

/** Tells by its answers which of two equal servers got a call. */
const logFile = (server: string) => join(folder.path, `${server}.log`)

beforeAll(async () => {
  folder = open.use(await temporaryFolder())
  toolway = open.use(
    await startToolway({
      mcpServers: {
        debug: stdioServers.debugApp(logFile('debug')),
        twin: stdioServers.debugApp(logFile('twin')),
        shadertoy: stdioServers.shadertoyApp(),
      },
      agents: Object.fromEntries(modes.map((mode) => [mode, { allow, expose: mode }])),
      sandbox: { minIsolation: 'worker' },
    }),
  )
  await toolway.gateway.refresh()
})

afterAll(() => open.disposeAsync())

type Answer = (method: string, params?: object) => Promise<RpcAnswer>

/** A client of an era that acts as one agent. */
async function clientOf(era: 'session' | 'stateless', agent: string): Promise<Answer> {
  const headers = { 'toolway-agent': agent }
  if (era === 'session') return (await rawSession(toolway, { headers })).answer
  const ask = rawModern(toolway, {}, headers)
  return async (method, params) => JSON.parse(await ask(method, params)) as RpcAnswer
}

const identity = { name: 'story', version: '1.0.0' }

/** The official client, as a host of apps configures it. */
async function hostOf(era: 'session' | 'stateless', agent: string): Promise<Client> {
  const mode = era === 'stateless' ? { pin: '2026-07-28' } : 'legacy'
  const extensions = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } }
  const client = new Client(identity, { capabilities: { extensions }, versionNegotiation: { mode } })
  const headers = { authorization: `Bearer ${toolway.token}`, 'toolway-agent': agent }
  await client.connect(new StreamableHTTPClientTransport(new URL(toolway.url), { requestInit: { headers } }))
  open.defer(() => client.close())
  return client
}

/** Shows a page as hosts do: reads it, and passes on what it asks for. */
async function show(client: Client, uri: string): Promise<App> {
  const { contents } = await client.readResource({ uri })
  expect(contents).toMatchObject([{ mimeType: 'text/html;profile=mcp-app', text: expect.stringContaining('<html') }])
  const [hostEnd, pageEnd] = InMemoryTransport.createLinkedPair()
  const app = new App(identity, {}, { autoResize: false })
  await new AppBridge(client, identity, { serverTools: {} }).connect(hostEnd)
  await app.connect(pageEnd)
  open.defer(() => app.close())
  return app
}

interface Tool {
  readonly name: string
  readonly _meta: { readonly 'dev.toolway/server': string; readonly ui?: { readonly resourceUri: string } }
}

const call = (answer: Answer, name: string, args = {}) => answer('tools/call', { name, arguments: args })
const textOf = ({ result, error }: RpcAnswer) => JSON.stringify(result ?? error)

describe.each(modes.flatMap((mode) => (['session', 'stateless'] as const).map((era) => ({ mode, era }))))(
  'expose: $mode, $era',
  ({ mode, era }) => {
    test('W3: a host finds a tool with a page, reads the page, and its calls reach the page’s own server', async () => {
      const answer = await clientOf(era, mode)
      const tools = (await answer('tools/list')).result?.tools as Tool[]
      const withPage = tools.filter(({ _meta }) => _meta.ui?.resourceUri !== undefined)
      expect(withPage.map(({ name }) => name)).toEqual([
        'debug__debug-tool',
        'twin__debug-tool',
        expect.stringContaining('shadertoy__'),
      ])
      expect(tools.filter(({ name }) => /debug-(refresh|log)/.test(name))).toEqual([])
      for (const server of ['debug', 'twin']) {
        const uri = withPage.find(({ name }) => name.startsWith(server))?._meta.ui?.resourceUri
        const { contents } = (await answer('resources/read', { uri })).result as { contents: { text: string }[] }
        expect(contents[0]?.text).toContain('debug-refresh')
        const { result } = await call(answer, 'debug-log', { type: 'test', payload: mode })
        expect(result?.structuredContent).toEqual({ logged: true, logFile: logFile(server) })
      }
    })

    test('W3: pages call their own servers’ tools by bare names through the official host', async () => {
      const client = await hostOf(era, mode)
      const { tools } = await client.listTools()
      const pageOf = (server: string) => {
        const tool = tools.find(({ name, _meta }) => name.startsWith(`${server}__`) && asRecord(_meta?.ui).resourceUri)
        return String(asRecord(tool?._meta?.ui).resourceUri)
      }
      for (const server of ['debug', 'twin']) {
        const page = await show(client, pageOf(server))
        const log = { name: 'debug-log', arguments: { type: 'host', payload: mode } }
        expect((await page.callServerTool(log)).structuredContent).toEqual({ logged: true, logFile: logFile(server) })
        const refreshed = await page.callServerTool({ name: 'debug-refresh', arguments: {} })
        expect(refreshed.structuredContent).toMatchObject({ counter: expect.any(Number) })
      }
      const page = await show(client, pageOf('shadertoy'))
      const rendered = await page.callServerTool({ name: 'render-shadertoy', arguments: { fragmentShader: 'void' } })
      expect(rendered).toMatchObject({ content: [{ text: expect.stringContaining('rendered') }] })
    })

    test('W3: models neither find nor run the tools that only pages may call', async () => {
      const answer = await clientOf(era, mode)
      const found = await call(answer, 'find_tool', { tool_description: 'refresh debug info, log to file', limit: 20 })
      expect(textOf(found)).not.toMatch(/debug-(refresh|log)/)
      const listed = await call(answer, 'get_server_tools', { server: 'debug' })
      expect(textOf(listed)).toContain('debug-tool')
      expect(textOf(listed)).not.toMatch(/debug-(refresh|log)/)
      const described = await call(answer, 'describe_tools', { names: ['debug.debug-refresh'] })
      expect(textOf(described)).toContain('not a tool that your programs may use')
      const ran = await call(answer, 'execute_tool', { server: 'debug', tool: 'debug-refresh' })
      expect(textOf(ran)).toContain('only the page of its app may call it')
      const code = "return await tools.debug['debug_refresh']({})"
      expect(textOf(await call(answer, 'execute_code', { code }))).toContain('only the page of its app may call it')
    })
  },
)

test('W3: a bare name that two servers have is ambiguous until a page of one of them is read, also before a reload', async () => {
  const answer = await clientOf('session', 'both')
  const { error } = await call(answer, 'debug-refresh')
  expect(error).toMatchObject({ data: { code: 'TOOL_NOT_FOUND' }, message: expect.stringContaining('more than one') })
  const tools = (await answer('tools/list')).result?.tools as Tool[]
  const uri = tools.find(({ name }) => name === 'twin__debug-tool')?._meta.ui?.resourceUri
  await answer('resources/read', { uri })
  await toolway.gateway.reload()
  const { result } = await call(answer, 'debug-log', { type: 'test', payload: 'after a reload' })
  expect(result?.structuredContent).toEqual({ logged: true, logFile: logFile('twin') })
})
