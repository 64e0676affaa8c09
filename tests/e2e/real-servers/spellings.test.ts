import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, type TestClient } from '../../fixtures/clients.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { startToolway } from '../../fixtures/toolway.ts'

const open = new AsyncDisposableStack()
let client: TestClient

beforeAll(async () => {
  const toolway = open.use(
    await startToolway({
      mcpServers: {
        everything: stdioServers.everything(),
        // Pairs that are written alike: `a__b__c`, `a.b.c` and `toolway_a_b_c`.
        a: stdioServers.probe({ extra: ['b__c', 'b.c', 'b_c'] }),
        a__b: stdioServers.probe({ extra: ['c'] }),
        'a.b': stdioServers.probe({ extra: ['c'] }),
        a_b: stdioServers.probe({ extra: ['c'] }),
      },
      policy: { blockedTools: ['everything.get-env'] },
      discovery: { listDeadline: '20s' },
    }),
  )
  client = open.use(await connect('v2', { endpoint: toolway }))
  await client.listTools()
})

afterAll(() => open.disposeAsync())

const spellings = (server: string, tool: string): string[] => [
  ...['::', '.', '__', '/'].flatMap((sign) => [`${server}${sign}${tool}`, `toolway${sign}${server}${sign}${tool}`]),
  `toolway_${server}_${tool}`,
]

describe('a tool may be called by any known spelling', () => {
  test.each(spellings('everything', 'echo'))('F3: %s', async (name) => {
    const { content } = await client.callTool(name, { message: name })
    expect(content).toEqual([{ type: 'text', text: `Echo: ${name}` }])
  })

  test.each(spellings('everything', 'get-env'))('F3, F7: %s does not get round the policy', async (name) => {
    const result = await client.callTool(name).catch((error) => error)
    const refusal = result._meta?.['dev.toolway/error'] ?? result.data
    expect(refusal).toMatchObject({ code: expect.stringMatching(/^(TOOL_BLOCKED|TOOL_NOT_FOUND)$/) })
  })
})

const servedAs = async (server: string, tool: string) => {
  const tools = await client.listTools()
  const found = tools.find(({ description, _meta }) => {
    return description === `Probe: ${tool}` && _meta?.['dev.toolway/server'] === server
  })
  return found?.name as string
}

test.each<[string, ...[string, string][]]>([
  ['a.b.c', ['a', 'b.c'], ['a.b', 'c']],
  ['toolway_a_b_c', ['a', 'b_c'], ['a_b', 'c']],
  ['toolway.a.b.c', ['a', 'b.c'], ['a.b', 'c']],
])('F3: %s is ambiguous: it is refused and the candidates are named', async (spelling, ...candidates) => {
  const failure = await client.callTool(spelling, { message: 'which?' }).catch((error) => error)
  expect(failure).toMatchObject({ code: -32602, data: { code: 'TOOL_NOT_FOUND' } })
  for (const [server, tool] of candidates) expect(failure.message).toContain(await servedAs(server, tool))
})

test('B1: entries that would get one name both keep a distinct one, by which they can be called', async () => {
  const names = await Promise.all([
    servedAs('a', 'b__c'),
    servedAs('a__b', 'c'),
    servedAs('a.b', 'c'),
    servedAs('a_b', 'c'),
  ])
  expect(new Set(names).size).toBe(4)
  for (const name of names) {
    expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
    expect((await client.callTool(name, { message: name })).content).toEqual([{ type: 'text', text: `Echo: ${name}` }])
  }
})

test('F3: resolution is exact: a near miss is not found', async () => {
  for (const name of [
    'Everything.echo',
    'everything.Echo',
    'everything..echo',
    ' everything.echo',
    'everything__ech',
  ]) {
    await expect(client.callTool(name, { message: 'x' })).rejects.toMatchObject({
      code: -32602,
      data: { code: expect.stringMatching(/_NOT_FOUND$/) },
    })
  }
})
