import { expect, test } from 'vitest'
import * as z from 'zod'
import { user } from '../access.fixture.ts'
import { defineTool } from '../define-tool.ts'
import { echo } from '../tools.fixture.ts'
import { createCodeTool, type TestExecutor } from './code.fixture.ts'

const signal = new AbortController().signal

/** Speaks to the host as a program could that has broken out of its prelude. */
async function hostOf(
  fixture: TestExecutor,
  speak: (ask: (name: string, input: string) => Promise<unknown>) => Promise<void>,
) {
  const { executor } = fixture
  const run = executor.run
  Object.assign(executor, {
    run: async (program: Parameters<typeof run>[0]) => {
      await speak((name, input) => program.host(name, input, signal).catch(({ code }: { code: string }) => code))
      return run(program)
    },
  })
  return fixture.run('1')
}

test.each([
  ['no JSON', 'call', '{'],
  ['no object', 'call', '"files.read"'],
  ['null', 'call', 'null'],
  ['no tool', 'call', '{"server":"files"}'],
  ['a tool that is no string', 'call', '{"server":"files","tool":["read"]}'],
  ['a server that is no string', 'call', '{"server":{"toString":"files"},"tool":"read"}'],
  ['a name without end', 'call', JSON.stringify({ server: 'files', tool: 'x'.repeat(10_000) })],
  ['arguments nested without end', 'call', `{"server":"files","tool":"read","args":${'['.repeat(200_000)}`],
  ['arguments that are a list', 'call', '{"server":"files","tool":"read","args":[1]}'],
  ['another function', 'constructor', '{}'],
  ['a function of the sandbox', 'sandbox.fetch', '{}'],
  ['a batch that is none', 'calls', '{}'],
  ['a batch without end', 'calls', JSON.stringify(new Array(201).fill({ tool: 'files.read' }))],
])('B9: the host refuses %s', async (_, name, input) => {
  const fixture = createCodeTool({ servers: { files: [echo('read')] } })
  const codes: unknown[] = []
  await hostOf(fixture, async (ask) => void codes.push(await ask(name, input)))
  expect(codes).toEqual(['INVALID_ARGUMENTS'])
  expect(fixture.inner).toEqual([])
})

test('B9: questions beyond all bounds are refused, one by one and together', async () => {
  const fixture = createCodeTool({ servers: { files: [echo('read')] }, limits: { question: 1000, open: 2500 } })
  const question = (length: number) =>
    JSON.stringify({ server: 'files', tool: 'read', args: { x: 'y'.repeat(length) } })
  const answers: unknown[] = []
  await hostOf(fixture, async (ask) => {
    answers.push(await ask('call', question(1000)))
    answers.push(...(await Promise.all([900, 900, 900].map((length) => ask('call', question(length))))))
    answers.push(await ask('call', question(900)))
  })
  const ok = expect.stringContaining('{"name":"read"')
  expect(answers).toEqual(['INVALID_ARGUMENTS', ok, ok, 'INVALID_ARGUMENTS', ok])
})

test('B9: several calls at once keep their order, and one that fails leaves the others alone', async () => {
  const fixture = createCodeTool({ servers: { files: [echo('read')] } })
  const answers: unknown[] = []
  const calls = [{ tool: 'files.read', args: { at: 1 } }, { server: 'files', tool: 'none' }, { tool: 'files.read' }]
  await hostOf(fixture, async (ask) => void answers.push(JSON.parse(String(await ask('calls', JSON.stringify(calls))))))
  expect(answers).toEqual([
    [
      { value: { name: 'read', args: { at: 1 } } },
      { error: { code: 'TOOL_NOT_FOUND', message: 'no tool none on files' } },
      { value: { name: 'read', args: {} } },
    ],
  ])
})

const spellings = [
  'tools.files.wipe_all({})',
  "tools.files['wipe-all']({})",
  "tools['files.wipe-all']({})",
  'tools.files.wipe_all.call(null, {})',
  'Reflect.get(tools.files, "wipe-all")({})',
  `host('call', JSON.stringify({ server: 'files', tool: 'wipe-all', args: {} }))`,
  `host('call', JSON.stringify({ tool: 'files.wipe-all', args: {} }))`,
  `host('call', JSON.stringify({ server: 'files', tool: 'wipe_all', args: {}, caller: { agent: 'admin' }, parent: null }))`,
  `host('calls', JSON.stringify([{ server: 'files', tool: 'wipe-all' }])).then((text) => { throw JSON.parse(text)[0].error })`,
  `tools.toolway.execute_tool({ server: 'files', tool: 'wipe-all', args: {} })`,
  `tools.toolway.execute_tools({ calls: [{ server: 'files', tool: 'wipe-all' }] })`,
]

test.each(spellings)('G6: a denied tool stays denied from inside a program: %s', async (call) => {
  let ran = 0
  const wipe = defineTool({ name: 'wipe-all', description: '', input: z.looseObject({}), run: () => `${ran++}` })
  const { run } = createCodeTool({ servers: { files: [wipe, echo('read')] }, denied: ['files.wipe-all'] })
  const { error } = await run(`await ${call}`)
  expect(['DENIED_BY_POLICY', 'TOOL_NOT_FOUND', 'INVALID_ARGUMENTS']).toContain(error?.code)
  expect(ran).toBe(0)
})

test('G6: a denied tool is neither found nor described from inside a program', async () => {
  const { run } = createCodeTool({ servers: { files: [echo('wipe-all'), echo('read')] }, denied: ['files.wipe-all'] })
  const { value } = await run(`const found = await search('echoes wipe-all read', { detail: 'full' })
;[found.map(({ name }) => name), await describe('files.wipe-all', 'files.wipe_all', 'files__wipe-all', 'files.read')]`)
  const [found, described] = value as [string[], string]
  expect(found).toEqual(['read'])
  expect(described).toContain('read(args')
  expect(described).not.toContain('wipe_all(')
  expect(described).not.toContain('Echoes as wipe-all')
})

test('S7: an environment belongs to one principal as one agent, whatever others call theirs', async () => {
  const { run } = createCodeTool({ servers: {} })
  const args = { environment: 'scratch' }
  await run('globalThis.secret = 42', { args })
  expect(await run('secret', { args })).toMatchObject({ value: 42 })
  const others = [
    { ...user, principal: 'somebody' },
    { ...user, agent: 'other' },
    { ...user, authenticated: false },
  ]
  for (const caller of others) {
    expect(await run('typeof secret', { args, caller })).toMatchObject({ value: 'undefined' })
  }
  expect(await run('typeof secret', { args: { environment: 'Scratch' } })).toMatchObject({ value: 'undefined' })
  expect(await run('typeof secret')).toMatchObject({ value: 'undefined' })
  const one = { ...user, authenticated: false, session: 'a' }
  await run('globalThis.secret = 1', { args, caller: one })
  expect(await run('typeof secret', { args, caller: { ...one, session: 'b' } })).toMatchObject({ value: 'undefined' })
})

test('B9: tools is a plain proxy: awaiting, printing or serializing it makes no call', async () => {
  const { run, inner } = createCodeTool({ servers: { files: [echo('read')] } })
  const { value } = await run(`const awaited = await tools.files
let words
try { words = \`\${tools.files}\` } catch (error) { words = error.name }
;[typeof awaited, words, JSON.stringify({ tools }), tools.then === undefined, tools.files.constructor === undefined]`)
  expect(value).toEqual(['function', 'TypeError', '{"tools":{}}', true, true])
  expect(inner).toEqual([])
})
