import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import * as z from 'zod'
import type { ManualClock } from '../../../tests/fixtures/clock.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import type { Peer } from '../../core/call.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import { type Result, resultOf, textResult } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { bodyOf, createTestGateway, mutePeer, refusalOf, structuredOf } from '../access.fixture.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { echo } from '../tools.fixture.ts'

interface Answer {
  results: { server: string; tool: string; ok: boolean; result?: object; error?: { code: unknown; message: string } }[]
}

/** Answers after as long as it is told, by the clock of the test, and gives up when nobody waits any more. */
const slow = (clock: () => ManualClock): Tool =>
  defineTool({
    name: 'slow',
    description: '',
    input: z.object({ ms: z.number() }),
    run: ({ ms }, { signal }) =>
      new Promise<string>((resolve, reject) => {
        const timer = clock().after(ms, () => resolve(`after ${ms}`))
        signal.addEventListener('abort', () => {
          timer[Symbol.dispose]()
          reject(signal.reason)
        })
      }),
  })

const fail = (name: string, thrown: unknown) =>
  defineTool({ name, description: '', input: z.object({}), run: () => Promise.reject(thrown) })

const serverError = new ServerError(Json.of({ code: -32050, message: 'disk full', data: { free: 0 } }))
const limited = new ToolwayError('RATE_LIMITED', 'limit reached', { server: 'b', retryAfterMs: 10 })
const unhappy = resultOf({ content: [{ type: 'text', text: 'no such file' }], isError: true })
const garbage: Result = { body: Json.raw(Buffer.from('{"content":[}')), isError: false }

function createBatchGateway() {
  const tool = slow(() => gateway.clock)
  const gateway = createTestGateway({
    servers: {
      a: [tool, echo('read')],
      b: [tool, fail('broken', serverError), fail('limited', limited), fail('accident', new Error('hunter2'))],
      c: [
        tool,
        defineTool({ name: 'unhappy', description: '', input: z.object({}), run: () => unhappy }),
        defineTool({ name: 'garbage', description: '', input: z.object({}), run: () => garbage }),
      ],
    },
  })
  return gateway
}

test('F6: results are in the order of the calls, for any servers and durations', async () => {
  const asked = fc.array(fc.record({ server: fc.constantFrom('a', 'b', 'c'), ms: fc.integer({ min: 1, max: 100 }) }), {
    minLength: 1,
    maxLength: 64,
  })
  await fc.assert(
    fc.asyncProperty(asked, async (calls) => {
      const gateway = createBatchGateway()
      const running = gateway.ask('execute_tools', {
        calls: calls.map(({ server, ms }) => ({ server, tool: 'slow', args: { ms } })),
      })
      const start = gateway.clock.now()
      await gateway.clock.pass(Math.max(...calls.map(({ ms }) => ms)))
      const { results } = structuredOf<Answer>(await running)
      expect(results).toEqual(
        calls.map(({ server, ms }) => ({
          server,
          tool: 'slow',
          ok: true,
          result: bodyOf(textResult(`after ${ms}`)),
        })),
      )
      // All at once: the whole batch takes as long as its slowest call.
      expect(gateway.clock.now() - start).toBe(Math.max(...calls.map(({ ms }) => ms)))
      expect(gateway.clock.pending).toBe(0)
    }),
    runs(6, 30),
  )
})

test('F6: the calls of one server leave together, each a new call of its own inside the batch', async () => {
  const gateway = createBatchGateway()
  const running = gateway.ask('execute_tools', {
    calls: ['a', 'b', 'a', 'c', 'b'].map((server) => ({ server, tool: 'slow', args: { ms: 1 } })),
    timeout_ms: 3_600_000,
  })
  await gateway.clock.pass(1)
  await running
  const inner = gateway.calls.slice(1)
  expect(inner.map(({ entry }) => entry.server)).toEqual(['a', 'a', 'b', 'b', 'c'])
  expect(new Set(inner.map(({ id }) => id)).size).toBe(5)
  for (const { parent, timeoutMs } of inner) {
    expect(parent).toBe('outer')
    // Less the real time that it took to find the tool.
    expect(timeoutMs).toBeGreaterThan(3_000_000)
  }
})

test('F6: no kind of failure hides the other results', async () => {
  const gateway = createBatchGateway()
  const calls = [
    { server: 'a', tool: 'read', args: { x: 1 } },
    { server: 'b', tool: 'broken', args: {} },
    { server: 'b', tool: 'limited', args: {} },
    { server: 'b', tool: 'accident', args: {} },
    { server: 'c', tool: 'unhappy', args: {} },
    { server: 'c', tool: 'garbage', args: {} },
    { server: 'nowhere', tool: 'read', args: {} },
    { server: 'a', tool: 'nothing', args: {} },
    { server: 'a', tool: 'read', args: '{"x":' },
    { server: 'a', tool: 'slow', args: {} },
    { server: 'toolway', tool: 'execute_tools', args: { calls: [] } },
    { server: 'a', tool: 'read', args: '{"x":2}' },
  ]
  const { results } = structuredOf<Answer>(await gateway.ask('execute_tools', { calls }))
  expect(results.map(({ server, tool }) => ({ server, tool }))).toEqual(
    calls.map(({ server, tool }) => ({ server, tool })),
  )
  expect(results.map(({ ok }) => ok)).toEqual([true, ...Array(10).fill(false), true])
  expect(results[0]?.result).toMatchObject({ structuredContent: { args: { x: 1 } } })
  expect(results[1]).toEqual({
    server: 'b',
    tool: 'broken',
    ok: false,
    error: { code: -32050, message: 'disk full', data: { free: 0 } },
  })
  expect(results[2]?.error).toEqual({ code: 'RATE_LIMITED', server: 'b', retryAfterMs: 10, message: 'limit reached' })
  expect(results[3]?.error).toMatchObject({ code: 'INTERNAL' })
  expect(results[3]?.error?.message).not.toContain('hunter2')
  expect(results[4]).toEqual({ server: 'c', tool: 'unhappy', ok: false, result: bodyOf(unhappy) })
  expect(results.slice(5, 11).map(({ error }) => error?.code)).toEqual([
    'INTERNAL',
    'SERVER_NOT_FOUND',
    'TOOL_NOT_FOUND',
    'INVALID_ARGUMENTS',
    'INVALID_ARGUMENTS',
    'INVALID_ARGUMENTS',
  ])
})

test('F6: a cancelled batch cancels its calls, and leaves nothing behind', async () => {
  const gateway = createBatchGateway()
  const controller = new AbortController()
  const running = gateway.ask(
    'execute_tools',
    { calls: [1, 1000, 2000].map((ms) => ({ server: 'a', tool: 'slow', args: { ms } })) },
    { signal: controller.signal },
  )
  await gateway.clock.pass(1)
  expect(gateway.clock.pending).toBe(2)
  const reason = new ToolwayError('CANCELLED', 'the caller went away')
  controller.abort(reason)
  await expect(running).rejects.toBe(reason)
  expect(gateway.clock.pending).toBe(0)
})

test('F6: a batch reports its own progress and does not pass the token to its calls, whose progress could decrease', async () => {
  const gateway = createBatchGateway()
  const told: unknown[] = []
  const calls = [30, 10, 20].map((ms) => ({ server: 'a', tool: 'slow', args: { ms } }))
  const running = gateway.ask(
    'execute_tools',
    { calls },
    {
      peer: { ...mutePeer, notify: (method, params) => told.push([method, params.value]) },
      input: { arguments: Json.of({ calls }), meta: { progressToken: 'p', traceparent: '00-1' } },
    },
  )
  await gateway.clock.pass(30)
  await running
  expect(told).toEqual(
    [1, 2, 3].map((progress) => ['notifications/progress', { progressToken: 'p', progress, total: 3 }]),
  )
  for (const call of gateway.calls.slice(1)) expect(call.input.meta).toEqual({ traceparent: '00-1' })
})

test.each([
  [{ calls: [] }, '"calls" must be at least 1 items long'],
  [{ calls: Array(65).fill({ server: 'a', tool: 'read' }) }, '"calls" must be at most 64 items long'],
  [{ calls: [{ server: 'a' }] }, '"calls[0].tool" is missing'],
  [
    { calls: [{ server: 'a', tool: 'read', arguments: {} }] },
    '"calls[0].arguments" is unknown (known fields: server, tool, args)',
  ],
])('F6: a malformed batch is refused whole, before anything runs', async (args, sentence) => {
  const gateway = createBatchGateway()
  expect((await refusalOf(gateway.ask('execute_tools', args))).message).toContain(sentence)
  expect(gateway.calls).toHaveLength(1)
})

test('F6: a lone surrogate in one result does not make the batch unreadable for other parsers', async () => {
  const cut = defineTool({ name: 'cut', description: '', input: z.object({}), run: () => 'cut \ud83c' })
  const gateway = createTestGateway({ servers: { a: [cut, echo('read')] } })
  const calls = ['cut', 'read'].map((tool) => ({ server: 'a', tool, args: {} }))
  const { results } = structuredOf<Answer>(await gateway.ask('execute_tools', { calls }))
  expect(results[0]?.result).toEqual(bodyOf(textResult('cut \ufffd')))
  expect(results[1]?.ok).toBe(true)
})

test('V6: results beyond the maximum size of a batch are left out, each with the reason, and the others stay', async () => {
  const MiB = 1024 * 1024
  const bulk = defineTool({
    name: 'bulk',
    description: '',
    input: z.object({ size: z.number() }),
    run: ({ size }) => '"'.repeat(size),
  })
  const huge = new ServerError(Json.of({ code: 1, message: 'x'.repeat(9 * MiB) }))
  const gateway = createTestGateway({ servers: { a: [bulk, fail('huge', huge), echo('read')] } })
  // In JSON, each quote takes two bytes, and four more in the text: the first result leaves no room for another one.
  const sizes = [2 * MiB, 9 * MiB, 2 * MiB]
  const calls = [
    ...sizes.map((size) => ({ server: 'a', tool: 'bulk', args: { size } })),
    { server: 'a', tool: 'huge' },
    { server: 'a', tool: 'read' },
  ]
  const { body } = await gateway.ask('execute_tools', { calls })
  expect(body.bytes.length).toBeLessThan(16.1 * MiB)
  const { results } = structuredOf<Answer>({ body, isError: false })
  const [block] = body.value.content ?? []
  expect(JSON.parse(String(block?.text))).toEqual({ results })
  expect(results).toHaveLength(5)
  expect(results.filter(({ ok }) => ok).map(({ tool }) => tool)).toEqual(['bulk', 'read'])
  for (const { error } of results.filter(({ ok }) => !ok)) {
    expect(error?.code).toBe('OUTCOME_UNKNOWN')
    expect(error?.message).toContain('The call ran')
  }
})

test('V6: a batch parses at most as many bytes of results as it may return', async () => {
  const MiB = 1024 * 1024
  // Parsed, each of them turns out not to fit.
  const bulk = defineTool({
    name: 'bulk',
    description: '',
    input: z.object({}),
    run: (): Result => ({
      body: Json.raw(Buffer.from(`{"content":[{"type":"text","text":"${'\\"'.repeat(3 * MiB)}"}]}`)),
      isError: false,
    }),
  })
  const gateway = createTestGateway({ servers: { a: [bulk] } })
  const parsed = vi.spyOn(Json.prototype, 'exact', 'get')
  const calls = Array.from({ length: 8 }, () => ({ server: 'a', tool: 'bulk', args: {} }))
  const result = await gateway.ask('execute_tools', { calls })
  const count = parsed.mock.calls.length
  parsed.mockRestore()
  expect(count).toBe(2)
  expect(structuredOf<Answer>(result).results.map(({ error }) => error?.code)).toEqual(Array(8).fill('OUTCOME_UNKNOWN'))
})

test("T2: a server's error keeps every digit of its numbers in a batch", async () => {
  const error = '{"code":-32050,"message":"no","data":{"n":12345678901234567890}}'
  const gateway = createTestGateway({ servers: { a: [fail('exact', new ServerError(Json.raw(Buffer.from(error))))] } })
  const { body } = await gateway.ask('execute_tools', { calls: [{ server: 'a', tool: 'exact' }] })
  expect(body.bytes.toString()).toContain(`"ok":false,"error":${error}`)
})

test('V8: a question for a call in a batch reaches the client while the call runs, with who asks it', async () => {
  const asked: unknown[] = []
  const peer: Peer = {
    ...mutePeer,
    rounds: true,
    ask: async (method, _params, _signal, from) => {
      asked.push([method, from])
      return Json.of({ action: 'accept' })
    },
  }
  const asking = defineTool({
    name: 'asking',
    description: '',
    input: z.object({}),
    async run(_, { call, signal }) {
      asked.push(call.peer.rounds)
      await call.peer.ask('elicitation/create', Json.of({}), signal, 'toolway')
      return 'asked'
    },
  })
  const gateway = createTestGateway({ servers: { a: [asking] } })
  await gateway.ask('execute_tools', { calls: [{ server: 'a', tool: 'asking', args: {} }] }, { peer })
  expect(asked).toEqual([false, ['elicitation/create', 'toolway']])
})
