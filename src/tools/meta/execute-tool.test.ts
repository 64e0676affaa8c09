import { expect, test } from 'vitest'
import * as z from 'zod'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import type { Result } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { asRecord } from '../../lib/is-record.ts'
import { bodyOf, createTestGateway, mutePeer, refusalOf, structuredOf, user } from '../access.fixture.ts'
import { defineTool } from '../define-tool.ts'
import { echo } from '../tools.fixture.ts'

const raw: Result = {
  body: Json.raw(Buffer.from('{"content":[{"type":"odd","huge":12345678901234567890}],"isError":true,"other":1}')),
  isError: true,
}
const verbatim = defineTool({ name: 'verbatim', description: '', input: z.object({}), run: () => raw })
const fail = (name: string, thrown: unknown) =>
  defineTool({ name, description: '', input: z.object({}), run: () => Promise.reject(thrown) })

const serverError = new ServerError(Json.of({ code: -32050, message: 'disk full', data: { free: 0 } }))
const refused = new ToolwayError('RATE_LIMITED', 'limit of 60 per minute reached', { retryAfterMs: 10 })

const createFiles = () =>
  createTestGateway({
    servers: { files: [echo('read'), verbatim, fail('broken', serverError), fail('limited', refused)] },
  })

test('G4: execute_tool gives the tool’s own result, the very same one', async () => {
  expect(await createFiles().ask('execute_tool', { server: 'files', tool: 'verbatim', args: {} })).toBe(raw)
})

test('G4: the call inside is a new one through the whole pipeline, with the same way back', async () => {
  const gateway = createFiles()
  const controller = new AbortController()
  const peer = { ...mutePeer }
  const input = { server: 'files', tool: 'read', args: { path: '/a' }, timeout_ms: 3_600_000 }
  await gateway.ask('execute_tool', input, {
    peer,
    signal: controller.signal,
    input: { arguments: Json.of(input), meta: { progressToken: 7, traceparent: '00-1' } },
  })
  const [outer, inner] = gateway.calls
  expect(gateway.calls).toHaveLength(2)
  expect(inner?.parent).toBe('outer')
  // Less the real time that it took to find the tool.
  expect(inner?.timeoutMs).toBeGreaterThan(3_000_000)
  expect(inner?.wholeTimeoutMs).toBe(3_600_000)
  expect(inner?.id).not.toBe(outer?.id)
  expect(inner?.entry).toMatchObject({ server: 'files', name: 'read' })
  expect(inner?.input.arguments.value).toEqual({ path: '/a' })
  expect(inner?.input.meta).toEqual({ progressToken: 7, traceparent: '00-1' })
  expect(inner?.caller).toBe(user)
  expect(inner?.peer).toBe(peer)
  expect(inner?.signal).toBe(controller.signal)
})

test('F10: execute_tool itself never times out before the call that it carries', async () => {
  const gateway = createFiles()
  await gateway.ask('execute_tool', { server: 'files', tool: 'read' })
  const [outer, inner] = gateway.calls
  expect(inner?.timeoutMs).toBeUndefined()
  expect(outer?.entry.traits.timeoutMs).toBeGreaterThan(3_600_000)
  const refusal = await refusalOf(gateway.ask('execute_tool', { server: 'files', tool: 'read', timeout_ms: 3_600_001 }))
  expect(refusal.message).toContain('"timeout_ms" must be at most 3600000')
})

test.each(['execute_tool', 'execute_tools'])(
  'F10: a timeout_ms of 0 sets no timeout for %s, like an absent one',
  async (name) => {
    const gateway = createFiles()
    const asked = { server: 'files', tool: 'read' }
    await gateway.ask(name, { ...(name === 'execute_tool' ? asked : { calls: [asked] }), timeout_ms: 0 })
    expect(gateway.calls).toHaveLength(2)
    expect(gateway.calls[1]?.timeoutMs).toBeUndefined()
  },
)

test.each([
  [{ path: '/a' }, { path: '/a' }],
  ['{"path":"/a"}', { path: '/a' }],
  ['', {}],
  [null, {}],
  [undefined, {}],
])('G4: args %j are understood as %j', async (args, understood) => {
  const result = await createFiles().ask('execute_tool', { server: 'files', tool: 'read', args })
  expect(structuredOf(result)).toEqual({ name: 'read', args: understood })
})

test('G4: odd keys reach the tool as they were sent', async () => {
  const gateway = createFiles()
  const args = JSON.parse('{"__proto__":{"a":1},"constructor":2}')
  await gateway.ask('execute_tool', { server: 'files', tool: 'verbatim', args }).catch(() => undefined)
  expect(gateway.calls[1]?.input.arguments.bytes.toString()).toBe('{"__proto__":{"a":1},"constructor":2}')
})

test.each([['[1]'], ['{"path":'], [[1]], [7], ['"text"']])(
  'E2: args %j are refused before anything runs',
  async (args) => {
    const gateway = createFiles()
    const refusal = await refusalOf(gateway.ask('execute_tool', { server: 'files', tool: 'read', args }))
    expect(refusal.code).toBe('INVALID_ARGUMENTS')
    expect(refusal.message).toContain('"args" for files.read must be an object')
    expect(gateway.calls).toHaveLength(1)
  },
)

test('T2: errors of the tool and of the pipeline reach the front end unchanged', async () => {
  const gateway = createFiles()
  const run = (server: string, tool: string) => gateway.ask('execute_tool', { server, tool, args: {} })
  await expect(run('files', 'broken')).rejects.toBe(serverError)
  await expect(run('files', 'limited')).rejects.toBe(refused)
})

test.each([
  ['nowhere', 'read', { code: 'SERVER_NOT_FOUND' }],
  ['files', 'nothing', { code: 'TOOL_NOT_FOUND', server: 'files' }],
])('E1: an unknown server or tool (%s.%s) is a result that a model can read', async (server, tool, error) => {
  const gateway = createFiles()
  const result = await gateway.ask('execute_tool', { server, tool, args: {} })
  expect(bodyOf(result)).toMatchObject({
    isError: true,
    content: [{ type: 'text', text: expect.stringContaining(server) }],
    _meta: { 'dev.toolway/error': error },
  })
  expect(result).toMatchObject({ isError: true, refusal: { code: error.code } })
})

test('G4: execute_tool runs other meta-tools, but neither itself nor a batch', async () => {
  const gateway = createFiles()
  const listed = await gateway.ask('execute_tool', { server: 'toolway', tool: 'list_servers', args: {} })
  expect(structuredOf(listed)).toMatchObject({ servers: [{ name: 'files' }] })
  for (const tool of ['execute_tool', 'execute_tools']) {
    const refusal = await refusalOf(gateway.ask('execute_tool', { server: 'toolway', tool, args: {} }))
    expect(refusal.code).toBe('INVALID_ARGUMENTS')
    expect(refusal.message).toContain(`execute_tool cannot run ${tool}`)
  }
})

test('G4, S7: execute_tool runs a program, which agents that see only the meta-tools cannot call directly', async () => {
  const program = { carries: true, counted: true, input: z.object({}), run: () => raw } as const
  const execute_code = defineTool({ name: 'execute_code', description: '', ...program })
  const gateway = createTestGateway({ servers: { native: [execute_code] } })
  const asked = { server: 'native', tool: 'execute_code', args: {} }
  expect(await gateway.ask('execute_tool', asked)).toBe(raw)
  expect(gateway.calls[1]).toMatchObject({ parent: 'outer', entry: { name: 'execute_code' } })
  const batch = structuredOf(await gateway.ask('execute_tools', { calls: [asked] }))
  const message = expect.stringContaining('with execute_tool')
  expect(batch).toMatchObject({ results: [{ ok: false, error: { code: 'INVALID_ARGUMENTS', message } }] })
})

test('G7: the call inside acts as the agent that was asked for', async () => {
  const gateway = createTestGateway({
    servers: { files: [echo('read')] },
    meta: { asAgent: ({ caller }, agentId) => ({ ...caller, agent: agentId ?? caller.agent }) },
  })
  await gateway.ask('execute_tool', { agent_id: 'junior', server: 'files', tool: 'read', args: {} })
  expect(gateway.calls.map(({ caller }) => caller.agent)).toEqual(['default', 'junior'])
})

test('W6: call_read_tool runs tools that only read, and refuses all others before they run', async () => {
  const read = defineTool({ name: 'read', description: '', input: z.looseObject({}), readOnly: true, run: () => raw })
  const gateway = createTestGateway({ servers: { files: [read, echo('write')] } })
  expect(await gateway.ask('call_read_tool', { server: 'files', tool: 'read', args: {} })).toBe(raw)
  const refusal = await refusalOf(gateway.ask('call_read_tool', { server: 'files', tool: 'write', args: {} }))
  expect(refusal).toMatchObject({ code: 'WRITE_NOT_ALLOWED', message: expect.stringContaining('call_write_tool') })
  expect(gateway.calls.map(({ entry }) => entry.name)).toEqual(['call_read_tool', 'read', 'call_read_tool'])
  expect(structuredOf(await gateway.ask('call_write_tool', { server: 'files', tool: 'write', args: {} })).name).toBe(
    'write',
  )
})

test('W6: only call_read_tool is annotated as a read', () => {
  const hints = createFiles()
    .view(user)
    .list('tool')
    .filter(({ entry: { name } }) => /^(call|execute)_/.test(name))
    .map(({ entry: { name, definition } }) => [name, asRecord(definition.annotations).readOnlyHint])
  expect(Object.fromEntries(hints)).toEqual({
    ...{ call_read_tool: true, call_write_tool: false },
    ...{ execute_tool: false, execute_tools: false },
  })
})
