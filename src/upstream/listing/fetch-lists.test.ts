import { expect, test } from 'vitest'
import { ToolwayError } from '../../core/errors.ts'
import { silentLog } from '../../core/log.ts'
import type { ServerFinding } from '../../core/source-status.ts'
import type { HandshakeResult } from '../connection/handshake.ts'
import { RpcConnection } from '../connection/rpc-connection.ts'
import { scriptedPeer } from '../peer.fixture.ts'
import { LimitExceeded } from '../transports/transport-errors.ts'
import { fetchLists } from './fetch-lists.ts'
import { defaultListLimits, ListReader } from './list-reader.ts'

const signal = new AbortController().signal
const everything = { tools: {}, resources: {}, prompts: {} }
const tool = (name: string) => ({ name, inputSchema: { type: 'object' } })
const empty = {
  'resources/list': () => ({ resources: [] }),
  'resources/templates/list': () => ({ resourceTemplates: [] }),
  'prompts/list': () => ({ prompts: [] }),
}

const numbered = (count: number) => (page: number) =>
  Array.from({ length: count }, (_, index) => tool(`t${page}_${index}`))

async function offer(
  answers: Parameters<typeof scriptedPeer>[0],
  capabilities: object = everything,
  redact?: (text: string) => string,
  within: AbortSignal = signal,
) {
  const warnings: object[] = []
  const log = { ...silentLog, warn: (facts: object) => warnings.push(facts) }
  const { transport, heard } = scriptedPeer(answers)
  const connection = await RpcConnection.open(transport, { server: 's', owned: false, log: silentLog }, signal)
  const handshake = { era: 'legacy', protocolVersion: '2025-11-25', serverInfo: {}, capabilities } as HandshakeResult
  const open = { connection, handshake, identity: { name: 'toolway', version: '1' } }
  const found = await fetchLists(open, { server: 's', capabilities: {}, redact, log, signal: within })
  return { ...found, heard, warnings }
}

test('B2: every page of a list is read', async () => {
  const pages: Record<string, object> = {
    start: { tools: [tool('a')], nextCursor: 'two' },
    two: { tools: [tool('b')], nextCursor: 'three' },
    three: { tools: [tool('c')] },
  }
  const { tools } = await offer({ ...empty, 'tools/list': ({ params }) => pages[String(params?.cursor ?? 'start')] })
  expect(tools.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
})

test('V6: a definition with a number that would become null is left out, and a TTL is a number that clients can use', () => {
  const spec = { method: 'tools/list', kind: 'tool', field: 'tools', key: 'name' } as const
  const reader = new ListReader(spec, defaultListLimits)
  const schema = (maximum: string) => `"inputSchema":{"type":"object","properties":{"a":{"maximum":${maximum}}}}`
  const tools = `[{"name":"endless",${schema('1e999')}},{"name":"exact",${schema('12345678901234567890')}}]`
  reader.page(Buffer.from(`{"ttlMs":1e999,"tools":${tools}}`))
  expect(reader.definitions().map(({ name }) => name)).toEqual(['exact'])
  expect(reader.findings()[0]?.message).toContain('"endless" (a number is too large)')
  expect(reader.ttlMs).toBe(86_400_000)
})

const kinds = (findings: readonly ServerFinding[]) => findings.map(({ kind }) => kind)
const listed = (...tools: unknown[]) => offer({ 'tools/list': () => ({ tools }) }, { tools: {} })

test('S1: a server that repeats a cursor is read once, and a finding says that entries may be missing', async () => {
  const { tools, findings } = await offer({
    ...empty,
    'tools/list': () => ({ tools: [tool('a')], nextCursor: 'again' }),
  })
  expect(tools.map(({ name }) => name)).toEqual(['a'])
  expect(findings).toMatchObject([{ kind: 'repeated-cursor', method: 'tools/list' }, { kind: 'malformed-definition' }])
})

test('V6: a cursor of more than 16 KiB is not sent back', async () => {
  const { heard, tools, findings } = await offer(
    { 'tools/list': () => ({ tools: [tool('a')], nextCursor: 'x'.repeat(20_000) }) },
    { tools: {} },
  )
  expect(tools).toHaveLength(1)
  expect(heard.filter(({ method }) => method === 'tools/list')).toHaveLength(1)
  expect(findings).toMatchObject([{ kind: 'long-cursor', limit: 16_384 }])
})

test.each([17, { page: 2 }, ['2'], true])(
  'S1: a finding says that the rest is left out after the cursor %j, which is not a string',
  async (nextCursor) => {
    const { tools, findings } = await offer({ 'tools/list': () => ({ tools: [tool('a')], nextCursor }) }, { tools: {} })
    expect(tools).toHaveLength(1)
    expect(findings).toMatchObject([{ kind: 'malformed-cursor', method: 'tools/list' }])
    const last = await offer({ 'tools/list': () => ({ tools: [tool('a')], nextCursor: null }) }, { tools: {} })
    expect(last.findings).toEqual([])
  },
)

test.each([
  ['pages', 1_000, 'too-many-pages', undefined, () => [tool('a')]],
  ['entries', 3, 'too-many-entries', 'discovery.maxEntries', numbered(4_000)],
  ['bytes', 5, 'large-list', 'discovery.maxListSize', () => [{ ...tool('a'), own: 'x'.repeat(4_000_000) }]],
  ['values', 26, 'large-list', 'discovery.maxEntries', () => [{ ...tool('a'), own: Array(19_900).fill(1) }]],
])(
  'V6: a list without end is cut after so many %s, and a finding says so',
  async (_what, most, kind, setting, tools) => {
    let pages = 0
    const { findings } = await offer(
      { 'tools/list': () => ({ tools: tools(pages), nextCursor: String(++pages) }) },
      { tools: {} },
    )
    expect(pages).toBe(most)
    expect(findings[0]).toMatchObject({ kind, method: 'tools/list', limit: expect.any(Number) })
    expect(findings[0]?.setting).toBe(setting)
  },
)

test('V6: of 15,000 tools in one page, 10,000 are kept, and the others are counted', async () => {
  const { tools, findings } = await listed(...numbered(15_000)(0))
  expect(tools).toHaveLength(10_000)
  expect(findings).toMatchObject([{ kind: 'too-many-entries', count: 5_000, limit: 10_000 }])
})

test('S1: a list at the limit is complete', async () => {
  const { tools, findings } = await listed(...numbered(10_000)(0))
  expect(tools).toHaveLength(10_000)
  expect(findings).toEqual([])
})

test('V6: a description of 5 MiB is shortened, and a definition that is too large is left out', async () => {
  const long = { ...tool('long'), description: 'x'.repeat(5 * 1024 * 1024) }
  const titled = { ...tool('titled'), title: 'x'.repeat(5_000) }
  const large = { ...tool('large'), inputSchema: { type: 'object', description: 'x'.repeat(300_000) } }
  const crowded = { ...tool('crowded'), own: Array(30_000).fill(0) }
  const painted = { ...tool('painted'), icons: [{ src: `data:,${'x'.repeat(300_000)}` }] }
  const { tools, findings } = await listed(long, titled, large, crowded, painted, tool('good'))
  expect(tools.map(({ name }) => name)).toEqual(['long', 'titled', 'painted', 'good'])
  expect(tools[0]?.description).toHaveLength(64 * 1024)
  expect(tools[1]?.title).toHaveLength(1_024)
  expect(tools[2]).toEqual(tool('painted'))
  expect(findings).toMatchObject([
    { kind: 'long-text', count: 3, limit: 65_536 },
    { kind: 'large-definition', count: 2, limit: 262_144 },
  ])
  expect(JSON.stringify(findings).length).toBeLessThan(1_000)
})

test('V6: names in findings are short and without hidden characters', async () => {
  const { findings } = await listed(tool('\u001b[31m\u202eevil'), tool('y'.repeat(2_000)))
  expect(kinds(findings)).toEqual(['malformed-definition'])
  expect(findings[0]?.message).not.toMatch(/[\u001b\u202e]|y{200}/)
})

test('S1: a malformed tool is left out and reported, its siblings stay', async () => {
  const odd = [
    tool('good'),
    { name: 5 },
    null,
    'text',
    { name: 'bare' },
    { name: 'list', inputSchema: [] },
    tool('good'),
  ]
  const { tools, findings } = await offer({ ...empty, 'tools/list': () => ({ tools: [...odd, tool('other')] }) })
  expect(tools.map(({ name }) => name)).toEqual(['good', 'other'])
  expect(findings).toMatchObject([{ kind: 'malformed-definition', method: 'tools/list', count: 6 }])
})

test('S1: a tool nested deeper than common clients can parse is left out and reported', async () => {
  const deep = Array.from({ length: 100 }).reduce<object>((inner) => ({ not: inner }), {})
  const { tools, findings } = await listed({ ...tool('deep'), inputSchema: { type: 'object', ...deep } }, tool('good'))
  expect(tools.map(({ name }) => name)).toEqual(['good'])
  expect(findings).toMatchObject([{ kind: 'malformed-definition', count: 1 }])
  expect(findings[0]?.message).toContain('"deep" (nested deeper than 60 levels)')
})

test('V6: every list has its own limits', async () => {
  const resources = Array.from({ length: 10_001 }, (_, at) => ({ uri: `a:${at}`, name: 'r' }))
  const prompts = [{ name: 'p', description: 'x'.repeat(70_000) }]
  const { tools, findings } = await offer({
    ...empty,
    'tools/list': () => ({ tools: [tool('a')] }),
    'resources/list': () => ({ resources }),
    'resources/templates/list': () => ({ resourceTemplates: [{ uriTemplate: `a:${'x'.repeat(9_000)}`, name: 't' }] }),
    'prompts/list': () => ({ prompts }),
  })
  expect(tools).toHaveLength(1)
  expect(findings.map(({ kind, method }) => [kind, method])).toEqual([
    ['too-many-entries', 'resources/list'],
    ['malformed-definition', 'resources/templates/list'],
    ['long-text', 'prompts/list'],
  ])
})

test('B2: unknown fields of a definition are kept', async () => {
  const rich = { ...tool('a'), icons: [{ src: 'x' }], future: { field: 1 }, _meta: { theirs: true } }
  const { tools } = await offer({ ...empty, 'tools/list': () => ({ tools: [rich] }) })
  expect(tools).toEqual([rich])
})

test('G2: a list that fails loses only itself, and is named', async () => {
  const { tools, prompts, failed, warnings } = await offer({
    ...empty,
    'tools/list': () => ({ tools: [tool('a')] }),
    'prompts/list': () => ({ error: { code: -32603, message: 'broken', data: { whatever: 'it holds' } } }),
    'resources/templates/list': () => ({ error: { code: -32601, message: 'what?' } }),
  })
  expect(tools).toHaveLength(1)
  expect(prompts).toEqual([])
  expect(failed).toEqual([{ kind: 'prompt', method: 'prompts/list', reason: 'error -32603 "broken"' }])
  expect(warnings).toEqual([{ server: 's', method: 'prompts/list', code: -32603, reason: 'broken' }])
})

test('G2: a list whose response is unusable or never arrives does not take the others along', async () => {
  const limit = new AbortController()
  const { tools, resources, failed } = await offer(
    {
      ...empty,
      'tools/list': () => ({ tools: [tool('a')] }),
      'resources/list': ({ id }, peer) => peer.fail(id as number),
      'resources/templates/list': () => 5,
      'prompts/list': () => void setImmediate(() => limit.abort(new ToolwayError('TIMEOUT', 'No lists within 30 s.'))),
    },
    everything,
    undefined,
    limit.signal,
  )
  expect(tools.map(({ name }) => name)).toEqual(['a'])
  expect(resources).toEqual([])
  expect(failed).toMatchObject([
    { method: 'resources/list', reason: 'The response broke off' },
    { method: 'resources/templates/list', reason: expect.stringContaining('"result" must be an object') },
    { method: 'prompts/list', reason: 'No lists within 30 s' },
  ])
})

test('G2: a page that exceeds a limit is named with its list', async () => {
  const large = new LimitExceeded('large-message', 1)
  const { failed } = await offer({
    ...empty,
    'tools/list': () => ({ tools: [tool('a')] }),
    'prompts/list': ({ id }, peer) => peer.fail(id as number, large),
  })
  expect(failed).toMatchObject([{ method: 'prompts/list', limit: large }])
})

test('G2: if no list can be read, or the connection is lost, the listing fails', async () => {
  const fails: Parameters<typeof scriptedPeer>[0][string] = ({ id }, peer) => peer.fail(id as number)
  await expect(offer({ 'tools/list': fails }, { tools: {} })).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  const died: typeof fails = (_, peer) => void setImmediate(() => peer.die())
  const listing = offer({ ...empty, 'tools/list': () => ({ tools: [tool('a')] }), 'prompts/list': died })
  await expect(listing).rejects.toMatchObject({ message: expect.stringContaining('The process ended.') })
})

test('S1: a server that declares tools but does not know tools/list has failed to list them', async () => {
  const { failed } = await offer({ 'tools/list': () => ({ error: { code: -32601, message: 'what?' } }) }, { tools: {} })
  expect(failed).toMatchObject([{ kind: 'tool', method: 'tools/list', reason: 'error -32601 "what?"' }])
})

test('S1: a finding names the members that are left out of definitions', async () => {
  const { tools, findings } = await listed(
    { ...tool('a'), annotations: { readOnlyHint: 'yes' }, icons: 'no', title: null, own: 5 },
    { ...tool('b'), inputSchema: { type: 'object', properties: 'no' } },
    { ...tool('c'), inputSchema: { type: ['object', 'null'], properties: { x: true } }, description: null },
  )
  expect(tools.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  expect(findings).toMatchObject([{ kind: 'malformed-member', method: 'tools/list', count: 2 }])
  expect(findings[0]?.message).toContain('"a" (annotations, icons), "b" (inputSchema)')
})

test.each([{}, { tools: null }, { tools: { a: tool('a') } }, { tools: 'a' }])(
  'S1: %j is a list that failed, not an empty one',
  async (result) => {
    const { tools, failed, warnings } = await offer({ 'tools/list': () => result }, { tools: {} })
    expect(tools).toEqual([])
    expect(failed).toEqual([{ kind: 'tool', method: 'tools/list', reason: '"tools" is not an array' }])
    expect(warnings).toMatchObject([{ server: 's', method: 'tools/list' }])
  },
)

test.each([{}, null])(
  'V2, F5: a server is not degraded because its empty lists are missing or null (%j)',
  async (none) => {
    const listed = (field: string) => () => (none === null ? { [field]: null } : none)
    const { failed, resources, templates, prompts } = await offer({
      'tools/list': () => ({ tools: [tool('a')] }),
      'resources/list': listed('resources'),
      'resources/templates/list': listed('resourceTemplates'),
      'prompts/list': listed('prompts'),
    })
    expect({ failed, resources, templates, prompts }).toEqual({ failed: [], resources: [], templates: [], prompts: [] })
  },
)

test('B6: the reason why a list is missing, which callers see, contains no secret, even a long one', async () => {
  const secret = 'k'.repeat(300)
  const error = { code: -32603, message: `Invalid key ${secret}` }
  const redact = (text: string) => text.replaceAll(secret, '[redacted]')
  const { failed } = await offer({ 'tools/list': () => ({ error }) }, { tools: {} }, redact)
  expect(failed).toMatchObject([{ reason: 'error -32603 "Invalid key [redacted]"' }])
})

test('S1: the pages before one that fails are kept, and the list counts as failed', async () => {
  const pages = [{ tools: [tool('a')], nextCursor: '2' }, { error: { code: -32603, message: 'broken' } }]
  const { tools, failed } = await offer({ 'tools/list': () => pages.shift() }, { tools: {} })
  expect(tools.map(({ name }) => name)).toEqual(['a'])
  expect(failed).toMatchObject([{ method: 'tools/list', reason: expect.stringMatching(/only the first 1 .*"broken"/) }])
})

test('only what the server says it has is asked for', async () => {
  const { tools } = await offer({ 'prompts/list': () => ({ prompts: [{ name: 'p' }] }) }, { prompts: {} })
  expect(tools).toEqual([])
})
