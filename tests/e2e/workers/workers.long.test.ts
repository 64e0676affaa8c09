import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifyAudit } from '../../../src/audit/verify/verify.ts'
import { type Balancer, startBalancer } from '../../fixtures/balancer.ts'
import { connect, type TestClient } from '../../fixtures/clients.ts'
import { type Command, startCommand } from '../../fixtures/command.ts'
import { conversationEntry } from '../../fixtures/conversation/entry.ts'
import { connectTalkers, converseAll } from '../../fixtures/conversation/talkers.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { startHttpServer } from '../../fixtures/http-server.ts'
import { commandLine } from '../../fixtures/processes.ts'
import { toolwayMain } from '../../fixtures/programs.ts'
import { rawModern } from '../../fixtures/raw-callers.ts'
import { rawRequest } from '../../fixtures/raw-http.ts'
import { until } from '../../fixtures/until.ts'

describe('B10: three workers are one gateway', () => {
  const open = new AsyncDisposableStack()
  let folder: Folder
  let toolway: Command
  /** Each request on a connection of its own, so that they go to the workers in turn. */
  let balancer: Balancer

  beforeAll(async () => {
    folder = open.use(await temporaryFolder())
    const talks = await conversationEntry('legacy', 'stdio', open)
    const sandbox = { languages: ['javascript'] }
    const orders = open.use(await startHttpServer())
    const mcpServers = { talks, orders: { url: orders.url, approve: ['echo'] } }
    const config = { mcpServers, limits: { tools: { 'native.hash': 50 } }, sandbox }
    toolway = open.use(await startCommand(config, { folder, words: ['--workers', '3'] }))
    balancer = open.use(await startBalancer([toolway.url]))
  })
  afterAll(() => open.disposeAsync())

  const endpoint = () => ({ url: balancer.url, token: toolway.token })
  const client = (sdk: 'v1' | 'v2' = 'v1'): Promise<TestClient> =>
    connect(sdk, { endpoint: endpoint() }).then((one) => open.use(one))
  const now = (caller: TestClient) => caller.callTool('time', { name: 'get_time_utc' })
  const workers = () => toolway.children().filter((pid) => commandLine(pid).includes(`${toolwayMain} serve`))
  const metrics = async () => {
    const headers = { authorization: `Bearer ${toolway.token}`, connection: 'close' }
    return (await fetch(new URL('/metrics', toolway.url), { headers })).text()
  }

  // The first four at once: they use different tools, and wait for processes and for one another.
  test.concurrent('B10, G3: callers of both eras get only their own messages and questions, on any worker', async () => {
    const talkers = await connectTalkers(endpoint(), ['v1', 'v2', 'modern'], open)
    for (let round = 0; round < 2; round++) await converseAll(talkers, 'talks__converse', round)
  })

  test.concurrent('B10, F8: a limit is a limit of all together', async () => {
    const caller = await client()
    const begun = performance.now()
    const calls = Array.from({ length: 100 }, (_, n) => caller.callTool('hash', { data: `${n}` }))
    const refused = (await Promise.all(calls)).filter(({ isError }) => isError).length
    const back = Math.ceil(((performance.now() - begun) * 50) / 60_000)
    expect(refused).toBeLessThanOrEqual(50)
    expect(refused).toBeGreaterThanOrEqual(50 - back)
  })

  test.concurrent('B10, S7: a stateless caller finds the variables of its environment on any worker', async () => {
    const ask = rawModern(endpoint())
    for (let value = 1; value <= 4; value++) {
      const program = { code: 'globalThis.n = (globalThis.n ?? 0) + 1', environment: 'counted' }
      const { result } = JSON.parse(await ask('tools/call', { name: 'execute_code', arguments: program }))
      expect(result.structuredContent).toMatchObject({ value })
    }
  })

  test.concurrent('V7, V8, B10: any worker lists and answers what waits for approval in all of them, also in its inbox', async () => {
    const callers = await Promise.all(Array.from({ length: 4 }, () => client()))
    const calls = callers.map((caller, n) => caller.callTool('orders__echo', { message: `${n}` }))
    const api = async (path: string, body?: object) => {
      const headers = {
        authorization: `Bearer ${toolway.token}`,
        connection: 'close',
        'content-type': 'application/json',
      }
      const init = body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers }
      return (await fetch(new URL(`/admin/api/${path}`, toolway.url), init)).json()
    }
    const listed = async () => (await api('approvals')) as readonly { readonly id: string }[]
    await until(async () => (await listed()).length === 4, { what: 'all approvals' })
    type Inbox = { readonly items: readonly { readonly id: string; readonly kind: string }[] }
    const inInbox = ((await api('inbox')) as Inbox).items.filter(({ kind }) => kind === 'approval')
    expect(inInbox.map(({ id }) => id).sort()).toEqual((await listed()).map(({ id }) => `approval:${id}`).sort())
    for (const { id } of await listed()) {
      expect(await api(`approvals/${id}`, { decision: 'once' })).toMatchObject({ id, decision: 'once' })
    }
    for (const result of await Promise.all(calls)) expect(result.isError).toBeFalsy()
    await until(async () => (await listed()).length === 0, { what: 'an empty list' })
  })

  test('B10, F15: any worker returns the metrics of all', async () => {
    const page = await metrics()
    const workers = [...page.matchAll(/^toolway_build_info\{worker="(\d)"/gm)].map(([, worker]) => worker)
    expect(workers).toEqual(['1', '2', '3'])
    const calls = [...page.matchAll(/^toolway_operations_total\{[^}]*\} (\d+)$/gm)]
    expect(calls.reduce((sum, [, count]) => sum + Number(count), 0)).toBeGreaterThanOrEqual(100)
  })

  test('B10, G8: a reload that is asked of one worker is done by all', async () => {
    const headers = { authorization: `Bearer ${toolway.token}`, 'content-type': 'application/json' }
    const answer = await fetch(new URL('/admin/api/config/reload', toolway.url), { method: 'POST', headers })
    expect(await answer.json()).toMatchObject({ ok: true })
    const reloads = async () =>
      [...(await metrics()).matchAll(/^toolway_reload_attempts_total\{worker="\d"\} (\d+)$/gm)].map(
        ([, count]) => count,
      )
    await until(async () => (await reloads()).join() === '1,1,1', { what: 'three reloads' })
  })

  test('B10, V9: a server that is disabled, and a key that is revoked, are so on all workers', async () => {
    const api = async (path: string, body: object) => {
      const headers = {
        authorization: `Bearer ${toolway.token}`,
        connection: 'close',
        'content-type': 'application/json',
      }
      const init = { method: 'POST', headers, body: JSON.stringify(body) }
      return (await fetch(new URL(`/admin/api/${path}`, toolway.url), init)).json() as Promise<{ secret: string }>
    }
    const { secret } = await api('keys', { id: 'short', agents: ['default'] })
    const holder = rawModern({ url: balancer.url, token: secret })
    /** What each of several requests, which go to all workers, finds of the server. */
    const lists = (ask = rawModern(endpoint())) =>
      Promise.all(
        Array.from({ length: 6 }, () =>
          ask('tools/list').then(
            (text) => (text.includes('orders__') ? 'there' : 'gone'),
            ({ message }: Error) => /HTTP \d+/.exec(message)?.[0],
          ),
        ),
      )
    const all = (what: string) => (answers: unknown[]) => answers.every((answer) => answer === what)
    await until(async () => all('there')(await lists(holder)), { what: 'the key to be accepted' })
    await api('servers/orders/disable', {})
    await until(async () => all('gone')(await lists()), { what: 'all workers to disable it' })
    await api('servers/orders/enable', {})
    await until(async () => all('there')(await lists()), { what: 'all workers to enable it' })
    await api('keys/short/revoke', {})
    await until(async () => all('HTTP 401')(await lists(holder)), { what: 'all workers to refuse the key' })
  })

  test('B10, B6: a login to the dashboard is valid on every worker', async () => {
    const headers = { 'content-type': 'application/json', connection: 'close' }
    const body = JSON.stringify({ token: toolway.token })
    const at = (path: string) => new URL(path, toolway.url)
    const login = await fetch(at('/admin/api/session'), { method: 'POST', headers, body })
    expect(login.status).toBe(200)
    const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? ''
    for (let tried = 0; tried < 6; tried++) {
      const answer = await fetch(at('/admin/api/overview'), { headers: { cookie, connection: 'close' } })
      expect(answer.status).toBe(200)
      expect(await answer.json()).toMatchObject({ worker: { number: 1, of: 3 } })
    }
  })

  test('B10: the sessions of a killed worker continue, and another worker replaces it', async () => {
    const callers = await Promise.all([client('v1'), client('v1'), client('v2')])
    for (const caller of callers) expect((await now(caller)).isError).not.toBe(true)
    const before = workers()
    expect(before).toHaveLength(3)
    // Three connections go to three workers; this one does not accept its own any more.
    process.kill(before[1] as number, 'SIGSTOP')
    const answers: string[] = []
    const asked = before.map(() =>
      rawRequest(toolway.url, { method: 'GET', path: '/livez' })
        .then(
          ({ text }) => text,
          () => 'closed',
        )
        .then((answer) => answers.push(answer)),
    )
    await until(() => answers.length === 2, { what: 'the answers of the other two' })
    process.kill(before[1] as number, 'SIGKILL')
    // What comes to it while it dies is lost with it, as what it was doing is; nobody waits for it.
    await Promise.all(asked)
    expect(answers.filter((answer) => answer === 'closed')).toHaveLength(1)
    await until(() => toolway.said().includes('worker exited'), { what: 'its end' })
    for (const caller of callers) expect((await now(caller)).isError).not.toBe(true)
    await until(() => workers().filter((pid) => !before.includes(pid)).length === 1, { what: 'another worker' })
    await until(async () => /toolway_build_info\{worker="2"/.test(await metrics()), { what: 'its metrics' })
    for (const caller of callers) expect((await now(caller)).isError).not.toBe(true)
    expect(toolway.said()).toContain('took over a session')
  })

  test('B10, G8: a worker that is restarted while the configuration file is empty does not serve the defaults', async () => {
    const { configFile = '' } = toolway
    const text = await readFile(configFile, 'utf8')
    const exits = () => toolway.said().split('worker exited').length
    const [before, victim = 0] = [exits(), workers()[0]]
    await writeFile(configFile, '')
    process.kill(victim, 'SIGKILL')
    await until(() => exits() >= before + 2, { what: 'its successor to refuse the empty file' })
    expect(workers().length).toBeLessThan(3)
    await writeFile(configFile, text)
    await until(async () => (await metrics()).match(/toolway_build_info\{worker=/g)?.length === 3, {
      what: 'three workers',
    })
    const callers = await Promise.all([client('v1'), client('v1'), client('v1')])
    for (const caller of callers) expect((await now(caller)).isError).not.toBe(true)
  })

  test('B10: when all workers are killed at once, their successors listen where clients expect them', async () => {
    const before = workers()
    for (const pid of before) process.kill(pid, 'SIGSTOP')
    for (const pid of before) process.kill(pid, 'SIGKILL')
    await until(() => workers().filter((pid) => !before.includes(pid)).length === 3, { what: 'three other workers' })
    const answers = () => metrics().catch(() => '')
    await until(async () => (await answers()).match(/toolway_build_info\{worker=/g)?.length === 3, {
      what: 'their metrics',
    })
    expect((await now(await client('v2'))).isError).not.toBe(true)
  })

  test('B10, F11: SIGTERM ends all workers, also one that is starting, and the audit log verifies', async () => {
    process.kill(toolway.pid, 'SIGUSR2')
    await until(() => workers().length === 4, { what: 'a worker that takes the place of another one' })
    const told = performance.now()
    const { code, survivors } = await toolway.stop('SIGTERM', 5_000)
    expect([code, survivors]).toEqual([0, []])
    expect(performance.now() - told, 'it ends by itself, before it would be killed').toBeLessThan(20_000)
    const key = (await readFile(join(folder.path, 'state/audit-key'), 'utf8')).trim()
    const report = await verifyAudit({ folder: join(folder.path, 'state/audit'), key })
    expect(report.problems).toEqual([])
    expect(report.lanes.length).toBeGreaterThanOrEqual(3)
  })
})
