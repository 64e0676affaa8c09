import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ServerFinding } from '../../../src/core/source-status.ts'
import { connect, type TestClient } from '../../fixtures/clients.ts'
import { type Command, startCommand } from '../../fixtures/command.ts'
import { type Commands, startCommands } from '../../fixtures/commands/commands.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { type HostileKind, hostileStdio, startHostileHttp } from '../../fixtures/hostile-server.ts'
import { compiled } from '../../fixtures/programs.ts'
import { until } from '../../fixtures/until.ts'
import { asking, originOf } from '../admin/people.ts'
import { runDoctor, withoutCode } from '../doctor/run-doctor.ts'

const open = new AsyncDisposableStack()
let folder: Folder
let toolway: Command
let client: TestClient

/** The servers, and the kind of finding that each must have; those without one are refused only when they are called. */
const servers: Readonly<Record<string, readonly [HostileKind, 'stdio' | 'http', 'legacy' | 'modern', string?]>> = {
  good: ['good', 'stdio', 'legacy'],
  many: ['many-tools', 'http', 'modern', 'too-many-entries'],
  long: ['long-description', 'http', 'legacy', 'long-text'],
  wordy: ['long-description', 'stdio', 'modern', 'long-text'],
  endless: ['endless-cursor', 'stdio', 'legacy', 'too-many-pages'],
  same: ['same-cursor', 'http', 'modern', 'repeated-cursor'],
  vain: ['large-handshake', 'http', 'legacy', 'large-handshake'],
  proud: ['large-handshake', 'http', 'modern', 'large-handshake'],
  huge: ['large-message', 'http', 'legacy', 'large-message'],
  blocks: ['many-blocks', 'http', 'legacy'],
  pieces: ['many-blocks', 'stdio', 'modern'],
  values: ['many-values', 'http', 'modern'],
  deep: ['deep-result', 'stdio', 'legacy'],
  chasm: ['deep-result', 'http', 'modern'],
  spelt: ['spelt-question', 'http', 'modern'],
  twice: ['two-types', 'http', 'modern'],
}
const listed = Object.entries(servers).filter(([, [, , , kind]]) => kind !== undefined)
const expected = Object.fromEntries(listed.map(([name, [, , , kind]]) => [name, kind]))

interface Found {
  readonly name: string
  readonly findings?: readonly ServerFinding[]
}

/** The kind of the first finding of each server that has one. */
const kindsOf = (found: readonly Found[]) =>
  Object.fromEntries(found.flatMap(({ name, findings = [] }) => findings.slice(0, 1).map(({ kind }) => [name, kind])))

beforeAll(async () => {
  const http = open.use(await startHostileHttp())
  const entryOf = ([kind, transport, era]: (typeof servers)[string]) =>
    transport === 'http' ? { url: `${http.origin}/${kind}/${era}`, transport } : hostileStdio(kind, era)
  const mcpServers = Object.fromEntries(Object.entries(servers).map(([name, one]) => [name, entryOf(one)]))
  folder = open.use(await temporaryFolder())
  toolway = open.use(
    await startCommand(
      { ...withoutCode, mcpServers, discovery: { maxEntries: 200 }, defaults: { expose: 'both' } },
      { folder },
    ),
  )
  client = open.use(await connect('v2', { endpoint: toolway }))
})

afterAll(() => open.disposeAsync())

const admin = async (): Promise<readonly Found[]> => (await asking(originOf(toolway), toolway.token)('servers')).json

async function serversCommand(commands: Commands): Promise<readonly Found[]> {
  const env = { PATH: process.env.PATH ?? '', HOME: folder.path, ...compiled }
  const { printed } = await commands.run({ words: ['servers', '--json'], cwd: folder.path, env })
  const json = printed.filter(({ to }) => to === 'stdout').map(({ text }) => text)
  return JSON.parse(json.join('')).servers
}

test('G2: the good server is listed within the list deadline', async () => {
  const { tools } = (await client.request('tools/list')) as { tools: { name: string }[] }
  expect(tools.map(({ name }) => name)).toContain('good__get')
})

test('S1, V6: the admin API reports what was cut of every list, with limit and setting', async () => {
  await until(async () => Object.keys(kindsOf(await admin())).length >= listed.length, { what: 'all findings' })
  const found = await admin()
  expect(kindsOf(found)).toEqual(expected)
  const [many] = found.find(({ name }) => name === 'many')?.findings ?? []
  const limit = { limit: 200, setting: 'discovery.maxEntries' }
  expect(many).toMatchObject({
    method: 'tools/list',
    count: 59_800,
    ...limit,
    message: expect.stringContaining('200 '),
  })
})

test('S1, B11: so do `toolway servers --json` and `toolway doctor --json`', async () => {
  await using commands = startCommands()
  const shown = await serversCommand(commands)
  const { checks } = await runDoctor({ cwd: folder.path, commands }, '--timeout', '90s')
  expect(kindsOf(shown)).toEqual(expected)
  const probed = checks.map((check) => ({ ...check, name: check.name.replace('server.', '') }))
  expect(kindsOf(probed)).toEqual(expected)
  const alarming = checks.filter(({ name, status }) => name.startsWith('server.') && status !== 'ok')
  expect(alarming.map(({ name }) => name.replace('server.', ''))).toEqual(Object.keys(expected))
})

test.each([
  ['blocks', 'too-many-blocks'],
  ['pieces', 'too-many-blocks'],
  ['values', 'too-many-values'],
  ['deep', 'deep-nesting'],
  ['chasm', 'deep-nesting'],
])(
  'V6, E1: an excessive result of %s is refused with an error, and a finding of the server says so',
  async (server, kind) => {
    expect(await client.callTool(`${server}.get`)).toMatchObject({
      isError: true,
      content: [{ type: 'text', text: expect.stringContaining(server) }],
      _meta: { 'dev.toolway/error': { code: 'OUTCOME_UNKNOWN', server } },
    })
    const { structuredContent } = await client.callTool('server_health', { server })
    expect(structuredContent).toMatchObject({ findings: [{ kind, method: 'tools/call', count: 1 }] })
  },
)

test.each([
  ['spelt', 'INVALID_ARGUMENTS'],
  ['twice', 'OUTCOME_UNKNOWN'],
])('V1: a request that MCP does not define does not reach a client, however %s writes it', async (server, code) => {
  expect(await client.callTool(`${server}.get`)).toMatchObject({
    isError: true,
    _meta: { 'dev.toolway/error': { code, server } },
  })
})

test('V6: a finding is logged once, however often the list is fetched', async () => {
  const logged = () =>
    toolway
      .said()
      .split('\n')
      .filter((line) => line.includes('too-many-entries') && /\bmany\b(?!-)/.test(line))
  expect(logged()).toHaveLength(1)
  await asking(originOf(toolway), toolway.token)('servers/many/refresh', { method: 'POST' })
  expect(logged()).toHaveLength(1)
})

test('V6, G2: the gateway still answers, and its memory stayed within bounds', async () => {
  expect(await client.callTool('good.get')).toMatchObject({ content: [{ type: 'text', text: 'found' }] })
  const peak = Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${toolway.pid}/status`, 'utf8'))?.[1]) / 1024
  console.info(`the gateway used at most ${peak.toFixed(0)} MiB`)
  expect(peak).toBeLessThan(600)
})
