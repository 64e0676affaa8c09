import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Command, startCommand } from '../../fixtures/command.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { commandLine } from '../../fixtures/processes.ts'
import { type RawSession, rawSession } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'

const servers = Array.from({ length: 20 }, (_, number) => `shelf${number}`)
const config = {
  mcpServers: Object.fromEntries(servers.map((name) => [name, stdioServers.manyTools(name, 50)])),
  discovery: { listDeadline: '40s', refresh: '1h' },
  defaults: { expose: 'both' },
}

interface Tool {
  readonly name: string
  readonly _meta: Record<string, unknown>
}

let folder: Folder

beforeAll(async () => {
  folder = await temporaryFolder()
})

afterAll(() => folder[Symbol.asyncDispose]())

/** The list, and what it took. */
async function list(session: RawSession): Promise<{ tools: Tool[]; ms: number }> {
  const start = performance.now()
  const body = await session.ask('tools/list')
  const ms = performance.now() - start
  return { tools: JSON.parse(body).result.tools, ms }
}

const forwarded = (tools: readonly Tool[]) => tools.filter(({ _meta }) => _meta['dev.toolway/source'] === 'forwarded')

/** The servers that have been started. */
const startedBy = (toolway: Command) =>
  new Set(toolway.children().map((pid) => /shelf\d+/.exec(commandLine(pid))?.[0] ?? commandLine(pid)))

const start = () => startCommand(config, { folder })

let first: readonly Tool[]

test('S1, F1: a first start finds 1,000 tools on 20 servers, page by page where servers give pages', async () => {
  await using toolway = await start()
  const session = await rawSession(toolway)
  const { tools, ms } = await list(session)
  first = forwarded(tools)
  console.info(`first start: tools/list with ${first.length} tools, servers started for it: ${ms.toFixed(0)} ms`)
  expect(first).toHaveLength(1000)
  expect(new Set(first.map(({ name }) => name)).size).toBe(1000)
  const before = performance.now()
  const { code, survivors } = await toolway.stop()
  console.info(`SIGTERM with 20 servers up: ended after ${(performance.now() - before).toFixed(0)} ms`)
  expect({ code, survivors }).toEqual({ code: 0, survivors: [] })
})

test('S1: the second start lists the same at once, marked stale, before any server is up; then a call works', async () => {
  await using toolway = await start()
  const session = await rawSession(toolway)
  const { tools, ms } = await list(session)
  const children = toolway.children()
  const again = await list(session)
  console.info(
    `second start: tools/list with ${tools.length} tools: ${ms.toFixed(1)} ms, then ${again.ms.toFixed(1)} ms`,
  )
  expect(children).toEqual([])
  expect(forwarded(tools).map(({ name }) => name)).toEqual(first.map(({ name }) => name))
  for (const { _meta } of forwarded(tools)) expect(_meta['dev.toolway/stale']).toBe(true)

  const health = await session.answer('tools/call', { name: 'server_health', arguments: {} })
  const known = health.result?.structuredContent as { servers: { name: string }[] } | undefined
  const shelves = known?.servers.filter(({ name }) => name.startsWith('shelf')) ?? []
  expect(shelves).toHaveLength(20)
  for (const shelf of shelves) expect(shelf).toMatchObject({ status: 'stale', tools: 50 })
  expect(toolway.children()).toEqual([])

  const call = await session.answer('tools/call', { name: 'shelf7.tool_42', arguments: { message: 'hello' } })
  expect(call.result).toEqual({ content: [{ type: 'text', text: 'shelf7 tool_42: hello' }] })
  expect(startedBy(toolway)).toEqual(new Set(['shelf7']))
})

test('S1: a damaged stored list is ignored, and its server is asked again', async () => {
  const catalog = join(folder.path, 'state', 'catalog')
  const record = (await readdir(catalog)).find((name) => name.startsWith('shelf3-'))
  await writeFile(join(catalog, record as string), '{"tools": [')
  await using toolway = await start()
  const session = await rawSession(toolway)
  const { tools } = await list(session)
  expect(forwarded(tools)).toHaveLength(1000)
  expect(startedBy(toolway)).toEqual(new Set(['shelf3']))
})
