import { expect, test } from 'vitest'
import * as z from 'zod'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import type { Call, Interceptor } from '../../core/call.ts'
import { endWith } from '../../core/deadline.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import { type ResultBody, resultOf } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { approve } from '../../pipeline/approve.ts'
import { approvalBy, interceptorOf } from '../../pipeline/pipeline.fixture.ts'
import { mutePeer, user } from '../access.fixture.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { echo } from '../tools.fixture.ts'
import { createCodeTool, successOf } from './code.fixture.ts'

const gives = (name: string, run: () => ResultBody | Promise<ResultBody>): Tool =>
  defineTool({ name, description: '', input: z.looseObject({}), run: async () => resultOf(await run()) })
const text = (...texts: string[]) => ({ content: texts.map((one) => ({ type: 'text', text: one })) })
const image = { type: 'image', data: 'AA==', mimeType: 'image/png' }

test.each<[string, ResultBody, unknown]>([
  ['structured content', { ...text('{"a":2}'), structuredContent: { a: 1 } }, { a: 1 }],
  ['JSON text', text(' {"a":[1]}'), { a: [1] }],
  ['a list as JSON text', text('[1,2]'), [1, 2]],
  ['text', text('plain'), 'plain'],
  ['text that only looks like JSON', text('{"a":'), '{"a":'],
  ['a number as text', text('007'), '007'],
  ['several texts', text('a', 'b'), 'a\nb'],
  ['other content', { content: [{ type: 'text', text: 'see' }, image] }, [{ type: 'text', text: 'see' }, image]],
  ['nothing', { content: [] }, null],
  ['no list of content', { content: 'text' as never }, null],
  ['no pieces of content', { content: [null, 3] as never }, [null, 3]],
  ['null as structured content', { structuredContent: null }, null],
  ['text nested too deeply', text('['.repeat(500) + ']'.repeat(500)), '['.repeat(500) + ']'.repeat(500)],
])('B9: a result is unwrapped: %s', async (_, body, value) => {
  const { run } = createCodeTool({ servers: { s: [gives('t', () => body)] } })
  expect(await successOf(run('await tools.s.t()'))).toEqual(value)
})

test.each([
  'tools.files.read_file({ a: 1 })',
  "tools.files['read-file']({ a: 1 })",
  "tools['files']['read-file']({ a: 1 })",
  "tools['files.read-file']({ a: 1 })",
  'tools.files.read_file(JSON.stringify({ a: 1 }))',
  'Promise.all([tools.files.read_file({ a: 1 })]).then(([first]) => first)',
])('B9: a tool can be called as %s', async (call) => {
  const { run, inner } = createCodeTool({ servers: { files: [echo('read-file')] } })
  const answer = await run(`await ${call}`)
  expect(answer.value).toEqual({ name: 'read-file', args: { a: 1 } })
  expect(answer.calls).toEqual([{ tool: 'files.read-file', status: 'ok', durationMs: 0 }])
  expect(inner).toHaveLength(1)
})

test('B9: each call is one of the caller through the one pipeline, with the run as its parent', async () => {
  const { run, inner } = createCodeTool({ servers: { files: [echo('read')] } })
  const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
  const meta = { progressToken: 7, other: 1 }
  const code = 'await tools.files.read({ a: 1 })'
  await run(code, { trace, input: { arguments: Json.of({ code }), meta } })
  expect(inner[0]).toMatchObject({ parent: 'outer', trace, input: { meta: { other: 1 } } })
  expect(inner[0]?.caller).toBe(user)
  expect(inner[0]?.input.meta).not.toHaveProperty('progressToken')
})

/** What is no text, and cannot be made one. */
const odd = { toString: 1, valueOf: 1 }

const broken = [
  gives('failing', () => ({ ...text('the disk is full'), isError: true })),
  gives('erring', () => Promise.reject(new ServerError(Json.of({ code: -32050, message: 'no such row' })))),
  gives('babbling', () => Promise.reject(new ServerError(Json.of({ code: odd, message: odd } as never)))),
  gives('limited', () => Promise.reject(new ToolwayError('RATE_LIMITED', 'come back later'))),
  gives('disabled', () => Promise.reject(new ToolwayError('SERVER_DISABLED', 'an operator paused s'))),
  gives('lost', () => Promise.reject(new ToolwayError('OUTCOME_UNKNOWN', 'it may have run'))),
]

test.each([
  ['tools.s.failing()', 'TOOL_ERROR', 'the disk is full', 'error'],
  ['tools.s.erring()', '-32050', 'no such row', 'error'],
  ['tools.s.babbling()', JSON.stringify(odd), 'No reason was given.', 'error'],
  ['tools.s.limited()', 'RATE_LIMITED', 'come back later', 'refused'],
  ['tools.s.disabled()', 'SERVER_DISABLED', 'an operator paused s', 'refused'],
  ['tools.s.lost()', 'OUTCOME_UNKNOWN', 'it may have run', 'unknown'],
  ['tools.s.nothing()', 'TOOL_NOT_FOUND', 'no tool nothing on s', 'refused'],
  ['tools.nowhere.t()', 'SERVER_NOT_FOUND', 'no server nowhere', 'refused'],
  ['tools.s.failing(7)', 'INVALID_ARGUMENTS', '"args" for s.failing must be an object', 'refused'],
])('B9: %s throws a ToolError that can be caught: %s', async (call, code, message, status) => {
  const { run } = createCodeTool({ servers: { s: broken } })
  const answer = await run(`let caught
try { await ${call} } catch (error) { caught = error }
;[caught instanceof ToolError, caught.name, caught.code, caught.message, caught.server]`)
  expect(answer.value).toEqual([true, 'ToolError', code, expect.stringContaining(message), call.split('.')[1]])
  expect(answer.calls).toMatchObject([{ status, code }])
})

test('B9: an uncaught error has its code and the line of the call', async () => {
  const { run } = createCodeTool({ servers: { s: broken } })
  expect(await run('const a = 1\n\nawait tools.s.failing()')).toMatchObject({
    status: 'error',
    error: { name: 'ToolError', message: 'the disk is full', code: 'TOOL_ERROR', line: 3 },
    calls: [{ tool: 's.failing', status: 'error', code: 'TOOL_ERROR' }],
  })
})

test('B9: search and describe work inside, show what the caller may use, and are calls themselves', async () => {
  const { run } = createCodeTool({ servers: { files: [echo('read-file', 'Reads.'), echo('write', 'Writes.')] } })
  const answer = await run(`const found = await search('reads', { limit: 3 })
;[found, await describe('files.read-file'), await describe(['files.none', 'tools.files.write'])]`)
  const [found, one, two] = answer.value as [unknown, string, string]
  expect(found).toEqual([{ server: 'files', name: 'read-file', description: 'Reads.' }])
  expect(one).toContain('read_file(args?: Record<string, unknown>): Promise<any /* no outputSchema */>')
  expect(two).toContain('/** Writes. */')
  expect(two).toContain('\n// no tool none on files')
  expect(answer.calls?.map(({ tool }) => tool)).toEqual([
    'toolway.find_tool',
    'toolway.describe_tools',
    'toolway.describe_tools',
  ])
})

test('B9: tools that run other calls are refused inside a program', async () => {
  const { run, inner } = createCodeTool({ servers: { files: [echo('read')] } })
  const calls = [
    "tools.native.execute_code({ code: '1' })",
    "tools['native.execute_code']({ code: '1' })",
    "tools.toolway.execute_tool({ server: 'files', tool: 'read' })",
    "tools.toolway.execute_tools({ calls: [{ server: 'native', tool: 'execute_code', args: { code: '1' } }] })",
  ]
  for (const call of calls) {
    const { error } = await run(`await ${call}`)
    expect(error, call).toMatchObject({ code: 'INVALID_ARGUMENTS', message: expect.stringContaining('cannot run') })
  }
  expect(inner).toEqual([])
})

test('S7: the calls of a program are limited, in all and at once, and the others wait', async () => {
  let open = 0
  let most = 0
  const slow = gives('slow', async () => {
    most = Math.max(most, ++open)
    await new Promise((resolve) => setImmediate(resolve))
    open--
    return text('ok')
  })
  const { run } = createCodeTool({ servers: { s: [slow] }, limits: { calls: 20, inFlight: 4 } })
  const answer = await run(`const all = await Promise.allSettled(Array.from({ length: 25 }, () => tools.s.slow()))
;[all.filter(({ status }) => status === 'fulfilled').length, all.at(-1).reason.code]`)
  expect(answer.value).toEqual([20, 'OVERLOADED'])
  expect(answer.calls).toMatchObject([{ tool: 's.slow', status: 'ok', count: 20 }])
  expect(most).toBe(4)
})

test('B9: at the deadline calls in flight are cancelled with an unknown outcome, and waiting ones were never sent', async () => {
  const signals: AbortSignal[] = []
  const never = defineTool({
    name: 'never',
    description: '',
    input: z.looseObject({}),
    run: (_, { signal }) => {
      signals.push(signal)
      return new Promise<string>(() => {})
    },
  })
  const { run } = createCodeTool({ servers: { s: [never] }, limits: { inFlight: 1 } })
  const answer = await run('await Promise.all([tools.s.never(), tools.s.never()])', { args: { timeout_ms: 20 } })
  expect(answer).toMatchObject({
    status: 'timeout',
    calls: [
      { tool: 's.never', status: 'unknown', code: 'CANCELLED' },
      { tool: 's.never', status: 'refused', code: 'CANCELLED' },
    ],
  })
  expect(signals).toHaveLength(1)
  expect(signals[0]?.aborted).toBe(true)
  expect(signals[0]?.reason).toBeInstanceOf(ToolwayError)
})

test('B9: a program that ends without waiting leaves nothing running', async () => {
  const held = Promise.withResolvers<ResultBody>()
  const { run, executor } = createCodeTool({ servers: { s: [gives('held', () => held.promise)] } })
  const answer = await run('tools.s.held().catch(() => {}); 1')
  expect(answer).toMatchObject({ status: 'ok', value: 1, calls: [{ status: 'unknown', code: 'CANCELLED' }] })
  const late = executor.programs[0]?.host('call', '{"server":"s","tool":"held"}', new AbortController().signal)
  await expect(late).rejects.toMatchObject({ code: 'CANCELLED' })
})

test('B9: a call that needs approval fails closed inside a program, even if the client could be asked', async () => {
  let asked = 0
  const peer = { ...mutePeer, ask: async () => Json.of({ action: 'accept', content: { approve: ++asked > 0 } }) }
  const caller = { ...user, capabilities: { elicitation: {} } }
  const asks = approvalBy('mcpServers.s.approve[0]')
  const need = (made: Call) => (made.entry.name === 'wipe' ? asks.need(made) : undefined)
  const gate = approve({ ...asks, need }, createManualClock())
  const { run, inner } = createCodeTool({ servers: { s: [echo('wipe')] }, interceptors: [interceptorOf(gate)] })
  const answer = await run('await tools.s.wipe()', { peer, caller })
  expect(answer.error).toMatchObject({
    code: 'DENIED_BY_POLICY',
    message: expect.stringContaining('execute_code'),
  })
  expect(answer.calls).toMatchObject([{ tool: 's.wipe', status: 'refused', code: 'DENIED_BY_POLICY' }])
  expect(inner).toHaveLength(1)
  expect(asked).toBe(0)
})

test('B9: a result that is too large for a program is refused, and the list still says that the tool has run', async () => {
  const large = gives('large', () => text('x'.repeat(5000)))
  const huge = gives('huge', () => ({ structuredContent: { rows: 'x'.repeat(50_000) } }))
  const { run } = createCodeTool({ servers: { s: [large, huge] }, limits: { answer: 2000 } })
  for (const tool of ['large', 'huge']) {
    const answer = await run(`await tools.s.${tool}()`)
    expect(answer.error).toMatchObject({ code: 'RESULT_TOO_LARGE', message: expect.stringContaining(' ran,') })
    expect(answer.calls).toMatchObject([{ tool: `s.${tool}`, status: 'ok', code: 'RESULT_TOO_LARGE' }])
  }
})

test('B9: progress is sent after each call, if it was requested', async () => {
  const told: unknown[] = []
  const peer = { ...mutePeer, notify: (method: string, params: Json) => void told.push([method, params.value]) }
  const { run } = createCodeTool({ servers: { s: [echo('t')] } })
  const code = 'await tools.s.t(); await tools.s.none().catch(() => {}); 1'
  const asked = (meta: Call['input']['meta']) => ({ peer, input: { arguments: Json.of({ code }), meta } })
  await run(code, asked({ progressToken: 'p' }))
  expect(told).toEqual([
    ['notifications/progress', { progressToken: 'p', progress: 1 }],
    ['notifications/progress', { progressToken: 'p', progress: 2 }],
  ])
  await run(code, asked({}))
  expect(told).toHaveLength(2)
})

test('B9: a call that was not sent when the program ended is refused, one that was sent is unknown', async () => {
  const waits: Interceptor = (call, next) =>
    call.entry.name === 'waits' ? endWith(call.signal, new Promise<never>(() => {})) : next(call)
  const held = gives('held', () => new Promise<ResultBody>(() => {}))
  const { run } = createCodeTool({ servers: { s: [held, echo('waits')] }, interceptors: [waits] })
  const answer = await run('await Promise.all([tools.s.waits(), tools.s.held()])', { args: { timeout_ms: 50 } })
  expect(answer.calls).toMatchObject([
    { tool: 's.waits', status: 'refused', code: 'CANCELLED' },
    { tool: 's.held', status: 'unknown', code: 'CANCELLED' },
  ])
})
