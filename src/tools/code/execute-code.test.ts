import { expect, test } from 'vitest'
import { callOf } from '../../core/call.fixture.ts'
import { refusalOf } from '../access.fixture.ts'
import { echo } from '../tools.fixture.ts'
import { createCodeTool } from './code.fixture.ts'
import { createFixtureExecutor } from './executor.fixture.ts'

const noPython = 'Python needs bubblewrap: install it.'

test('S7: the parameters are those of the contract, and cost few tokens', () => {
  const { tool } = createCodeTool({ servers: {} })
  expect(Object.keys(tool.definition.inputSchema?.properties as object)).toEqual([
    'code',
    'language',
    'environment',
    'timeout_ms',
  ])
  expect(JSON.stringify(tool.definition).length / 4).toBeLessThan(450)
})

test('S7: the description lists what the operator grants', () => {
  const described = (config: object) => createCodeTool({ servers: {}, config }).tool.definition.description
  expect(described({})).toContain('in a sandbox without access to the network or files.')
  const granted = described({ allowNetwork: ['api.example.com'], allowPaths: ['/data'] })
  expect(granted).toContain('in a sandbox. ')
  expect(granted).toContain('fetch(url) can reach api.example.com.')
  expect(granted).toContain('Files under /data can be read')
})

test('S7: JavaScript unless another language is named; TypeScript is understood as such', async () => {
  const { run, executor } = createCodeTool({ servers: {} })
  expect(await run('1 + 1')).toMatchObject({ status: 'ok', value: 2, isolation: 'process' })
  expect(await run('const n: number = 2; n * 2', { args: { language: 'typescript' } })).toMatchObject({ value: 4 })
  expect(await run('const n: number = 2')).toMatchObject({ status: 'error', error: { name: 'SyntaxError' } })
  expect(executor.programs.map(({ language }) => language)).toEqual(['javascript', 'typescript', 'javascript'])
})

test('S7: JavaScript and TypeScript of one name are one environment; Python is another', async () => {
  const { run, executor } = createCodeTool({
    servers: {},
    executor: createFixtureExecutor(['javascript', 'typescript', 'python']),
  })
  await run('var n = 1', { args: { environment: 'e' } })
  expect(await run('n as number', { args: { environment: 'e', language: 'typescript' } })).toMatchObject({ value: 1 })
  await run('n = 1', { args: { environment: 'e', language: 'python' } })
  const [first, second, third] = executor.programs.map(({ environment }) => environment)
  expect(first).toMatch(/^[0-9a-f]{64}$/)
  expect([second, third === first]).toEqual([first, false])
})

test('S7: the time is the operator’s; a program may be given less of it, never more', async () => {
  const { run, executor } = createCodeTool({ servers: {} })
  await run('1')
  await run('1', { args: { timeout_ms: 5 } })
  expect(executor.programs.map(({ timeoutMs }) => timeoutMs)).toEqual([30_000, 5])
  const refusal = await refusalOf(run('1', { args: { timeout_ms: 30_001 } }))
  expect(refusal.message).toContain('"timeout_ms" must be at most 30000')
})

test('S7: a failed program is a result with isError and says what went wrong, and where', async () => {
  const { run } = createCodeTool({ servers: {} })
  expect(await run('const a = 1\nnull.x')).toMatchObject({
    status: 'error',
    error: { name: 'TypeError', line: 2 },
  })
  expect(await run('await new Promise(() => {})', { args: { timeout_ms: 5 } })).toMatchObject({
    status: 'timeout',
    error: { name: 'TimeoutError' },
  })
})

test('S7: a cancelled run is rejected and has no result', async () => {
  const { run } = createCodeTool({ servers: {} })
  const controller = new AbortController()
  const answer = run('await new Promise(() => {})', { signal: controller.signal })
  controller.abort(new Error('gone'))
  await expect(answer).rejects.toThrow('gone')
})

test('V6: a caller that may act as several agents is one owner of programs, with an environment for each agent', async () => {
  const executor = createFixtureExecutor()
  const { run } = createCodeTool({ executor, servers: {} })
  const { caller } = callOf()
  for (const agent of ['one', 'other']) {
    await run('1', { caller: { ...caller, principal: 'key:a', agent }, args: { environment: 'e' } })
  }
  expect(executor.programs.map(({ owner }) => owner)).toEqual(['key:a', 'key:a'])
  expect(new Set(executor.programs.map(({ environment }) => environment)).size).toBe(2)
})

test('B10: an environment is claimed before it is used, and one that another process holds is refused', async () => {
  const claimed: string[] = []
  const held = new Set<string>()
  const { run, executor } = createCodeTool({
    servers: {},
    async claim(environment) {
      claimed.push(environment)
      return held.has(environment) ? { heldBy: 'b', address: 'http://b' } : { ours: true, lost: false }
    },
  })
  await run('1')
  expect(claimed).toEqual([])
  expect(await run('let a = 1; a', { args: { environment: 'mine' } })).toMatchObject({ value: 1 })
  expect(claimed).toEqual([executor.programs.at(-1)?.environment])
  held.add(claimed[0] ?? '')
  expect(await refusalOf(run('a', { args: { environment: 'mine' } }))).toMatchObject({
    code: 'INVALID_ARGUMENTS',
    message: expect.stringContaining('The environment "mine" belongs to another process'),
  })
  expect(executor.programs).toHaveLength(2)
})

test('B10: an environment that was lost with its process says so; what the sandbox knows better stays', async () => {
  const claim = async () => ({ ours: true, lost: true }) as const
  const fixture = createCodeTool({ servers: {}, claim })
  const lost = await fixture.run('1', { args: { environment: 'mine' } })
  expect(lost).toMatchObject({ value: 1, reset: expect.stringMatching(/process .* has ended/) })
  expect((await fixture.run('1')).reset).toBeUndefined()
})

test('S7: an unavailable language is refused with the available ones', async () => {
  const { run } = createCodeTool({ servers: {}, executor: createFixtureExecutor(['javascript'], [noPython]) })
  const refusal = await refusalOf(run('1', { args: { language: 'python' } }))
  expect(refusal).toMatchObject({
    code: 'INVALID_ARGUMENTS',
    message: expect.stringMatching(/python.*"language" must be one of javascript/),
  })
})

test('S7: where no isolation is strong enough, nothing runs', async () => {
  const { run, executor } = createCodeTool({
    servers: {},
    executor: createFixtureExecutor([], ['bubblewrap is missing.']),
  })
  const refusal = await refusalOf(run('1'))
  expect(refusal).toMatchObject({ code: 'DENIED_BY_POLICY', details: { rule: 'sandbox.minIsolation' } })
  expect(refusal.message).toContain('bubblewrap is missing.')
  expect(executor.programs).toEqual([])
})

test('S7: a program that is too long, and one that the sandbox has no place for, are refused', async () => {
  const fixture = createCodeTool({ servers: {} })
  const long = await refusalOf(fixture.run(`"${'é'.repeat(131_072)}"`))
  expect(long).toMatchObject({ code: 'INVALID_ARGUMENTS', message: expect.stringContaining('262144 bytes') })
  const full = { status: 'refused', error: { name: 'SandboxError', message: 'No place became free.' } }
  Object.assign(fixture.executor, { run: async () => ({ ...full, logs: '', truncated: [], durationMs: 1 }) })
  expect(await refusalOf(fixture.run('1'))).toMatchObject({ code: 'OVERLOADED', message: 'No place became free.' })
})

test('S7: the description lists only the configured languages, and listing starts no program', () => {
  const { tool, executor } = createCodeTool({ servers: {}, config: { languages: ['javascript', 'typescript'] } })
  expect(tool.definition.description).not.toContain('Python')
  expect(JSON.stringify(tool.definition.inputSchema)).toContain('"enum":["javascript","typescript"]')
  expect(executor.programs).toEqual([])
})

test('F8: a program makes other calls and counts as a call itself', () => {
  expect(createCodeTool({ servers: {} }).tool).toMatchObject({ carries: true, counted: true })
})

test('B8: a thousand tools cost a program’s scope nothing: names are looked up when they are used', async () => {
  const many = Array.from({ length: 1000 }, (_, at) => echo(`tool_${at}`))
  const { run, executor } = createCodeTool({ servers: { many } })
  expect(await run('(await tools.many.tool_999({ a: 1 })).name')).toMatchObject({ value: 'tool_999' })
  expect(executor.programs[0]?.prelude?.length).toBeLessThan(2500)
})
