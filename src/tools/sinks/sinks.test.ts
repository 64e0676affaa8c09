import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { sinksSection } from '../../config/schema/tools.ts'
import type { Interceptor } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import { resultOf } from '../../core/result.ts'
import { createSeal } from '../../lib/seal.ts'
import { memoryTtlStore } from '../../stores/ttl-store.ts'
import {
  bodyOf,
  createTestGateway,
  refusalOf,
  runTool,
  structuredOf,
  type TestGateway,
  user,
} from '../access.fixture.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { createSinks, type SinksOptions } from './index.ts'
import { defineSink } from './sink.ts'

const gateway = (interceptors: readonly Interceptor[] = [], tools: readonly Tool[] = []): TestGateway =>
  createTestGateway({ servers: { files: tools }, interceptors })

const sinks = (written: object, more: Partial<SinksOptions> = {}): Tool[] =>
  createSinks({
    sinks: sinksSection.parse(written),
    access: gateway(),
    clock: createManualClock(Date.parse('2026-11-07T12:30:45.678Z')),
    log: createKeptLog(),
    ...more,
  })

const write = async (tool: Tool | undefined, args: object, more = {}) =>
  structuredOf<Record<string, string>>(await runTool(tool as Tool, args, more))

describe('sinks', () => {
  test('J4: a file is written, and the pointer has its URI', async () => {
    await using folder = await temporaryFolder()
    const [reports] = sinks({ reports: { kind: 'file', path: join(folder.path, 'out') } })
    const pointer = await write(reports, { content: 'Hä?', metadata: { about: 'x' } })
    expect(pointer).toEqual({
      uri: `file://${folder.path}/out/default-2026-11-07T12-30-45-678Z.md`,
      sink: 'reports',
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      bytes: 4,
      timestamp: '2026-11-07T12:30:45.678Z',
      metadata: { about: 'x' },
    })
    expect(await readFile(fileURLToPath(pointer.uri as string), 'utf8')).toBe('Hä?')
    expect(await readdir(join(folder.path, 'out'))).toHaveLength(1)
  })

  test('J4: a sink is a tool with a description, and a disabled one is not listed', () => {
    const tools = sinks({
      a: { kind: 'file', path: '/x', description: 'Reports for the board.' },
      b: { kind: 'webhook', url: 'http://127.0.0.1/', disabled: true },
      c: { kind: 'tool', tool: 'files.write' },
    })
    expect(tools.map(({ name }) => name)).toEqual(['a', 'c'])
    expect(tools[0]?.definition.description).toMatch(/^Reports for the board\./)
    expect(tools.map(({ readOnly, idempotent }) => [readOnly, idempotent])).toEqual(Array(2).fill([false, false]))
    expect(tools[0]?.definition.inputSchema).toMatchObject({ required: ['content'] })
  })

  test('J4: standard output gets the text without control characters for a terminal', async () => {
    const printed: string[] = []
    const [console] = sinks({ console: { kind: 'stdout' } }, { stdout: (text) => void printed.push(text) })
    const { uri, id } = await write(console, { content: 'a\x1b[2Jb\n' })
    await write(console, { content: 'no line end' })
    await write(console, { content: 'overwritten\rtext' })
    expect(printed).toEqual(['ab\n', 'no line end\n', 'overwritten\ntext\n'])
    expect(uri).toBe(`sink://console/${id}`)
  })

  test('J4: where standard output is the protocol, there is no such sink, and the log says so', () => {
    const log = createKeptLog()
    expect(sinks({ console: { kind: 'stdout' } }, { log })).toEqual([])
    expect(log.lines).toMatchObject([{ level: 'warn', facts: { sink: 'console' } }])
  })

  test('J4: a sink of a plugin works like others; its name must be free', async () => {
    const wiki = defineSink({
      name: 'wiki',
      description: 'Pages.',
      write: ({ id, agent, content }) => ({ uri: `https://wiki.example/${id}`, size: content.length, agent }),
    })
    const [tool] = sinks({}, { custom: [wiki] })
    expect(await write(tool, { content: 'abc', metadata: { id: 'p1' } })).toMatchObject({
      uri: 'https://wiki.example/p1',
      id: 'p1',
      size: 3,
      agent: 'default',
    })
    expect(() => sinks({ wiki: { kind: 'stdout' } }, { custom: [wiki], stdout() {} })).toThrow('two sinks named "wiki"')
    expect(() => defineSink({ name: 'a b', description: '', write: () => 'x' })).toThrow('Invalid sink name "a b"')
    const [mute] = sinks({}, { custom: [defineSink({ name: 'mute', description: '', write: () => '' })] })
    expect((await refusalOf(runTool(mute as Tool, { content: '' }))).code).toBe('INTERNAL')
  })

  test.each([
    ['a name that no tool can have', { 'a b': { kind: 'stdout' } }],
    ['a blank that is none', { a: { kind: 'file', path: '/x', template: '{agnet}.md' } }],
    ['a brace too many', { a: { kind: 'file', path: '/x', template: '{agent}}.md' } }],
    ['a sink behind a sink', { a: { kind: 'tool', tool: 'sink.b' } }],
    ['a meta-tool behind a sink', { a: { kind: 'tool', tool: 'toolway.execute_tool' } }],
  ])('J4: the configuration refuses %s', (_, written) => {
    expect(sinksSection.safeParse(written).success).toBe(false)
  })
})

describe('writing the same again', () => {
  const counting = (fail = 0) => {
    const written: string[] = []
    const sink = defineSink({
      name: 'count',
      description: '',
      write({ id }) {
        written.push(id)
        if (written.length <= fail) throw new ToolwayError('SERVER_UNAVAILABLE', 'not now')
        return `x:${written.length}`
      },
    })
    return { written, tool: sinks({}, { custom: [sink] })[0] as Tool }
  }

  test('J4, B10: under the same id it is kept once by all processes that share a store', async () => {
    let count = 0
    const custom = [defineSink({ name: 'wiki', description: 'd', write: () => `wiki://${++count}` })]
    const ttlStore = memoryTtlStore(createManualClock())
    const process = () => sinks({}, { custom, shared: { ttlStore, seal: createSeal('a shared secret') } })[0] as Tool
    const [one, other] = [process(), process()]
    const args = { content: 'a', metadata: { id: 'mine' } }
    const pointer = await write(one, args)
    expect(pointer.uri).toBe('wiki://1')
    expect(await write(other, args)).toEqual(pointer)
    const changed = { ...args, content: 'b' }
    expect((await refusalOf(runTool(process(), changed))).code).toBe('INVALID_ARGUMENTS')
    expect(await write(other, { content: 'a' })).toMatchObject({ uri: 'wiki://2' })
    expect(count).toBe(2)
  })

  test('J4, W1: under the same id it is kept once, also at the same time; other callers have ids of their own', async () => {
    const { tool, written } = counting()
    const args = { content: 'a', metadata: { id: 'mine' } }
    const both = await Promise.all([write(tool, args), write(tool, args)])
    expect(both[0]).toEqual(both[1])
    expect(await write(tool, args)).toEqual(both[0])
    expect(written).toEqual(['mine'])
    expect((await write(tool, args, { caller: { ...user, agent: 'b' } })).uri).toBe('x:2')
    expect((await write(tool, args, { caller: { ...user, principal: 'other' } })).uri).toBe('x:3')
  })

  test('J4: something else under a used id is refused, and without an id everything is new', async () => {
    const { tool, written } = counting()
    await write(tool, { content: 'a', metadata: { id: 'mine' } })
    for (const other of [
      { content: 'b', metadata: { id: 'mine' } },
      { content: 'a', metadata: { id: 'mine', title: 'x' } },
    ])
      expect((await refusalOf(runTool(tool, other))).code).toBe('INVALID_ARGUMENTS')
    await write(tool, { content: 'a' })
    await write(tool, { content: 'a' })
    expect(new Set(written).size).toBe(3)
  })

  test('J4: a failed write may be repeated with its id', async () => {
    const { tool } = counting(1)
    const args = { content: 'a', metadata: { id: 'mine' } }
    expect((await refusalOf(runTool(tool, args))).code).toBe('SERVER_UNAVAILABLE')
    expect((await write(tool, args)).uri).toBe('x:2')
  })

  test.each(['', '../x', 'a b', 'a\nb', 'x'.repeat(129), 7, null, {}])('J4: %j is not a valid id', async (id) => {
    const { tool, written } = counting()
    expect((await refusalOf(runTool(tool, { content: 'a', metadata: { id } }))).code).toBe('INVALID_ARGUMENTS')
    expect(written).toEqual([])
  })
})

describe('a tool behind a sink', () => {
  const got: unknown[] = []
  const save = defineTool({
    name: 'save',
    description: '',
    input: z.looseObject({}),
    run(args) {
      got.push(args)
      return { uri: 'note://1' }
    },
  })
  const notes = (args: object) => ({ notes: { kind: 'tool', tool: 'files.save', arguments: args } })

  test('J4: it is called with the blanks filled, in one pass and as deep as they are', async () => {
    const access = gateway([], [save])
    const args = {
      path: '{sink}/{id}-{date}.txt',
      content: '{content}',
      all: ['{metadata.tags}', { deep: 'by {agent}: {metadata.tags}{metadata.none}' }],
      kept: 7,
      braces: '{} {other} {{id}}',
    }
    const [tool] = sinks(notes(args), { access })
    const content = 'a {id} {metadata.tags} $& text'
    const pointer = await write(tool, { content, metadata: { id: 'n1', tags: ['x', 'y'] } })
    expect(got.at(-1)).toEqual({
      path: 'notes/n1-2026-11-07.txt',
      content,
      all: [['x', 'y'], { deep: 'by default: ["x","y"]' }],
      kept: 7,
      braces: '{} {other} {n1}',
    })
    expect(pointer).toMatchObject({ uri: 'note://1', tool: 'files.save', id: 'n1' })
  })

  test('J4: it is a call of its own for the same caller, under the same rules', async () => {
    const access = gateway([], [save])
    const [tool] = sinks(notes({}), { access })
    await write(tool, { content: 'x' }, { id: 'outer-1' })
    expect(access.calls).toMatchObject([{ parent: 'outer-1', caller: { principal: 'user' }, entry: { name: 'save' } }])
    const deny: Interceptor = () => Promise.reject(new ToolwayError('DENIED_BY_POLICY', 'no'))
    const [denied] = sinks(notes({}), { access: gateway([deny], [save]) })
    const before = got.length
    expect((await refusalOf(runTool(denied as Tool, { content: 'x' }))).code).toBe('DENIED_BY_POLICY')
    expect(got.length).toBe(before)
  })

  test("J4: the tool's own failure is the sink's, and a tool that is not there is unknown", async () => {
    const fails = defineTool({
      name: 'save',
      description: '',
      input: z.looseObject({}),
      run: () => resultOf({ content: [{ type: 'text', text: 'disk full' }], isError: true }),
    })
    const [tool] = sinks(notes({}), { access: gateway([], [fails]) })
    const result = await runTool(tool as Tool, { content: 'x' })
    expect([result.isError, bodyOf(result).content?.[0]?.text]).toEqual([true, 'disk full'])
    const [lost] = sinks(notes({}))
    expect((await refusalOf(runTool(lost as Tool, { content: 'x' }))).code).toBe('TOOL_NOT_FOUND')
  })

  test('J4: a tool that runs other calls is refused, whatever name it has', async () => {
    const carrier = defineTool({
      name: 'save',
      description: '',
      input: z.looseObject({}),
      carries: true,
      run: () => '',
    })
    const [tool] = sinks(notes({}), { access: gateway([], [carrier]) })
    expect((await refusalOf(runTool(tool as Tool, { content: 'x' }))).message).toContain('runs other calls')
  })
})
