import { expect, test } from 'vitest'
import { rogue } from '../../../src/upstream/transports/stdio.fixture.ts'
import { connect, type TestClient } from '../../fixtures/clients.ts'
import { startCommand } from '../../fixtures/command.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { alive } from '../../fixtures/processes.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

const healthOf = async (client: TestClient, server: string) =>
  (await client.callTool('server_health', { server })).structuredContent as {
    status: string
    reason: string
    since: string
  }

const errorOf = ({ _meta }: { _meta?: Record<string, unknown> }) =>
  _meta?.['dev.toolway/error'] as { code: string; retryAfterMs?: number } | undefined

test.concurrent('G2, T5: a server that keeps crashing gets its restarts and no more, is refused fast, and says when it is tried', async () => {
  await using open = new AsyncDisposableStack()
  const restarts = { max: 2, window: '1m' }
  const toolway = open.use(
    await startToolway({
      mcpServers: { rogue: { command: process.execPath, args: [rogue], restarts } },
      breaker: { failures: 1000, minimumCalls: 10_000 },
    }),
  )
  const client = open.use(await connect('v2', { endpoint: toolway }))
  for (let start = 0; start < 3; start++) {
    expect(errorOf(await client.callTool('rogue.crash'))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  }
  const before = performance.now()
  for (let again = 0; again < 20; again++) {
    const refused = await client.callTool('rogue.echo', { text: 'hello' })
    expect(errorOf(refused)).toMatchObject({ code: 'SERVER_UNHEALTHY', retryAfterMs: expect.any(Number) })
    expect(JSON.stringify(refused.content)).toMatch(/restart limit.*next attempt in \d+ s.*SIGKILL/)
  }
  console.info(`a server that is left alone is refused after ${((performance.now() - before) / 20).toFixed(1)} ms`)
  expect(toolway.servers()).toEqual([])
  expect(await healthOf(client, 'rogue')).toMatchObject({
    status: 'unhealthy',
    reason: expect.stringMatching(/SIGKILL.*Next attempt in \d+ s/),
  })
})

test.concurrent('T4, J3: health shows that the breaker is open, and the calls that it refuses have a retry time', async () => {
  await using open = new AsyncDisposableStack()
  const toolway = open.use(
    await startToolway({
      mcpServers: { rogue: { command: process.execPath, args: [rogue] } },
      breaker: { failures: 1, openFor: '1h' },
    }),
  )
  const client = open.use(await connect('v2', { endpoint: toolway }))
  await client.callTool('rogue.echo', { text: 'hello' })
  const tools = await client.listTools()
  expect(errorOf(await client.callTool('rogue.crash'))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  const refused = errorOf(await client.callTool('rogue.echo', { text: 'hello' }))
  expect(refused?.code).toBe('CIRCUIT_OPEN')
  expect(Number.isInteger(refused?.retryAfterMs)).toBe(true)
  expect(await healthOf(client, 'rogue')).toMatchObject({
    status: 'unhealthy',
    breaker: 'open',
    reason: expect.stringMatching(/breaker open: a call failed/),
  })
  expect(await client.listTools()).toEqual(tools)
})

// Not at the same time as others: a timeout while the process itself is slow does not count against the server.
test('T4, J3: a breaker that opens while the server is connected changes its health at once', async () => {
  await using open = new AsyncDisposableStack()
  const entry = { command: process.execPath, args: [rogue], toolTimeouts: { silent: '300ms' } }
  const toolway = open.use(
    await startToolway({ mcpServers: { rogue: entry }, breaker: { failures: 1, openFor: '1h' } }),
  )
  const client = open.use(await connect('v2', { endpoint: toolway }))
  await client.callTool('rogue.echo', { text: 'hello' })
  expect(await healthOf(client, 'rogue')).toMatchObject({ status: 'healthy' })
  const before = Date.now()
  expect(errorOf(await client.callTool('rogue.silent'))?.code).toBe('TIMEOUT')
  const { status, since } = await healthOf(client, 'rogue')
  expect(status).toBe('unhealthy')
  expect(Date.parse(since)).toBeGreaterThanOrEqual(before)
})

test.concurrent('G2: an unused process is stopped; its health shows that, the tools stay, and the next call starts it', async () => {
  await using open = new AsyncDisposableStack()
  const toolway = open.use(await startToolway({ mcpServers: { probe: { ...stdioServers.probe(), idle: '300ms' } } }))
  const echo = async (client: Awaited<ReturnType<typeof connect>>) => {
    const { content } = await client.callTool('probe.echo', { message: 'hello' })
    expect(content).toEqual([{ type: 'text', text: 'Echo: hello' }])
  }
  const other = open.use(await connect('v2', { endpoint: toolway }))
  const tools = await other.listTools()
  {
    // A process that an open session has used keeps what it knows for that session: it is stopped after it.
    await using user = await connect('v2', { endpoint: toolway })
    await echo(user)
  }
  await until(() => toolway.servers().length === 0, { what: 'the process to be stopped' })
  expect(await healthOf(other, 'probe')).toMatchObject({
    status: 'healthy',
    reason: expect.stringContaining('idle'),
  })
  expect(await other.listTools()).toEqual(tools)
  expect(toolway.servers()).toEqual([])
  await echo(other)
  expect(toolway.servers()).toHaveLength(1)
})

test.concurrent('T5: a server that hangs is detected by a check and replaced, without a call', async () => {
  await using open = new AsyncDisposableStack()
  const toolway = open.use(
    await startToolway({
      mcpServers: { probe: stdioServers.probe() },
      health: { interval: '200ms', timeout: '1s' },
    }),
  )
  const client = open.use(await connect('v2', { endpoint: toolway }))
  await client.callTool('probe.echo', { message: 'up' })
  const [hung] = toolway.servers() as [number]
  process.kill(hung, 'SIGSTOP')
  await until(async () => (await healthOf(client, 'probe')).status === 'unhealthy', { what: 'it to be found out' })
  await until(() => !alive(hung) && toolway.servers().length === 1, { what: 'it to be replaced' })
  await until(async () => (await healthOf(client, 'probe')).status === 'healthy', { what: 'it to be well again' })
  expect((await client.callTool('probe.echo', { message: 'back' })).isError).toBeUndefined()
})

test.concurrent('security: processes that a killed Toolway left behind are gone once the next one serves', async () => {
  await using open = new AsyncDisposableStack()
  const folder = open.use(await temporaryFolder())
  const config = { mcpServers: { rogue: { command: process.execPath, args: [rogue] } } }
  const first = open.use(await startCommand(config, { folder }))
  const client = await connect('v1', { endpoint: first })
  const pid = async (tool: string, args = {}) =>
    Number(((await client.callTool(tool, args)).content[0] as { text: string }).text)
  const strays = [await pid('rogue.grandchild', { detached: true }), await pid('rogue.grandchild')]
  await client.callTool('rogue.ignore-end')
  const { survivors } = await first.stop('SIGKILL')
  open.defer(() => {
    for (const survivor of survivors) if (alive(survivor)) process.kill(survivor, 'SIGKILL')
  })
  expect(survivors).toEqual(expect.arrayContaining(strays))
  expect(survivors).toHaveLength(3)
  await Promise.allSettled([client[Symbol.asyncDispose]()])

  const second = open.use(await startCommand(config, { folder }))
  await until(() => !survivors.some(alive), { what: 'the leftovers to be gone' })
  await until(() => second.said().includes('orphaned'), { what: 'the log line' })
})
