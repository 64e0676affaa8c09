import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Bystander, watchBystander } from '../../fixtures/bystander.ts'
import { connect, type TestClient } from '../../fixtures/clients.ts'
import { startHttpServer } from '../../fixtures/http-server.ts'
import { descriptors } from '../../fixtures/processes.ts'
import { rawSession } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

// They would be waited for as long as for the download of a package.
const startTimeout = '2s'
const restarts = { max: 100, window: '1m' }
const baseline = descriptors()
const open = new AsyncDisposableStack()
let toolway: LocalToolway
let client: TestClient
let bystander: Bystander

beforeAll(async () => {
  const http = open.use(await startHttpServer())
  toolway = open.use(
    await startToolway({
      mcpServers: {
        good: stdioServers.probe(),
        rogue: { ...stdioServers.probe(), restarts, timeout: '20s' },
        odd: { ...stdioServers.probe({ malformed: true }) },
        later: { ...stdioServers.probe({ revision: '2099-01-01' }) },
        mute: { ...stdioServers.probe({ mute: true }), startTimeout },
        noisy: { command: process.execPath, args: ['-e', 'for (;;) console.log("no protocol at all")'], startTimeout },
        absent: { command: 'this-command-does-not-exist' },
        web: { url: http.url, timeout: '20s' },
      },
      discovery: { listDeadline: '1500ms' },
    }),
  )
  client = open.use(await connect('v2', { endpoint: toolway }))
  await client.listTools()
  await client.callTool('good.echo', { message: 'up' })
  bystander = open.use(watchBystander(await rawSession(toolway)))
})

afterAll(() => open.disposeAsync())

const echo = async (server: string) => {
  const { content } = await client.callTool(`${server}.echo`, { message: 'still here' })
  expect(content).toEqual([{ type: 'text', text: 'Echo: still here' }])
}

const failed = (code: string | RegExp, server: string) => ({
  isError: true,
  content: [{ type: 'text', text: expect.stringContaining(server) }],
  _meta: { 'dev.toolway/error': { code: expect.stringMatching(code), server } },
})

describe('a rogue server over stdio', () => {
  test.each(['garbage', 'pieces'])('T3: %s on its output: the response is found nevertheless', async (tool) => {
    const { content } = await client.callTool(`rogue.${tool}`, { message: 'größe' })
    expect(content).toEqual([{ type: 'text', text: 'Echo: größe' }])
    await echo('rogue')
  })

  test.each(['die', 'die_talking'])(
    'F12, E1: it dies in mid-call (%s): the outcome is unknown, the next call works',
    async (tool) => {
      expect(await client.callTool(`rogue.${tool}`)).toMatchObject(failed('OUTCOME_UNKNOWN', 'rogue'))
      await echo('rogue')
    },
  )

  test.each([true, false])(
    'B7, E1: a line of 100 MB that ends (%s): an error for its caller, and the next call works',
    async (ends) => {
      const result = await client.callTool('rogue.flood', { megabytes: 100, ends })
      expect(result).toMatchObject(failed(/^OUTCOME_UNKNOWN$/, 'rogue'))
      await echo('rogue')
    },
  )

  test('F10, E1: it never answers: the call ends at its deadline and is cancelled at the server', async () => {
    const result = await client.callTool('execute_tool', { server: 'rogue', tool: 'wait', args: {}, timeout_ms: 100 })
    expect(result).toMatchObject(failed('TIMEOUT', 'rogue'))
    const { structuredContent } = await client.callTool('rogue.state')
    expect(structuredContent).toMatchObject({ waiting: 0 })
  })

  test('S1: of its malformed tools none is listed, their siblings stay, and the log says so', async () => {
    const tools = await client.listTools()
    const own = tools.filter(({ _meta }) => _meta?.['dev.toolway/server'] === 'odd').map(({ name }) => name)
    expect(own).toContain('odd__echo')
    expect(own.filter((name) => /schema|7/.test(name))).toEqual([])
    await echo('odd')
    const dropped = toolway.log.lines.filter(({ level, facts }) => level === 'warn' && facts.server === 'odd')
    expect(dropped).toHaveLength(1)
    expect(dropped[0]?.facts).toMatchObject({ kind: 'malformed-definition', method: 'tools/list' })
    expect(dropped[0]?.facts.count).toBeGreaterThanOrEqual(6)
  })

  test('F5: an unknown protocol version is a warning with both versions, not a failure', async () => {
    await echo('later')
    const warnings = toolway.log.lines.filter(({ level, facts }) => level === 'warn' && facts.server === 'later')
    expect(JSON.stringify(warnings)).toMatch(/2099-01-01/)
    expect(JSON.stringify(warnings)).toMatch(/2025-11-25/)
  })

  test.each(['mute', 'noisy', 'absent'])(
    'G2, T1: %s never gets as far as an introduction: refused with a reason',
    async (server) => {
      const result = await client.callTool('execute_tool', { server, tool: 'echo', args: {} })
      expect(result).toMatchObject(failed(/^SERVER_UN(AVAILABLE|HEALTHY)$/, server))
    },
  )

  test('G2: and no list waits for them a second time', async () => {
    const names = (await client.request('tools/list')).tools as { name: string }[]
    expect(names.map(({ name }) => name)).toEqual(expect.arrayContaining(['good__echo', 'rogue__echo', 'web__echo']))
  })
})

describe('a rogue server over HTTP', () => {
  test.each(['page', 'failure', 'cut', 'dry', 'hang_up'])(
    'E1: %s: a typed error, and the next call works',
    async (tool) => {
      expect(await client.callTool(`web.${tool}`)).toMatchObject(
        failed(/^(OUTCOME_UNKNOWN|SERVER_UNAVAILABLE)$/, 'web'),
      )
      await echo('web')
    },
  )

  test('F10, E1: never: the call ends at its deadline', async () => {
    const result = await client.callTool('execute_tool', { server: 'web', tool: 'never', args: {}, timeout_ms: 100 })
    expect(result).toMatchObject(failed('TIMEOUT', 'web'))
    await echo('web')
  })

  test('B7, E1: an event of 100 MB', async () => {
    const result = await client.callTool('web.flood', { megabytes: 100 })
    expect(result).toMatchObject(failed(/^(OUTCOME_UNKNOWN|SERVER_UNAVAILABLE)$/, 'web'))
    await echo('web')
  })
})

test("G2: another client's calls to a healthy server succeeded throughout", () => {
  const { answered, failures, slowestMs } = bystander
  console.info(`the bystander answered ${answered} times, at most after ${slowestMs.toFixed(0)} ms`)
  expect(failures).toEqual([])
  expect(answered).toBeGreaterThan(10)
})

test('B7: nothing is left behind: no process, no socket, no pipe', async () => {
  expect(toolway.servers().length).toBeGreaterThan(0)
  await open.disposeAsync()
  expect(toolway.servers()).toEqual([])
  await until(() => descriptors().sockets <= baseline.sockets && descriptors().pipes <= baseline.pipes, {
    what: `descriptors to go back to ${JSON.stringify(baseline)} from ${JSON.stringify(descriptors())}`,
  })
})
