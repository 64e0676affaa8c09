import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { matches } from '../../lib/wildcard.ts'
import { bodyOf, createTestGateway, refusalOf, structuredOf } from '../access.fixture.ts'
import { toolSource } from '../tool-source.ts'
import { echo, numbered } from '../tools.fixture.ts'

interface Answer {
  tools: { name: string; description: string; inputSchema: object }[]
  server: string
  total_available: number
  returned: number
  tokens_used: number | null
  truncated: boolean
  error?: { code: string; message: string }
}

const files = [echo('read_file'), echo('read_folder'), echo('write_file'), echo('delete')]
const gateway = createTestGateway({ servers: { files, many: numbered(30), bare: [] } })
const ask = async (args: object) => structuredOf<Answer>(await gateway.ask('get_server_tools', args))
const names = ({ tools }: Answer) => tools.map(({ name }) => name)

test('G4: get_server_tools gives definitions under the server’s own names, and exactly the fields of the contract', async () => {
  const answer = await ask({ server: 'files' })
  expect(Object.keys(answer).sort()).toEqual(
    ['returned', 'server', 'tokens_used', 'tools', 'total_available', 'truncated'].sort(),
  )
  expect(answer).toMatchObject({
    server: 'files',
    total_available: 4,
    returned: 4,
    tokens_used: null,
    truncated: false,
  })
  expect(answer.tools[0]).toEqual({
    name: 'read_file',
    description: 'Echoes as read_file.',
    inputSchema: { type: 'object', properties: {}, additionalProperties: {} },
  })
})

test('G4: names and pattern filter, keep the order of the server, and combine; names that do not exist are absent', async () => {
  expect(names(await ask({ server: 'files', names: ['write_file', 'nothing', 'read_file'] }))).toEqual([
    'read_file',
    'write_file',
  ])
  expect(names(await ask({ server: 'files', pattern: 'read_*' }))).toEqual(['read_file', 'read_folder'])
  const both = await ask({ server: 'files', names: ['read_file', 'write_file'], pattern: '*_file' })
  expect(names(both)).toEqual(['read_file', 'write_file'])
  const narrow = await ask({ server: 'files', names: ['read_file', 'delete'], pattern: '*_file' })
  expect(narrow).toMatchObject({ total_available: 4, returned: 1, truncated: false })
})

test('G4: an empty list of names, an empty pattern, a budget of 0 and null do not filter', async () => {
  const whole = await ask({ server: 'files' })
  expect(await ask({ server: 'files', names: [], pattern: '', max_schema_tokens: 0 })).toEqual(whole)
  const none = { agent_id: null, names: null, pattern: null, max_schema_tokens: null }
  expect(await ask({ server: 'files', ...none })).toEqual(whole)
})

test('G4: the budget counts name, description and schema by four characters a token and cuts the list', async () => {
  const [first, second] = (await ask({ server: 'files' })).tools as [Answer['tools'][0], Answer['tools'][0]]
  const cost = ({ name, description, inputSchema }: Answer['tools'][0]) =>
    Math.ceil((name.length + description.length + JSON.stringify(inputSchema).length) / 4)
  const budget = cost(first) + cost(second)
  expect(await ask({ server: 'files', max_schema_tokens: budget })).toMatchObject({
    returned: 2,
    total_available: 4,
    tokens_used: budget,
    truncated: true,
  })
  expect(await ask({ server: 'files', max_schema_tokens: budget - 1 })).toMatchObject({ returned: 1, truncated: true })
  expect(await ask({ server: 'files', max_schema_tokens: 1 })).toMatchObject({ tokens_used: 0, truncated: true })
  expect(await ask({ server: 'files', max_schema_tokens: 10_000 })).toMatchObject({ returned: 4, truncated: false })
})

test('G4: whatever the filters, the tokens stay within the budget and the list is a beginning of the filtered one', async () => {
  const whole = (await ask({ server: 'many' })).tools.map(({ name }) => name)
  const wanted = fc.option(fc.subarray([...whole, 'nothing']), { nil: undefined })
  const pattern = fc.option(fc.constantFrom('*', 'tool_*', 'tool_1*', '*_2*', 'tool_7', 'x'), { nil: undefined })
  const budget = fc.option(fc.nat(2000), { nil: undefined })
  await fc.assert(
    fc.asyncProperty(wanted, pattern, budget, async (only, like, most) => {
      const answer = await ask({ server: 'many', names: only, pattern: like, max_schema_tokens: most })
      const filtered = whole.filter(
        (name) => (!only?.length || only.includes(name)) && (like === undefined || matches(like, name)),
      )
      expect(names(answer)).toEqual(filtered.slice(0, answer.returned))
      expect(answer.truncated).toBe(answer.returned < filtered.length)
      expect(answer.total_available).toBe(30)
      if (!most) expect([answer.tokens_used, answer.truncated]).toEqual([null, false])
      else expect(answer.tokens_used).toBeLessThanOrEqual(most)
    }),
  )
})

test('G4: a server that is refused or unknown gives no tools and an error that names the near miss', async () => {
  const result = await gateway.ask('get_server_tools', { server: 'fiels', max_schema_tokens: 100 })
  const answer = structuredOf<Answer>(result)
  expect(answer).toEqual({
    tools: [],
    server: 'fiels',
    total_available: 0,
    returned: 0,
    tokens_used: null,
    truncated: false,
    error: { code: 'SERVER_NOT_FOUND', message: 'There is no server "fiels"; did you mean "files"?' },
  })
  expect(result.isError).toBe(true)
  expect(bodyOf(result)).toMatchObject({ isError: true, _meta: { 'dev.toolway/error': { code: 'SERVER_NOT_FOUND' } } })
})

test.each([
  ['SERVER_UNHEALTHY', 'unhealthy', 'spawn ENOENT'],
  ['SERVER_DISABLED', 'disabled', 'paused by an operator'],
] as const)(
  'T1, E2: a server that never said what it has is an error, not an empty list: %s',
  async (code, health, reason) => {
    const lost = createTestGateway({
      servers: { rows: (source) => ({ ...source, status: () => ({ ...source.status(), health, reason }) }) },
    })
    const result = await lost.ask('get_server_tools', { server: 'rows' })
    expect(result.isError).toBe(true)
    const { tools, error } = structuredOf<Answer>(result)
    expect(tools).toEqual([])
    expect(error).toMatchObject({ code, server: 'rows' })
    expect(error?.message).toContain(`"rows" is ${health} (${reason})`)
  },
)

test('G4: a server without tools is not an error', async () => {
  const result = await gateway.ask('get_server_tools', { server: 'bare' })
  expect(structuredOf(result)).toMatchObject({ tools: [], total_available: 0 })
  expect(result.isError).toBe(false)
})

test('V2: only a server that has not been ready yet is waited for, and no other', async () => {
  const found = [...files]
  let waits = 0
  const young = createTestGateway({
    servers: {
      known: [echo('a')],
      young: (source) => ({
        ...source,
        entries: () => (waits === 0 ? [] : toolSource({ ...late, tools: found }).entries()),
      }),
    },
    started: async (server) => {
      if (server === 'young') waits++
    },
  })
  const late = { name: 'young', origin: 'forwarded', description: '', timeoutMs: 1000, clock: young.clock } as const
  await young.ask('get_server_tools', { server: 'known' })
  expect(waits).toBe(0)
  expect(structuredOf(await young.ask('get_server_tools', { server: 'young' }))).toMatchObject({ returned: 4 })
})

test('V2: a server that is still starting is an error, not an empty list', async () => {
  const gateway = createTestGateway({
    servers: { slow: (source) => ({ ...source, status: () => ({ ...source.status(), health: 'starting' }) }) },
  })
  const result = await gateway.ask('get_server_tools', { server: 'slow' })
  expect(bodyOf(result)).toMatchObject({
    isError: true,
    _meta: { 'dev.toolway/error': { code: 'SERVER_UNAVAILABLE' } },
  })
})

test('V6: a pattern has a maximum length, and is read once for all tools', async () => {
  const split = vi.spyOn(String.prototype, 'split')
  const pattern = `${'tool_*'.repeat(166)}`
  expect(names(await ask({ server: 'many', pattern }))).toEqual([])
  const reads = split.mock.contexts.filter((text) => String(text) === pattern)
  split.mockRestore()
  expect(reads).toHaveLength(1)
  const refusal = await refusalOf(gateway.ask('get_server_tools', { server: 'many', pattern: '*a'.repeat(501) }))
  expect(refusal.code).toBe('INVALID_ARGUMENTS')
})
