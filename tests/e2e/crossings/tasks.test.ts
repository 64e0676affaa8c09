import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startFixture } from '../../conformance/fixture/http.ts'
import { connectCaller, type Params, type StoryCaller } from '../../fixtures/callers.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { serverProgram } from '../../fixtures/programs.ts'
import { rawModern } from '../../fixtures/raw-callers.ts'
import { rawSession } from '../../fixtures/raw-http.ts'
import { startEverything, stdioServers } from '../../fixtures/servers.ts'
import { type Endpoint, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

const open = new AsyncDisposableStack()
afterAll(() => open.disposeAsync())

describe.concurrent('tasks of revision 2025-11-25', () => {
  const capabilities = {
    elicitation: {},
    tasks: { list: {}, cancel: {}, requests: { elicitation: { create: {} } } },
  }
  const asked: Params[] = []
  let caller: StoryCaller
  let stateless: StoryCaller

  beforeAll(async () => {
    const remote = open.use(await startEverything('streamableHttp'))
    const mcpServers = { http: { url: remote.url }, stdio: stdioServers.everything() }
    const toolway = open.use(await startToolway({ mcpServers, discovery: { listDeadline: '20s' } }))
    const answer = (_: string, params: Params) => {
      asked.push(params)
      return { action: 'accept', content: { interpretation: 'technical' } }
    }
    caller = open.use(await connectCaller('v1', toolway, { capabilities, answer }))
    await caller.request('tools/list')
    stateless = open.use(await connectCaller('v2', toolway))
  })

  const start = async (server: string, args: Params) => {
    const name = `${server}__simulate-research-query`
    const { task } = await caller.request('tools/call', { name, arguments: args, task: { ttl: 60_000 } })
    return task as { taskId: string; status: string }
  }

  test('B2: the gateway offers them, and a tool says that it wants to be called so', async () => {
    expect(caller.capabilities.tasks).toEqual({ cancel: {}, requests: { tools: { call: {} } } })
    const { tools } = await caller.request('tools/list')
    const tool = (tools as Params[]).find(({ name }) => name === 'http__simulate-research-query')
    expect(tool).toMatchObject({ execution: { taskSupport: 'required' } })
  })

  test.each(['http', 'stdio'])(
    'B2: a task of the server over %s starts, reports its status, asks a question, and returns its result',
    async (server) => {
      const { taskId, status } = await start(server, { topic: `topic of ${server}`, ambiguous: true })
      expect(status).toBe('working')
      expect(await caller.request('tasks/get', { taskId })).toMatchObject({ taskId, status: 'working' })
      const waiting = async () => (await caller.request('tasks/get', { taskId })).status === 'input_required'
      await until(waiting, { what: 'the task to ask' })
      const news = () => caller.told('notifications/tasks/status').filter((told) => told.taskId === taskId)
      await until(() => news().some(({ status }) => status === 'input_required'), { what: 'the task to tell so' })
      const { content, _meta } = await caller.request('tasks/result', { taskId })
      expect(content).toMatchObject([{ text: expect.stringContaining(`topic of ${server} (technical)`) }])
      expect(_meta).toMatchObject({ 'io.modelcontextprotocol/related-task': { taskId } })
      expect(await caller.request('tasks/get', { taskId })).toMatchObject({ taskId, status: 'completed' })
      const questions = asked.filter(({ message }) => String(message).includes(`topic of ${server}`))
      expect(questions).toMatchObject([{ _meta: { 'io.modelcontextprotocol/related-task': { taskId } } }])
    },
  )

  test.each(['http', 'stdio'])('F10: a task of the server over %s is cancelled', async (server) => {
    const { taskId } = await start(server, { topic: 'x' })
    expect(await caller.request('tasks/cancel', { taskId })).toMatchObject({ taskId, status: 'cancelled' })
    expect(await caller.request('tasks/get', { taskId })).toMatchObject({ status: 'cancelled' })
  })

  test.each(['http', 'stdio'])(
    'B2: a client without such tasks gets the result of a tool over %s that runs only as a task',
    async (server) => {
      const name = `${server}__simulate-research-query`
      const { tools } = await stateless.request('tools/list')
      expect((tools as Params[]).map((tool) => tool.name)).toContain(name)
      const { content } = await stateless.request('tools/call', { name, arguments: { topic: `alone ${server}` } })
      expect(content).toMatchObject([{ text: expect.stringContaining(`alone ${server}`) }])
    },
  )

  test('G3: a task is known by the id that its caller was given, and by no other', async () => {
    const { taskId } = await start('http', { topic: 'x' })
    for (const wrong of ['b20e', `${taskId}x`, taskId.slice(0, -2)]) {
      await expect(caller.request('tasks/get', { taskId: wrong })).rejects.toMatchObject({ code: -32602 })
    }
    await caller.request('tasks/cancel', { taskId })
  })
})

/** One of these tests restarts the gateway of the others. */
const inTurn = { concurrent: false }

describe.concurrent.each(['http', 'stdio'])('tasks of the extension, of a modern server over %s', (wire) => {
  const own = new AsyncDisposableStack()
  afterAll(() => own.disposeAsync())
  const capabilities = { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } }
  let endpoint: Endpoint
  let restart: () => Promise<void>

  beforeAll(async () => {
    const program = serverProgram('conformance')
    const server =
      wire === 'http'
        ? { url: own.use(await startFixture({ eras: 'modern' })).url }
        : { command: process.execPath, args: [program, '--stdio', '--eras', 'modern'] }
    const folder = own.use(await temporaryFolder())
    const start = (port: number) => startToolway({ server: { port }, mcpServers: { fixture: server } }, { folder })
    let toolway = await start(0)
    own.defer(() => toolway[Symbol.asyncDispose]())
    endpoint = { url: toolway.url, token: toolway.token }
    restart = async () => {
      await toolway[Symbol.asyncDispose]()
      toolway = await start(Number(new URL(endpoint.url).port))
    }
  })

  const ask = async (method: string, params: object): Promise<{ result: Params; error?: Params }> =>
    JSON.parse(await rawModern(endpoint, capabilities)(method, params))
  const begin = async (tool: string, args: object = {}, more: object = {}) =>
    (await ask('tools/call', { name: `fixture__${tool}`, arguments: args, ...more })).result
  const settled = (taskId: unknown, status: string): Promise<Params> =>
    until(
      async () => {
        const { result } = await ask('tasks/get', { taskId })
        return result.status === status ? result : undefined
      },
      { what: `the task to be ${status}` },
    )

  test('W5: the extension is announced to clients without sessions only', inTurn, async () => {
    const { capabilities: announced } = (await ask('server/discover', {})).result
    expect(announced).toMatchObject({ extensions: capabilities.extensions })
    const session = await rawSession(endpoint, { capabilities })
    expect(session.capabilities.extensions).toEqual({})
  })

  test('W5: a session that declares the extension gets results, not tasks', inTurn, async () => {
    const session = await rawSession(endpoint, { capabilities })
    const { result } = await session.answer('tools/call', { name: 'fixture__slow_compute', arguments: { seconds: 0 } })
    expect(result).toMatchObject({ content: [{ text: expect.stringContaining('Computed') }] })
  })

  test('B2: a task is started by the server and brings its result', inTurn, async () => {
    const task = await begin('slow_compute', { seconds: 0, label: 'it' })
    expect(task).toMatchObject({ resultType: 'task', status: 'working', taskId: expect.any(String) })
    const { taskId } = task
    const done = await settled(taskId, 'completed')
    expect(done).toMatchObject({ resultType: 'complete', taskId, result: { content: [{ text: 'Computed it' }] } })
  })

  test('B2: a task that asks gets the answers and continues', inTurn, async () => {
    const { taskId } = await begin('confirm_delete', { filename: 'a.txt' })
    const { inputRequests } = await settled(taskId, 'input_required')
    expect(inputRequests).toMatchObject({ confirm: { method: 'elicitation/create' } })
    const inputResponses = { confirm: { action: 'accept', content: { confirm: true } } }
    expect((await ask('tasks/update', { taskId, inputResponses })).result).toMatchObject({ resultType: 'complete' })
    expect(await settled(taskId, 'completed')).toMatchObject({ result: { content: [{ text: 'Deleted a.txt' }] } })
  })

  test('B2: rounds first, then a task', inTurn, async () => {
    const first = await begin('test_tool_with_task')
    expect(first).toMatchObject({ resultType: 'input_required', inputRequests: { user_name: {} } })
    const inputResponses = { user_name: { action: 'accept', content: { name: 'Ann' } } }
    const { requestState } = first
    const task = await begin(
      'test_tool_with_task',
      {},
      { inputResponses, ...(requestState !== undefined && { requestState }) },
    )
    expect(await settled(task.taskId, 'completed')).toMatchObject({ result: { content: [{ text: 'Hello, Ann!' }] } })
  })

  test('F10: a task is cancelled', inTurn, async () => {
    const { taskId } = await begin('slow_compute', { seconds: 60 })
    await ask('tasks/cancel', { taskId })
    expect(await settled(taskId, 'cancelled')).toMatchObject({ taskId })
  })

  test('G3: an unknown id is an error, and failures are those of the server', inTurn, async () => {
    const { taskId } = await begin('protocol_error_job')
    expect(await settled(taskId, 'failed')).toMatchObject({ error: { message: 'The job has crashed' } })
    expect(await ask('tasks/get', { taskId: 'guessed' })).toMatchObject({ error: { code: -32602 } })
    expect(await ask('tasks/get', { taskId: `${taskId}x` })).toMatchObject({ error: { code: -32602 } })
  })

  if (wire === 'http') {
    test('B2: a task outlives Toolway', inTurn, async () => {
      const { taskId } = await begin('confirm_delete', { filename: 'b.txt' })
      await restart()
      await settled(taskId, 'input_required')
      const inputResponses = { confirm: { action: 'accept', content: { confirm: true } } }
      await ask('tasks/update', { taskId, inputResponses })
      expect(await settled(taskId, 'completed')).toMatchObject({ result: { content: [{ text: 'Deleted b.txt' }] } })
    })
  }
})
