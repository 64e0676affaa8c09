import { createRequire } from 'node:module'
import { runInNewContext } from 'node:vm'
import { describe, expect, expectTypeOf, test } from 'vitest'
import * as z from 'zod'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import { resultOf } from '../core/result.ts'
import { Json } from '../json/json.ts'
import { bodyOf, callOf, mutePeer, refusalOf, runTool, structuredOf, user } from './access.fixture.ts'
import { defineTool, type ToolContext } from './define-tool.ts'
import { toolSource } from './tool-source.ts'

const greet = defineTool({
  name: 'greet',
  title: 'Greeting',
  description: 'Greets somebody.',
  input: z.object({
    whom: z.string().min(1).describe('A name.'),
    times: z.int().default(1),
    tone: z.enum(['warm', 'formal']).optional(),
    guests: z
      .array(z.strictObject({ name: z.string() }))
      .max(2)
      .optional(),
    when: z.union([z.string(), z.number()]).optional(),
  }),
  readOnly: true,
  run({ whom, times, tone }) {
    expectTypeOf(whom).toEqualTypeOf<string>()
    expectTypeOf(times).toEqualTypeOf<number>()
    expectTypeOf(tone).toEqualTypeOf<'warm' | 'formal' | undefined>()
    return 'Hello '.repeat(times) + whom
  },
})

const sourceOf = (...tools: Parameters<typeof toolSource>[0]['tools']) =>
  toolSource({
    name: 'native',
    origin: 'native',
    description: 'Built in',
    tools,
    timeoutMs: 5000,
    clock: createManualClock(),
  })

test('S2: a tool becomes an entry with a JSON Schema of its arguments, defaults and descriptions included', () => {
  const [entry] = sourceOf(greet).entries()
  expect(entry).toMatchObject({
    kind: 'tool',
    server: 'native',
    name: 'greet',
    traits: { readOnly: true, idempotent: true, timeoutMs: 5000 },
  })
  expect(entry?.definition).toMatchObject({
    name: 'greet',
    title: 'Greeting',
    description: 'Greets somebody.',
    annotations: { readOnlyHint: true },
    inputSchema: {
      type: 'object',
      required: ['whom'],
      additionalProperties: false,
      properties: { whom: { type: 'string', description: 'A name.' }, times: { type: 'integer', default: 1 } },
    },
  })
  expect(JSON.stringify(entry?.definition)).not.toMatch(/\$schema|9007199254740991|outputSchema/)
})

test('S2: arguments reach the tool parsed, with defaults, beside the call, its signal and its caller', async () => {
  let seen: ToolContext | undefined
  const tool = defineTool({
    name: 'look',
    description: '',
    input: z.object({ count: z.int().default(3) }),
    run({ count }, context) {
      seen = context
      return { count }
    },
  })
  const signal = new AbortController().signal
  expect(structuredOf(await runTool(tool, {}, { signal }))).toEqual({ count: 3 })
  expect(seen?.call.id).toBe('outer')
  expect(seen?.signal).toBe(signal)
  expect(seen?.caller).toBe(user)
})

test('S2: a tool may answer with text, with an object or with a result of its own', async () => {
  expect(bodyOf(await runTool(greet, { whom: 'Ada', times: 2 })).content).toEqual([
    { type: 'text', text: 'Hello Hello Ada' },
  ])
  const own = resultOf({ content: [{ type: 'image', data: 'AA==', mimeType: 'image/png' }], isError: true })
  const draw = defineTool({ name: 'draw', description: '', input: z.object({}), run: async () => own })
  expect(await runTool(draw, {})).toBe(own)
})

test.each([[{ content: [] }], [{ content: [{ type: 'text', text: 'a' }] }]])(
  'S2, V25: an object that `run` returns is structured content, as in 0.1.0, even if it looks like a result: %j',
  async (answer) => {
    const tool = defineTool({ name: 'search', description: '', input: z.object({}), run: () => answer })
    expect(structuredOf(await runTool(tool, {}))).toEqual(answer)
  },
)

test('S2: an answer is checked against the output schema, which is part of the definition', async () => {
  const output = z.object({ total: z.int() })
  const add = (answer: unknown) =>
    defineTool({ name: 'add', description: '', input: z.object({}), output, run: () => answer as { total: number } })
  expect(sourceOf(add({})).entries()[0]?.definition.outputSchema).toEqual({
    type: 'object',
    properties: { total: { type: 'integer' } },
    required: ['total'],
    additionalProperties: false,
  })
  expect(structuredOf(await runTool(add({ total: 2, extra: 1 }), {}))).toEqual({ total: 2 })
  expect(await refusalOf(runTool(add({ total: 'two' }), {}))).toMatchObject({ code: 'INTERNAL' })
})

test.each([[undefined], [7], [[1, 2]], [null]])(
  'S2: an answer of %j is a mistake of the tool and named as one',
  async (answer) => {
    const odd = defineTool({
      name: 'odd',
      description: '',
      input: z.object({}),
      run: () => answer as unknown as object,
    })
    const refusal = await refusalOf(runTool(odd, {}))
    expect(refusal.code).toBe('INTERNAL')
    expect(refusal.message).toContain('odd')
  },
)

test('S2, G4: null for an optional argument counts as absent, unless the schema allows null', async () => {
  const input = z.object({
    whom: z.string(),
    tone: z.enum(['warm', 'formal']).optional(),
    times: z.int().default(1),
    note: z.string().nullish(),
  })
  const show = defineTool({ name: 'show', description: '', input, run: (args) => args })
  const given = { whom: 'a', tone: null, times: null, note: null }
  expect(structuredOf(await runTool(show, given))).toEqual({ whom: 'a', times: 1, note: null })
  const { message } = await refusalOf(runTool(show, { ...given, whom: null, tome: null }))
  expect(message).toContain('"whom" must be a string, not null; "tome" is unknown')
})

test.each([
  [{}, '"whom" is missing and must be a string'],
  [{ whom: 7 }, '"whom" must be a string, not a number'],
  [{ whom: null }, '"whom" must be a string, not null'],
  [{ whom: '' }, '"whom" must be at least 1 characters long'],
  [{ whom: 'a', times: 1.5 }, '"times" must be a whole number, not 1.5'],
  [{ whom: 'a', tone: 'fromal' }, '"tone" must be one of warm, formal, not "fromal" (did you mean "formal"?)'],
  [{ whom: 'a', when: true }, '"when" must be a string or a number, not a boolean'],
  [{ whom: 'a', guests: {} }, '"guests" must be a list, not an object'],
  [{ whom: 'a', guests: [{ name: 'b' }, {}] }, '"guests[1].name" is missing and must be a string'],
  [{ whom: 'a', guests: [{ name: 'b', nmae: 'c' }] }, '"guests[0].nmae" is unknown (did you mean "name"?)'],
  [{ whom: 'a', guests: [1, 2, 3] }, '"guests" must be at most 2 items long'],
  [{ whom: 'a', tmies: 2 }, '"tmies" is unknown (did you mean "times"?)'],
  [{ whom: 'a', zebra: 2 }, '"zebra" is unknown (known fields: whom, times, tone, guests, when)'],
  ['text', 'the whole input must be an object, not a string'],
])('E2: arguments %j are refused with INVALID_ARGUMENTS: %s', async (args, sentence) => {
  const refusal = await refusalOf(runTool(greet, args))
  expect(refusal.code).toBe('INVALID_ARGUMENTS')
  expect(refusal.message).toContain(sentence)
  expect(refusal.message).toContain('greet')
})

test('E2: a refusal does not repeat a value that may be a secret, nor grow with its number of problems', async () => {
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`field${index}`, 'hunter2']))
  const refusal = await refusalOf(runTool(greet, { whom: ['hunter2'], ...many }))
  expect(refusal.message).not.toContain('hunter2')
  expect(refusal.message.length).toBeLessThan(1000)
})

test('S2: a schema that takes other fields on purpose keeps them', async () => {
  const loose = defineTool({
    name: 'loose',
    description: '',
    input: z.looseObject({ a: z.string() }),
    run: (args) => args,
  })
  expect(structuredOf(await runTool(loose, { a: 'x', b: 1 }))).toEqual({ a: 'x', b: 1 })
})

test('E2: what a tool throws by accident stays in the log; our errors and those of servers pass', async () => {
  const throwing = (thrown: unknown) =>
    defineTool({ name: 'fail', description: '', input: z.object({}), run: () => Promise.reject(thrown) })
  const accident = new Error('password is hunter2')
  const refusal = await refusalOf(runTool(throwing(accident), {}))
  expect(refusal).toMatchObject({
    code: 'INTERNAL',
    message: expect.stringMatching(/^fail failed unexpectedly/),
  })
  expect(refusal.cause).toBe(accident)
  const ours = new ToolwayError('RATE_LIMITED', 'later')
  await expect(runTool(throwing(ours), {})).rejects.toBe(ours)
  const theirs = new ServerError(Json.of({ code: -32000, message: 'no' }))
  await expect(runTool(throwing(theirs), {})).rejects.toBe(theirs)
})

test('F10: a tool that stops because its call was aborted fails with the reason for that', async () => {
  const wait = defineTool({
    name: 'wait',
    description: '',
    input: z.object({}),
    run: (_args, { signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stop')))),
  })
  const controller = new AbortController()
  const running = runTool(wait, {}, { signal: controller.signal })
  const reason = new ToolwayError('TIMEOUT', 'too long')
  controller.abort(reason)
  await expect(running).rejects.toBe(reason)
})

test('S2: names that no model vendor takes, and two tools of one name, are refused at once', () => {
  const named = (name: string) => defineTool({ name, description: '', input: z.object({}), run: () => '' })
  for (const name of ['', 'a b', 'a.b', 'ä', 'x'.repeat(65)]) expect(() => named(name)).toThrow(TypeError)
  expect(() => sourceOf(named('a'), named('b'), named('a'))).toThrow('two tools named "a"')
})

test('T4: a description that is a function gets the servers that the caller sees', () => {
  const dynamic = defineTool({
    name: 'dynamic',
    description: (servers) => `There are ${servers.length}.`,
    input: z.object({}),
    run: () => '',
  })
  const [plain, telling] = sourceOf(greet, dynamic).entries()
  expect(plain?.descriptionFor).toBeUndefined()
  expect(telling?.definition.description).toBe('There are 0.')
  expect(telling?.descriptionFor?.([{}, {}] as never, 'dynamic')).toBe('There are 2.')
})

test('S2: a source of tools in this process is healthy, in-process and outranks servers; a tool may have its own timeout', async () => {
  const clock = createManualClock(1000)
  const slow = defineTool({ name: 'slow', description: '', input: z.object({}), timeoutMs: 99, run: () => 'done' })
  const source = toolSource({
    name: 'native',
    origin: 'native',
    description: 'Built in',
    tools: [slow],
    timeoutMs: 5,
    clock,
  })
  clock.advance(500)
  expect(source.status()).toEqual({
    health: 'healthy',
    reason: '',
    since: 1000,
    description: 'Built in',
    transport: 'in-process',
    breaker: 'closed',
  })
  expect(source.priority).toBe(Number.MAX_SAFE_INTEGER)
  const entry = source.entries()[0]!
  expect(entry.traits).toEqual({ readOnly: false, idempotent: false, timeoutMs: 99 })
  expect(bodyOf(await entry.run(callOf(entry, {}, { peer: mutePeer }))).content).toEqual([
    { type: 'text', text: 'done' },
  ])
})

describe('V26: tools with inputSchema and handler', () => {
  const answering = (answer: unknown, more: object = {}) =>
    defineTool({
      name: 'say',
      description: '',
      inputSchema: { type: 'object' },
      ...more,
      handler: () => answer as object,
    })

  test('arguments are typed by a Zod object, read with defaults and refused where they do not fit', async () => {
    const tool = defineTool({
      name: 'double',
      description: 'Doubles.',
      inputSchema: z.object({ count: z.int().default(2), note: z.string().optional() }),
      handler({ count, note }) {
        expectTypeOf(count).toEqualTypeOf<number>()
        expectTypeOf(note).toEqualTypeOf<string | undefined>()
        return { count: 2 * count }
      },
    })
    expect(structuredOf(await runTool(tool, {}))).toEqual({ count: 4 })
    expect(await refusalOf(runTool(tool, { cuont: 1 }))).toMatchObject({ code: 'INVALID_ARGUMENTS' })
    expect(tool.definition.inputSchema).toMatchObject({ type: 'object', properties: { count: { default: 2 } } })
  })

  test('any Standard Schema does, also one that takes its time; its JSON Schema is served where it has one', async () => {
    type Outcome = { value: { word: string } } | { issues: { message: string; path?: PropertyKey[] }[] }
    const schemaOf = (more: object = {}) => ({
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: async (value: unknown): Promise<Outcome> => {
          const { word } = value as { word?: unknown }
          if (typeof word === 'string') return { value: { word: word.toUpperCase() } }
          return { issues: [{ message: 'must be a word', path: ['word'] }] }
        },
        ...more,
      },
    })
    const toolOf = (inputSchema: ReturnType<typeof schemaOf>) =>
      defineTool({
        name: 'shout',
        description: '',
        inputSchema,
        handler({ word }) {
          expectTypeOf(word).toEqualTypeOf<string>()
          return word
        },
      })
    const plain = toolOf(schemaOf())
    expect(bodyOf(await runTool(plain, { word: 'hey' })).content).toEqual([{ type: 'text', text: 'HEY' }])
    const refusal = await refusalOf(runTool(plain, { word: 7 }))
    expect(refusal).toMatchObject({
      code: 'INVALID_ARGUMENTS',
      message: expect.stringContaining('"word": must be a word'),
    })
    expect(plain.definition.inputSchema).toEqual({ type: 'object' })
    const json = { $schema: 'x', type: 'object', properties: { word: { type: 'string' } } }
    const told = toolOf(schemaOf({ jsonSchema: { input: () => json, output: () => json } }))
    expect(told.definition.inputSchema).toEqual({ type: 'object', properties: { word: { type: 'string' } } })
  })

  test('JSON Schema is served as it is, and checked by the pipeline', () => {
    const inputSchema = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] }
    const [entry] = sourceOf(answering('x', { inputSchema })).entries()
    expect(entry?.definition.inputSchema).toBe(inputSchema)
    expect(entry?.checksItself).toBeUndefined()
    expect(sourceOf(greet).entries()[0]?.checksItself).toBe(true)
  })

  test('a schema that describes no object is a mistake of the program', () => {
    expect(() => answering('x', { inputSchema: { type: 'string' } })).toThrow(TypeError)
    expect(() => answering('x', { inputSchema: z.string() })).toThrow(TypeError)
  })

  const circular = { type: 'object', properties: {} as Record<string, unknown> }
  circular.properties.self = circular

  test.each<[string, object]>([
    ['input with a handler', { input: z.object({}), handler: () => 'x' }],
    ['inputSchema with run', { inputSchema: z.object({}), run: () => 'x' }],
    ['run without input', { run: () => 'x' }],
    ['no function', {}],
    ['both functions', { input: z.object({}), run: () => 'x', handler: () => 'x' }],
    ['a handler that is no function', { handler: 'x' }],
    ['no description', { description: undefined, handler: () => 'x' }],
    ['a timeout that is no time', { timeoutMs: Number.NaN, handler: () => 'x' }],
    ['a schema that is text', { inputSchema: 'x', handler: () => 'x' }],
    ['a schema without a form in JSON', { inputSchema: z.object({ at: z.date() }), handler: () => 'x' }],
    ['a schema that contains itself', { inputSchema: circular, handler: () => 'x' }],
    ['an output schema that contains itself', { outputSchema: circular, handler: () => 'x' }],
    ['an annotation without a form in JSON', { annotations: { weight: 1n }, handler: () => 'x' }],
    ['an option that does not exist', { inputschema: { type: 'object' }, handler: () => 'x' }],
  ])('a definition with %s is refused with its name', (_, options) => {
    const define = () => defineTool({ name: 'wrong', description: '', ...options } as never)
    expect(define).toThrow(TypeError)
    expect(define).toThrow('"wrong"')
  })

  test('a Zod schema of another copy of Zod may be asynchronous', async () => {
    const other = createRequire(import.meta.url)('zod') as typeof z
    expect(other.ZodObject).not.toBe(z.ZodObject)
    const inputSchema = other.object({ word: other.string().refine(async (word) => word !== 'no') })
    const tool = defineTool({ name: 'say', description: '', inputSchema, handler: ({ word }) => word })
    expect(bodyOf(await runTool(tool, { word: 'yes' })).content).toEqual([{ type: 'text', text: 'yes' }])
    expect(await refusalOf(runTool(tool, { word: 'no' }))).toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })

  test.each([
    ['text', 'done', { content: [{ type: 'text', text: 'done' }] }],
    ['blocks', [{ type: 'text', text: 'a' }], { content: [{ type: 'text', text: 'a' }] }],
    ['an object', { a: 1 }, { content: [{ type: 'text', text: '{"a":1}' }], structuredContent: { a: 1 } }],
    ['a result', { content: [], isError: true }, { content: [], isError: true }],
    ['an object with other content', { content: ['a'] }, { structuredContent: { content: ['a'] } }],
    ['a result of a stateless server', { resultType: 'complete', content: [], ttlMs: 5 }, { content: [], ttlMs: 5 }],
    ['a result with an absent member', { content: [], isError: true, note: undefined }, { content: [], isError: true }],
    ['an object with an empty list', { content: [], total: 0 }, { structuredContent: { content: [], total: 0 } }],
  ])('it may answer with %s', async (_, answer, body) => {
    expect(bodyOf(await runTool(answering(answer), {}))).toMatchObject(body)
  })

  const circle: Record<string, unknown> = {}
  circle.self = circle
  test.each<[string, unknown]>([
    ['a date', new Date(0)],
    ['a map', new Map([['a', 1]])],
    ['an error', new Error('no')],
    ['a stream', new ReadableStream()],
    ['an object that is text in JSON', { toJSON: () => 'x' }],
    ['an object that is nothing in JSON', { toJSON: () => undefined }],
    ['an object with a bigint', { n: 1n }],
    ['an object that contains itself', circle],
    ['a text block without text', [{ type: 'text' }]],
    ['an error flag that is text', { content: [], isError: 'yes' }],
    ['structured content that is a list', { content: [], structuredContent: [] }],
  ])('it may not answer with %s, which clients could not read', async (_, answer) => {
    expect(await refusalOf(runTool(answering(answer), {}))).toMatchObject({ code: 'INTERNAL' })
  })

  test.each<[string, unknown]>([
    ['text', '\ud83d'],
    ['blocks', [{ type: 'text', text: '\ud83d' }]],
    ['a result', { content: [{ type: 'text', text: '\ud83d' }] }],
  ])('half a character in %s is replaced, because many clients cannot read it', async (_, answer) => {
    expect(bodyOf(await runTool(answering(answer), {})).content).toEqual([{ type: 'text', text: '\ufffd' }])
  })

  test('it may answer with an instance of a class, also of another realm', async () => {
    class Point {
      x = 1
    }
    expect(structuredOf(await runTool(answering(new Point()), {}))).toEqual({ x: 1 })
    expect(structuredOf(await runTool(answering(runInNewContext('({ x: 1 })')), {}))).toEqual({ x: 1 })
    expect(structuredOf(await runTool(answering(runInNewContext('({})')), {}))).toEqual({})
  })

  test('answers are held against an output schema of Zod', async () => {
    const output = { outputSchema: z.object({ total: z.int() }) }
    expect(structuredOf(await runTool(answering({ total: 1 }, output), {}))).toEqual({ total: 1 })
    expect(await refusalOf(runTool(answering({ total: 'x' }, output), {}))).toMatchObject({ code: 'INTERNAL' })
  })

  test('an exception is a result with isError; a ToolwayError refuses', async () => {
    const throwing = (thrown: unknown) =>
      defineTool({ name: 'fail', description: '', inputSchema: z.object({}), handler: () => Promise.reject(thrown) })
    const result = await runTool(throwing(new Error('no such city')), {})
    expect(result.isError).toBe(true)
    expect(bodyOf(result).content).toEqual([{ type: 'text', text: 'no such city' }])
    const refused = new ToolwayError('DENIED_BY_POLICY', 'not you')
    expect(await refusalOf(runTool(throwing(refused), {}))).toBe(refused)
  })

  test.each<[string, unknown, string]>([
    ['an object with a message', { message: 'no such city' }, 'no such city'],
    ['an object without a prototype', Object.create(null), 'an unknown error'],
    ['nothing', undefined, 'undefined'],
  ])('%s may be thrown as well', async (_, thrown, text) => {
    const handler = () => Promise.reject(thrown)
    const result = await runTool(defineTool({ name: 'fail', description: '', handler }), {})
    expect(bodyOf(result)).toEqual({ content: [{ type: 'text', text }], isError: true })
  })

  test('a ToolwayError with a code that does not exist is still a refusal', async () => {
    const unknown = new ToolwayError('NO_SUCH_CODE' as never, 'not you')
    const handler = () => Promise.reject(unknown)
    expect(await refusalOf(runTool(defineTool({ name: 'fail', description: '', handler }), {}))).toBe(unknown)
  })

  test('progress and log messages reach a caller that asked for them', async () => {
    const tool = defineTool({
      name: 'busy',
      description: '',
      inputSchema: z.object({}),
      handler(_, { progress, log, caller }) {
        progress(1, 2, 'half')
        log('debug', 'too much detail')
        log('warning', { hot: true })
        return caller.agent
      },
    })
    const told: unknown[] = []
    const [entry] = sourceOf(tool).entries()
    const peer = {
      ...mutePeer,
      logLevel: 'info' as const,
      notify: (method: string, { value }: Json) => told.push([method, value]),
    }
    const call = callOf(entry!, {}, { peer })
    await entry?.run({ ...call, input: { ...call.input, meta: { progressToken: 7 } } })
    expect(told).toEqual([
      ['notifications/progress', { progressToken: 7, progress: 1, total: 2, message: 'half' }],
      ['notifications/message', { level: 'warning', logger: 'busy', data: { hot: true } }],
    ])
    told.length = 0
    await entry?.run(callOf(entry!, {}, { peer: { ...peer, logLevel: undefined } }))
    expect(told).toEqual([])
  })
})
