import { expect, test } from 'vitest'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { unusedPort } from '../../fixtures/listening.ts'
import { rawModern } from '../../fixtures/raw-callers.ts'
import { type RawSession, rawSession } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { caller, reading } from './ask.ts'
import { type RecordingMcpServer, startRecordingMcpServer } from './recording-server.ts'

const listed = (recorder: RecordingMcpServer, times = 1) =>
  until(() => recorder.got('tools/list').length >= times, { what: `the tools to be listed ${times} times` })

test.each(['http', 'sse'])(
  'T3, G1: headers and the bearer token of a server are sent to it over %s',
  async (transport) => {
    await using recorder = await startRecordingMcpServer()
    const headers = { 'X-Tenant': 'acme' }
    const auth = { type: 'bearer', token: 'given-to-us' }
    await using toolway = await startToolway({ mcpServers: { one: { url: recorder.url, transport, headers, auth } } })
    await toolway.gateway.refresh()
    const sent = recorder.requests.map(({ headers }) => [headers.authorization, headers['x-tenant']])
    expect(sent.length).toBeGreaterThan(0)
    for (const one of sent) expect(one).toEqual(['Bearer given-to-us', 'acme'])
  },
)

test('G2: an eager server is connected at the start, and by default none is', async () => {
  await using eager = await startRecordingMcpServer()
  await using lazy = await startRecordingMcpServer()
  const mcpServers = { lazy: { url: lazy.url }, eager: { url: eager.url, connect: 'eager' } }
  await using toolway = await startToolway({ mcpServers })
  await listed(eager)
  expect(lazy.requests).toEqual([])
  expect(await (await caller(toolway))('lazy__look')).toBe('1')
})

/** How many tools are known of a server. */
const known = ({ gateway }: LocalToolway, name: string) =>
  gateway.servers().find((server) => server.name === name)?.tools

test.each([
  { mode: 'startup', asked: true },
  { mode: 'runtime', asked: false },
  { mode: 'hybrid', asked: false },
])('S1: with discovery.mode $mode a start asks: $asked, and remembers all tools', async ({ mode, asked }) => {
  await using folder = await temporaryFolder()
  await using recorder = await startRecordingMcpServer()
  await using eager = await startRecordingMcpServer()
  const mcpServers = { one: { url: recorder.url }, eager: { url: eager.url, connect: 'eager' } }
  const config = { mcpServers, discovery: { mode } }
  {
    await using before = await startToolway(config, { folder })
    await before.gateway.refresh()
  }
  const [ours, theirs] = [recorder, eager].map((one) => one.got('tools/list').length) as [number, number]
  await using toolway = await startToolway(config, { folder })
  expect(known(toolway, 'one')).toBe(3)
  // The one that is connected in any case shows that whoever else is asked has been asked by now.
  await listed(eager, theirs + 1)
  if (asked) await listed(recorder, ours + 1)
  expect(recorder.got('tools/list').length).toBe(ours + (asked ? 1 : 0))
})

const toolsOf = async (session: RawSession) => {
  const { result } = await session.answer('tools/list')
  return ((result?.tools ?? []) as { name: string }[])
    .map(({ name }) => name)
    .filter((name) => name.startsWith('one__'))
}

test.each([
  { mode: 'startup', fresh: false },
  { mode: 'runtime', fresh: true },
  { mode: 'hybrid', fresh: false },
])('S1: with discovery.mode $mode a new conversation sees a fresh list: $fresh', async ({ mode, fresh }) => {
  await using recorder = await startRecordingMcpServer()
  const mcpServers = { one: { url: recorder.url } }
  await using toolway = await startToolway({ mcpServers, discovery: { mode, refresh: '1h' } })
  const first = await rawSession(toolway)
  expect(await toolsOf(first)).toHaveLength(3)
  recorder.add('late')
  expect(await toolsOf(first)).not.toContain('one__late')
  expect((await toolsOf(await rawSession(toolway))).includes('one__late')).toBe(fresh)
  recorder.add('later')
  expect((await rawModern(toolway)('tools/list')).includes('one__later')).toBe(fresh)
})

test.each(['startup', 'runtime', 'hybrid'])(
  'S1, T1: with discovery.mode %s a call of an unknown name lists the server again',
  async (mode) => {
    await using recorder = await startRecordingMcpServer()
    await using other = await startRecordingMcpServer()
    const mcpServers = { one: { url: recorder.url }, two: { url: other.url } }
    await using toolway = await startToolway({ mcpServers, discovery: { mode, refresh: '1h' } })
    const call = await caller(toolway)
    expect(await call('one__look')).toBe('1')
    expect(await call('two__look')).toBe('1')
    recorder.add('late')
    other.add('late')
    const before = recorder.got('tools/list').length
    expect(await Promise.all([call('one__late'), call('one__late')])).toEqual(['late', 'late'])
    expect(await call('execute_tool', { server: 'two', tool: 'late', args: {} })).toBe('late')
    expect(recorder.got('tools/list').length).toBe(before + 1)
  },
)

test('S1, G8: a changed discovery.mode is applied to existing servers', async () => {
  await using recorder = await startRecordingMcpServer()
  const config = (mode: string) => ({ mcpServers: { one: { url: recorder.url } }, discovery: { mode } })
  await using toolway = await startToolway(config('runtime'))
  await toolway.rewrite(config('startup'))
  await toolway.gateway.reload()
  await listed(recorder)
})

test('S1, F4: each server is asked again as often as its own refresh says, else discovery.refresh', async () => {
  await using recorder = await startRecordingMcpServer()
  await using other = await startRecordingMcpServer()
  const config = (refresh: string) => ({
    mcpServers: { one: { url: recorder.url, refresh: '20ms' }, two: { url: other.url } },
    discovery: { refresh },
  })
  await using toolway = await startToolway(config('1h'))
  await toolway.gateway.refresh()
  await listed(recorder, 4)
  expect(other.got('tools/list')).toHaveLength(1)
  await toolway.rewrite(config('20ms'))
  await toolway.gateway.reload()
  await toolway.gateway.refresh()
  await listed(other, 4)
})

test('F15: connections, restarts and sessions on /metrics are the real numbers', async () => {
  await using recorder = await startRecordingMcpServer()
  const gone = { url: `http://127.0.0.1:${await unusedPort()}/mcp` }
  const mcpServers = { one: { url: recorder.url }, gone, probe: stdioServers.probe() }
  await using toolway = await startToolway({ mcpServers })
  const readings = async (metric: string) =>
    Promise.all(Object.keys(mcpServers).map((server) => reading(toolway, metric, server)))
  const connections = () => readings('toolway_tool_active_connections')
  const restarts = () => readings('toolway_server_restarts_total')
  const sessions = () => reading(toolway, 'toolway_sessions')

  expect(await connections()).toEqual([0, 0, 0])
  expect(await sessions()).toBe(0)
  const call = await caller(toolway)
  await call('one__look')
  await call('probe__pid')
  expect(await connections()).toEqual([1, 0, 1])
  expect(await restarts()).toEqual([0, 0, 0])

  await call('probe__die')
  await until(async () => (await restarts())[2] === 1, { what: 'the restart to be counted' })
  expect(await restarts()).toEqual([0, 0, 1])

  await rawSession(toolway)
  expect(await sessions()).toBe(2)
})
