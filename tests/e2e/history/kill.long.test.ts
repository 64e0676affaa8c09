import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { connect } from '../../fixtures/clients.ts'
import { type Command, startCommand } from '../../fixtures/command.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { rawRequest } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type Endpoint, type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { asking, originOf } from '../admin/people.ts'

const config = {
  mcpServers: { probe: { ...stdioServers.probe(), readTools: ['echo'] } },
  cache: { enabled: true },
  history: {},
}

/** A folder for a gateway, and the file in it where the gateway stores its history. */
async function openFolder(open: AsyncDisposableStack) {
  const folder = open.use(await temporaryFolder())
  const file = join(folder.path, 'state/history.sqlite')
  mkdirSync(dirname(file))
  return { folder, file }
}

/** What a browser and a holder of the token do at the gateway that runs now. */
const visitorsOf = (toolway: () => Endpoint) => ({
  ask: (path: string) => asking(originOf(toolway()), toolway().token)(path),
  /** Logs in as a browser does; the value of the cookie. */
  async logIn(): Promise<string> {
    const { headers } = await rawRequest(originOf(toolway()), {
      path: '/admin/api/session',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token: toolway().token }),
    })
    return /=([\w-]+);/.exec(headers['set-cookie']?.[0] ?? '')?.[1] as string
  },
  /** A request of that browser: the cookie's name contains the port. */
  async asBrowser(cookie: string, method = 'GET') {
    const { port } = new URL(toolway().url)
    const headers = { cookie: `toolway_admin_${port}=${cookie}`, 'toolway-admin': '1' }
    return (await rawRequest(originOf(toolway()), { path: '/admin/api/session', method, headers })).status
  },
})

/** A gateway that can be killed and started again with what it has stored. */
async function startStory(open: AsyncDisposableStack, words: readonly string[] = []) {
  const { folder } = await openFolder(open)
  let toolway: Command = await startCommand(config, { folder, words })
  open.defer(() => toolway[Symbol.asyncDispose]())
  return {
    toolway: () => toolway,
    async killAndStart() {
      await toolway.stop('SIGKILL')
      toolway = await startCommand(config, { folder })
    },
    ...visitorsOf(() => toolway),
  }
}

/** A gateway inside this process that finds something else where it stores its history. */
async function startSpoiled(open: AsyncDisposableStack, spoil: (file: string) => void) {
  const { folder, file } = await openFolder(open)
  spoil(file)
  const toolway: LocalToolway = open.use(await startToolway(config, { folder }))
  const said = (text: string) => toolway.log.lines.some(({ message }) => message.includes(text))
  return { toolway, file, said, ...visitorsOf(() => toolway) }
}

const callsOf = (rows: readonly { readonly name: string; readonly calls: number }[]) =>
  Object.fromEntries(rows.map(({ name, calls }) => [name, calls]))

const total = (points: readonly { readonly calls: number }[]) => points.reduce((sum, { calls }) => sum + calls, 0)

// At once, because each has a gateway of its own and waits for it.
test.concurrent('V12: after kill -9 the charts, the statistics, the calls with their timelines and the login are there again', async () => {
  await using open = new AsyncDisposableStack()
  const { toolway, killAndStart, ask, logIn, asBrowser } = await startStory(open)
  const from = Date.now() - 60_000
  const range = () => `from=${from}&to=${Date.now() + 60_000}`
  const cookie = await logIn()
  const ended = await logIn()
  expect([await asBrowser(cookie), await asBrowser(ended, 'DELETE')]).toEqual([200, 204])
  {
    await using client = await connect('v1', { endpoint: toolway() })
    for (let n = 0; n < 5; n++) await client.callTool('probe__echo', { message: `${n}` })
    await client.callTool('probe__echo', { message: '0' })
    await client.callTool('probe__fail').catch(() => {})
  }
  const before = (await ask('calls')).json.calls
  const one = before.find(({ cache, name }: { cache: string; name: string }) => cache === 'miss' && name === 'echo')
  const detail = (await ask(`calls/${one.id}`)).json
  expect(detail.steps.length).toBeGreaterThan(0)
  const stats = (await ask(`stats?by=tool&${range()}`)).json
  expect(callsOf(stats.rows)).toMatchObject({ 'probe.echo': 6 })

  await killAndStart()
  expect([await asBrowser(cookie), await asBrowser(ended)]).toEqual([200, 401])
  const after = (await ask('calls')).json.calls
  expect(after).toEqual(before)
  expect((await ask(`calls?${range()}&server=probe&text=echo`)).json.calls).toHaveLength(6)
  expect((await ask(`calls/${one.id}`)).json).toEqual(detail)
  expect((await ask(`stats?by=tool&${range()}`)).json.rows).toMatchObject([{ name: 'probe.echo', calls: 6 }, {}])
  expect(callsOf((await ask('stats?by=tool')).json.rows)).toEqual(callsOf(stats.rows))
  const series = (await ask(`series?${range()}`)).json
  expect(total(series.points)).toBe(before.length)
  expect(series.points.reduce((sum: number, { cacheHits }: { cacheHits: number }) => sum + cacheHits, 0)).toBe(1)
  expect(total((await ask(`series?${range()}&server=probe&tool=echo`)).json.points)).toBe(6)
  expect(toolway().said()).not.toContain('ExperimentalWarning')
})

test.concurrent('V12: counts of two workers are added up, and survive them', async () => {
  await using open = new AsyncDisposableStack()
  const { toolway, killAndStart, ask } = await startStory(open, ['--workers', '2'])
  const range = `from=${Date.now()}`
  const counted = async () => callsOf((await ask(`stats?by=tool&${range}`)).json.rows)['probe.echo'] ?? 0
  for (let n = 0; n < 6; n++) {
    await using client = await connect('v2', { endpoint: toolway() })
    await client.callTool('probe__echo', { message: `worker ${n}` })
  }
  await until(async () => (await counted()) === 6, { what: 'both workers to write' })
  await killAndStart()
  expect(await counted()).toBe(6)
})

test.concurrent('V12: a damaged history stops nothing: it is moved aside, and a new one begins', async () => {
  await using open = new AsyncDisposableStack()
  const { toolway, said, ask } = await startSpoiled(open, (file) => {
    for (const end of ['', '-wal']) writeFileSync(file + end, 'x'.repeat(20_000))
  })
  await using client = await connect('v1', { endpoint: toolway })
  await client.callTool('probe__echo', { message: 'x' })
  expect(callsOf((await ask('stats?by=tool')).json.rows)).toEqual({ 'probe.echo': 1 })
  expect(said('moved aside')).toBe(true)
})

test.concurrent('V12: where no history can be stored, the gateway starts, serves and says so, until it can be stored', async () => {
  await using open = new AsyncDisposableStack()
  // As on a read-only or full disk, SQLite cannot open it for writing.
  const { toolway, file, said, ask, logIn, asBrowser } = await startSpoiled(open, (path) => mkdirSync(path))
  const cookie = await logIn()
  await using client = await connect('v1', { endpoint: toolway })
  await client.callTool('probe__echo', { message: 'x' })
  expect(await asBrowser(cookie)).toBe(200)
  expect((await ask('calls')).json.calls).toMatchObject([{ name: 'echo', outcome: 'answered' }])
  expect(callsOf((await ask('stats?by=tool')).json.rows)).toEqual({ 'probe.echo': 1 })
  const items = async () => JSON.stringify((await ask('inbox')).json)
  await until(async () => (await items()).includes('store:history'), { what: 'the inbox to say so' })
  expect(said('history cannot be stored')).toBe(true)
  rmSync(file, { recursive: true })
  await client.callTool('probe__echo', { message: 'y' })
  await until(async () => !(await items()).includes('store:history'), { what: 'the history to be stored again' })
})
