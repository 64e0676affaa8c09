import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { recordsIn } from '../../../src/audit/audit.fixture.ts'
import { isEvent } from '../../../src/audit/record.ts'
import { createGateway, defineTool, type ProgramOptions } from '../../../src/index.ts'
import { connect } from '../../fixtures/clients.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { createKeptLog } from '../../fixtures/log.ts'
import { toolwayLibrary } from '../../fixtures/programs.ts'
import { stdioServers } from '../../fixtures/servers.ts'

const execute = promisify(execFile)

const greet = defineTool({
  name: 'greet',
  description: 'Greets somebody.',
  inputSchema: z.object({ whom: z.string() }),
  readOnly: true,
  handler: ({ whom }, { caller, progress }) => {
    progress(1, 2, 'half')
    if (whom === 'nobody') throw new Error('nobody is here')
    return `Hello ${whom}, says ${caller.agent} for ${caller.principal}`
  },
})

const wait = defineTool({
  name: 'wait',
  description: 'Waits until it is cancelled.',
  inputSchema: { type: 'object', additionalProperties: false },
  handler: (_, { signal }) =>
    new Promise<string>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
})

/** A gateway with a folder of its own. */
async function open({ config = {}, ...options }: ProgramOptions = {}) {
  await using stack = new AsyncDisposableStack()
  const { path } = stack.use(await temporaryFolder())
  const own = { stores: { path: join(path, 'state') }, audit: { path: join(path, 'audit') }, server: { port: 0 } }
  const log = createKeptLog()
  const gateway = stack.use(
    await createGateway({ config: { ...own, ...config }, log, tools: [greet, wait], ...options }),
  )
  const running = stack.move()
  return { gateway, log, audit: own.audit.path, [Symbol.asyncDispose]: () => running.disposeAsync() }
}

const agents = {
  host: { allow: { servers: ['native', 'everything'] }, perMinute: 4 },
  guest: { allow: { tools: { native: ['hash'] } } },
}

describe('V26: a gateway in a program', () => {
  test('tools registered in code are listed, called by programs and by clients, and recorded', async () => {
    await using story = await open({ config: { auth: { token: 'a-token-that-is-long-enough' } } })
    const { gateway } = story
    const tools = await gateway.list()
    expect(tools).toContainEqual(
      expect.objectContaining({ name: 'greet', server: 'native', tool: 'greet', inputSchema: expect.anything() }),
    )
    const heard: unknown[] = []
    const result = await gateway.call('native__greet', { whom: 'Ada' }, { onProgress: (told) => heard.push(told) })
    expect(result.content).toEqual([{ type: 'text', text: 'Hello Ada, says default for local' }])
    expect(heard).toEqual([{ progress: 1, total: 2, message: 'half' }])
    expect(await gateway.call('greet', { whom: 'nobody' })).toMatchObject({ isError: true })

    const { url } = await gateway.listen()
    await using client = await connect('v2', { endpoint: { url, token: gateway.token ?? '' } })
    expect(JSON.stringify(await client.callTool('greet', { whom: 'Bob' }))).toContain('Hello Bob')

    await gateway[Symbol.asyncDispose]()
    const calls = recordsIn(story.audit)
      .filter(isEvent)
      .filter(({ tool, phase }) => tool === 'greet' && phase === 'after')
    expect(calls).toMatchObject([
      { decision: 'ALLOW', is_error: false },
      { decision: 'ALLOW', is_error: true },
      { decision: 'ALLOW', is_error: false },
    ])
  })

  test('arguments, rules and limits apply to programs as to other callers', async () => {
    await using story = await open({ config: { agents } })
    const { gateway } = story
    await expect(gateway.call('greet', { whom: 7 }, { agent: 'host' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENTS',
    })
    await expect(gateway.call('wait', { a: 1 }, { agent: 'host' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
    await expect(gateway.call('greet', { whom: 'a' }, { agent: 'guest' })).rejects.toMatchObject({
      code: 'DENIED_BY_POLICY',
    })
    await expect(gateway.call('greet', { whom: 'a' }, { agent: 'stranger' })).rejects.toMatchObject({
      code: 'INVALID_AGENT_ID',
    })
    await expect(gateway.call('nothing', {}, { agent: 'host' })).rejects.toMatchObject({ code: 'TOOL_NOT_FOUND' })
    expect((await gateway.list({ agent: 'guest' })).map(({ name }) => name)).toEqual(['hash'])
    const calls = Array.from({ length: 6 }, () => ({ server: 'native', tool: 'greet', args: { whom: 'a' } }))
    const { results } = await gateway.batch(calls, { agent: 'host' })
    const refused = results.filter(({ ok }) => !ok)
    expect(refused.length).toBeGreaterThanOrEqual(2)
    expect(refused[0]).toMatchObject({ server: 'native', tool: 'greet', error: { code: 'RATE_LIMITED' } })
  })

  test('a batch over real servers answers as execute_tools does, in the order asked', async () => {
    await using story = await open({ config: { mcpServers: { everything: stdioServers.everything() } } })
    const { gateway } = story
    await gateway.refresh()
    const calls = [
      { server: 'everything', tool: 'echo', args: { message: 'one' } },
      { server: 'native', tool: 'greet', args: { whom: 'nobody' } },
      { server: 'nowhere', tool: 'echo', args: {} },
      { server: 'everything', tool: 'get-sum', args: { a: 1, b: 2 } },
    ]
    const progress: unknown[] = []
    const answer = await gateway.batch(calls, { onProgress: (told) => progress.push(told) })
    const { structuredContent } = await gateway.call('execute_tools', { calls })
    expect(answer).toEqual(structuredContent)
    expect(answer.results.map(({ ok }) => ok)).toEqual([true, false, false, true])
    expect(progress.at(-1)).toEqual({ progress: 4, total: 4 })
  })

  test('a call can be cancelled, and timed', async () => {
    await using story = await open()
    const { gateway } = story
    const controller = new AbortController()
    const cancelled = gateway.call('wait', {}, { signal: controller.signal })
    setImmediate(() => controller.abort())
    await expect(cancelled).rejects.toMatchObject({ code: 'CANCELLED' })
    await expect(gateway.call('wait', {}, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'CANCELLED' })
    await expect(gateway.call('wait', {}, { timeoutMs: 20 })).rejects.toMatchObject({ code: 'TIMEOUT' })
  })

  test('a program that only waits for a call lives to see its timeout', async () => {
    await using place = await temporaryFolder()
    const program = `
      import { createGateway, defineTool } from ${JSON.stringify(toolwayLibrary)}
      const hang = defineTool({ name: 'hang', description: '', handler: () => new Promise(() => {}) })
      const config = { stores: { path: './state' }, audit: { path: './audit' } }
      const gateway = await createGateway({ config, tools: [hang] })
      console.log(await gateway.call('hang', {}, { timeoutMs: 50 }).catch(({ code }) => code))
      await gateway[Symbol.asyncDispose]()`
    const { stdout } = await execute(process.execPath, ['--input-type=module', '-e', program], { cwd: place.path })
    expect(stdout.trim()).toBe('TIMEOUT')
  })

  test('a gateway that is disposed of twice at the same time is closed after each', async () => {
    await using story = await open()
    const { gateway } = story
    const ended: string[] = []
    const ending = async (name: string) => {
      await gateway[Symbol.asyncDispose]()
      ended.push(name)
    }
    await gateway.listen()
    const both = [ending('first'), ending('second')]
    // A disposal that has nothing to wait for would be over by then.
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    expect(ended).toEqual([])
    await Promise.all(both)
    expect(ended).toEqual(['first', 'second'])
    await expect(gateway.call('greet', { whom: 'Ada' })).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  })

  test('a tool without a schema takes no arguments', async () => {
    const ping = defineTool({ name: 'ping', description: '', handler: () => 'pong' })
    await using story = await open({ tools: [ping] })
    expect(await story.gateway.call('ping')).toMatchObject({ content: [{ text: 'pong' }] })
    await expect(story.gateway.call('ping', { a: 1 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })

  test('a program may act for several users', async () => {
    await using story = await open()
    const { content } = await story.gateway.call('greet', { whom: 'Ada' }, { principal: 'ann' })
    expect(content[0]?.text).toBe('Hello Ada, says default for ann')
  })

  test('names that are used twice, or by Toolway itself, are refused with the name', async () => {
    const named = (name: string) => defineTool({ name, description: '', inputSchema: z.object({}), handler: () => 'x' })
    await expect(open({ tools: [greet, named('greet')] })).rejects.toThrow('"greet"')
    await expect(open({ tools: [named('hash')] })).rejects.toThrow('"hash"')
    await expect(open({ tools: [{} as never] })).rejects.toThrow('defineTool')
    await expect(open({ config: { mcpServer: {} } })).rejects.toThrow('mcpServer')
  })

  test('an error in a configuration that is an object names no file', async () => {
    const opening = createGateway({ config: { mcpServers: { files: { comand: 'x' } } } })
    await expect(opening).rejects.toThrow('config: mcpServers.files.comand')
    await expect(opening).rejects.not.toThrow('toolway.json')
  })

  test.each<[unknown, string]>([
    [{ mcpServers: {} }, '"mcpServers"'],
    ['./toolway.yaml', 'createGateway needs an object'],
    [{ config: './toolway.yaml' }, 'loadConfig'],
    [{ config: null }, 'loadConfig'],
    [{ tools: greet }, 'list'],
    [{ config: { server: { port: Number.NaN } } }, '"port" is NaN'],
    [{ config: { auth: { token: () => 'x' } } }, '"token"'],
  ])('options that do not exist or have the wrong type are refused: %j', async (options, message) => {
    const opening = createGateway(options as ProgramOptions)
    await expect(opening).rejects.toThrow(TypeError)
    await expect(opening).rejects.toThrow(message)
  })

  test('options in a second object are refused, not ignored', async () => {
    const create = createGateway as (...options: readonly object[]) => Promise<unknown>
    const loaded = { problemAt: undefined, filesToWatch: [] }
    for (const first of [{}, loaded]) {
      await expect(create(first, { config: { mcpServers: {} } })).rejects.toThrow('in one object')
    }
  })
})
