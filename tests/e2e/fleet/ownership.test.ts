import { readdir } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { calls, type ModelServer, modelServer, says } from '../../../src/chat/models/server.fixture.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { silentLog } from '../../../src/core/log.ts'
import { openOAuth } from '../../../src/runtime/oauth-sign-in.ts'
import { startIssuer, type TestIssuer } from '../../../src/upstream/oauth/issuer.fixture.ts'
import { startResource } from '../../../src/upstream/oauth/resource.fixture.ts'
import { type Balancer, startBalancer } from '../../fixtures/balancer.ts'
import { connectCaller, type Params } from '../../fixtures/callers.ts'
import { serverProgram } from '../../fixtures/programs.ts'
import { rawModern } from '../../fixtures/raw-callers.ts'
import { startRedis } from '../../fixtures/redis.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type Endpoint, type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { withPart } from '../../fixtures/with-part.ts'

/** What the chat answers with, as far as it matters. */
interface ChatAnswer {
  readonly content: string | null
  readonly tool_calls?: readonly { readonly id: string }[]
}

const fixture = serverProgram('conformance')
const token = 'the-token-of-the-whole-fleet'
const secret = 'the key of the whole fleet, which is in no Redis'
const extensions = { extensions: { 'io.modelcontextprotocol/tasks': {} } }

withPart('redis-server', 'B10: what replicas own together', () => {
  const open = new AsyncDisposableStack()
  const replicas: LocalToolway[] = []
  let balancer: Balancer
  let model: ModelServer
  let issuer: TestIssuer

  beforeAll(async () => {
    const redis = open.use(await startRedis())
    model = open.use(
      await modelServer(
        calls(
          { name: 'hash', arguments: { data: 'what the model wanted to know' }, id: 'ours' },
          { name: 'paint', arguments: { colour: 'blue' }, id: 'theirs' },
        ),
        says('Done.'),
      ),
    )
    issuer = open.use(await startIssuer({ expiresIn: 3_600 }))
    const resource = open.use(await startResource({ issuers: [issuer] }))
    const start = () =>
      startToolway({
        auth: { token },
        stores: { redis: { url: redis.url }, key: secret },
        mcpServers: {
          tasks: { command: process.execPath, args: [fixture, '--stdio', '--eras', 'modern'] },
          everything: stdioServers.everything(),
          granted: { url: resource.url, auth: { type: 'oauth' } },
        },
        models: { local: { kind: 'openai', baseUrl: model.baseUrl, model: 'scripted' } },
        chat: { model: 'local', mode: 'agent' },
        sandbox: { languages: ['javascript'] },
        discovery: { listDeadline: '20s' },
      })
    for (const replica of await Promise.all([start(), start()])) replicas.push(open.use(replica))
    balancer = open.use(await startBalancer(replicas.map(({ url }) => url)))
  })
  afterAll(() => open.disposeAsync())

  const asked = async (at: Endpoint, method: string, params: object): Promise<Params> => {
    const { result, error } = JSON.parse(await rawModern(at, extensions)(method, params))
    if (error) throw new Error(JSON.stringify(error))
    return result
  }
  const [one, other] = [() => replicas[0] as LocalToolway, () => replicas[1] as LocalToolway]
  const run = async (at: Endpoint, code: string, environment = 'notes') =>
    (await asked(at, 'tools/call', { name: 'execute_code', arguments: { code, environment } })) as {
      readonly structuredContent?: { readonly value?: unknown; readonly reset?: string }
      readonly content: readonly { readonly text: string }[]
      readonly isError?: boolean
    }

  test('S7: a stateless caller finds the variables of its environment on any replica', async () => {
    expect((await run(one(), 'let count = 1; count')).structuredContent).toMatchObject({ value: 1 })
    expect((await run(other(), '++count')).structuredContent).toMatchObject({ value: 2 })
    expect((await run(one(), '++count')).structuredContent).toMatchObject({ value: 3 })
    // Of many that begin one at the same time all come to the same.
    const begun = await Promise.all(
      Array.from({ length: 4 }, (_, n) =>
        run(n % 2 ? one() : other(), 'globalThis.n = (globalThis.n ?? 0) + 1', 'new'),
      ),
    )
    expect(begun.map(({ structuredContent }) => structuredContent?.value).sort()).toEqual([1, 2, 3, 4])
  })

  test('S7: a stateless caller finds its environment also through execute_tool', async () => {
    const through = (at: Endpoint, code: string) => {
      const args = { code, environment: 'through execute_tool' }
      const params = { name: 'execute_tool', arguments: { server: 'native', tool: 'execute_code', args } }
      return asked(at, 'tools/call', params)
    }
    expect(await through(one(), 'let count = 1; count')).toMatchObject({ structuredContent: { value: 1 } })
    expect(await through(other(), '++count')).toMatchObject({ structuredContent: { value: 2 } })
  })

  test('S7: a session that uses the environment of another gets an error, and keeps its own', async () => {
    const holders = await Promise.all(
      replicas.map(async ({ url }) => open.use(await connectCaller('v1', { url, token }))),
    )
    const program = (code: string, environment: string) => ({ code, environment })
    await holders[0]?.call('execute_code', program('let kept = 7', 'of a session'))
    const { content, isError } = (await holders[1]?.call('execute_code', program('kept', 'of a session'))) ?? {}
    expect(isError).toBe(true)
    expect(content).toMatchObject([{ text: expect.stringContaining('belongs to another process') }])
    const through = open.use(await connectCaller('v1', { url: balancer.url, token }))
    await through.call('execute_code', program('let own = 1', 'through the balancer'))
    for (let value = 2; value < 4; value++) {
      const { structuredContent } = await through.call('execute_code', program('++own', 'through the balancer'))
      expect(structuredContent).toMatchObject({ value })
    }
  })

  test('B2: a stateless caller answers on any replica what a process of one of them asked', async () => {
    const capabilities = { elicitation: {}, sampling: {}, roots: {} }
    const answer = () => ({ action: 'accept', content: { name: 'Ann', color: 'red' } })
    const caller = open.use(await connectCaller('modern', { url: balancer.url, token }, { capabilities, answer }))
    for (let times = 0; times < 2; times++) {
      const result = await caller.call('tasks__test_input_required_result_multi_round')
      expect(result.isError, JSON.stringify(result)).toBeFalsy()
    }
  })

  test('B2: a stateless caller asks any replica about a task, and calls it off there', async () => {
    const begin = async (args: object) =>
      (await asked(one(), 'tools/call', { name: 'tasks__slow_compute', arguments: args })).taskId
    const short = await begin({ seconds: 0, label: 'it' })
    const done = await until(
      async () => {
        const task = await asked(other(), 'tasks/get', { taskId: short })
        return task.status === 'completed' ? task : undefined
      },
      { what: 'the task to end' },
    )
    expect(JSON.stringify(done)).toContain('it')
    const long = await begin({ seconds: 600, label: 'never' })
    await asked(other(), 'tasks/cancel', { taskId: long })
    const cancelled = async () => (await asked(one(), 'tasks/get', { taskId: long })).status === 'cancelled'
    await until(cancelled, { what: 'the end of the task' })
  })

  test('B2: a session asks through any replica about its task, waits for its result, and calls it off', async () => {
    const caller = open.use(await connectCaller('v1', { url: balancer.url, token }))
    const begin = async () => {
      const params = { name: 'everything__simulate-research-query', arguments: { topic: 'bees' } }
      const { task } = await caller.request('tools/call', { ...params, task: { ttl: 60_000 } })
      return (task as { taskId: string }).taskId
    }
    const [taskId, unwanted] = [await begin(), await begin()]
    for (let times = 0; times < 3; times++) {
      expect(await caller.request('tasks/get', { taskId })).toMatchObject({ taskId, status: 'working' })
    }
    expect(await caller.request('tasks/cancel', { taskId: unwanted })).toMatchObject({ status: 'cancelled' })
    expect(JSON.stringify(await caller.request('tasks/result', { taskId }))).toContain('bees')
  })

  test('J5: a client that returns with its results to another replica finds its conversation', async () => {
    const chat = async ({ url }: Endpoint, messages: readonly object[]) => {
      const parameters = { type: 'object', properties: { colour: { type: 'string' } } }
      const tools = [{ type: 'function', function: { name: 'paint', description: 'Paints the wall.', parameters } }]
      const answer = await fetch(new URL('/v1/chat/completions', url), {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'local', messages, tools }),
      })
      const { choices } = (await answer.json()) as { choices: { message: ChatAnswer }[] }
      return choices[0]?.message as ChatAnswer
    }
    const question = { role: 'user', content: 'Hash it, and paint it blue.' }
    const handed = await chat(one(), [question])
    expect(handed.tool_calls).toMatchObject([{ function: { name: 'paint' } }])
    const result = { role: 'tool', tool_call_id: handed.tool_calls?.[0]?.id, content: 'painted' }
    expect(await chat(other(), [question, handed, result])).toMatchObject({ content: 'Done.' })
    // What was done before is known to the model there, under the ids that it gave.
    const told = model.asked.at(-1)?.body.messages.filter(({ role }) => role === 'tool')
    expect(told).toMatchObject([{ tool_call_id: 'ours' }, { tool_call_id: 'theirs', content: 'painted' }])
  })

  test('B6: a sign-in by a command counts for all replicas, and what it gave is in no state folder', async () => {
    const { config } = one().gateway.loaded
    const server = config.mcpServers.granted
    if (!server) throw new Error('it is configured')
    await using oauth = await openOAuth(config, { clock: systemClock, log: silentLog })
    const flow = await oauth.begin('granted', server, new URL('http://127.0.0.1:1234/callback'))
    await flow.finish(await issuer.visit(flow.url))
    for (const replica of replicas) {
      await replica.gateway.refresh()
      expect(await asked(replica, 'tools/call', { name: 'granted__work', arguments: {} })).toMatchObject({
        content: [{ text: 'done' }],
      })
    }
    expect(issuer.tokenRequests).toHaveLength(1)
    for (const { gateway } of replicas) {
      expect(await readdir(gateway.loaded.config.stores.path)).not.toContain('vault')
    }
  })

  test('S7: when its replica is gone an environment starts empty, and the first result says why', async () => {
    await run(one(), 'globalThis.gone = true', 'of one')
    await one()[Symbol.asyncDispose]()
    const first = (await run(other(), 'typeof gone', 'of one')).structuredContent
    expect(first).toMatchObject({ value: 'undefined', reset: expect.stringMatching(/process .* has ended/) })
    expect((await run(other(), '1', 'of one')).structuredContent?.reset).toBeUndefined()
  })
})
