import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { messageOf, type RawSession, rawSession, rpc } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { endedIn } from '../audit/records.ts'

// Two gateways with one policy: `full` has what the agent is denied, `bare` never had it. The agent must not be able to
// tell them apart.
const agents = {
  guest: { allow: { servers: ['probe', 'native', 'toolway'] }, deny: { tools: { probe: ['hidden_tool'] } } },
  owner: { allow: { servers: ['*'] } },
}
const config = { agents, policy: { hideDenied: true }, defaults: { expose: 'both' } }

const open = new AsyncDisposableStack()
let folder: Awaited<ReturnType<typeof temporaryFolder>>
let full: RawSession
let bare: RawSession
let owner: RawSession

const as = (agent: string) => ({ headers: { 'toolway-agent': agent } })

beforeAll(async () => {
  folder = open.use(await temporaryFolder())
  const servers = {
    probe: stdioServers.probe({ extra: ['hidden_tool'] }),
    vault: { ...stdioServers.everything(), description: 'Keeps secrets.' },
  }
  const [one, other] = await Promise.all([
    startToolway({ ...config, mcpServers: servers }, { folder }),
    startToolway({ ...config, mcpServers: { probe: stdioServers.probe() } }),
  ])
  open.use(one)
  open.use(other)
  owner = await rawSession(one, as('owner'))
  // Both have heard from all their servers before anything is compared.
  await owner.answer('tools/list')
  full = await rawSession(one, as('guest'))
  bare = await rawSession(other, as('guest'))
  await Promise.all([full.answer('tools/list'), bare.answer('tools/list')])
})
afterAll(() => open.disposeAsync())

/** Times and temporary folders differ anyway. */
const settled = (text: string) =>
  text
    .replaceAll(/(\/toolway-\w+)+\//g, '/FOLDER/')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/(\w*(?:ms|Ms|_ms|seconds|latency)\\?":)[\d.]+/g, '$1N')

/** What a gateway answers, status and bytes, whether or not a slow machine made a stream of it. */
async function answer(session: RawSession, method: string, params: object) {
  const { status, text } = await session.send(rpc('same', method, params))
  return `${status} ${settled(messageOf(text))}`
}

const call = (name: string, args: object = {}) => ['tools/call', { name, arguments: args }] as const
const prompt = { type: 'ref/prompt', name: 'vault__completable-prompt' }
const template = { type: 'ref/resource', uri: 'demo://vault/resource/dynamic/text/{resourceId}' }
const document = 'demo://vault/resource/static/document/architecture.md'

test('B6: the compared entries exist for an agent that may use them', async () => {
  const names = async (method: string, key: string, name: string) => {
    const { result } = await owner.answer(method)
    return ((result?.[key] ?? []) as Record<string, string>[]).map((one) => one[name])
  }
  expect(await names('tools/list', 'tools', 'name')).toEqual(
    expect.arrayContaining(['vault__echo', 'probe__hidden_tool']),
  )
  expect(await names('prompts/list', 'prompts', 'name')).toContain(prompt.name)
  expect(await names('resources/list', 'resources', 'uri')).toContain(document)
  expect(await names('resources/templates/list', 'resourceTemplates', 'uriTemplate')).toContain(template.uri)
  expect(
    await owner.answer(...call('execute_tool', { server: 'vault', tool: 'echo', args: { message: 'x' } })),
  ).toHaveProperty('result.content')
})

describe('B6: with policy.hideDenied, a response about a denied entry is byte for byte that about a missing one', () => {
  test.each<readonly [string, string, object]>([
    ['a tool of a denied server', ...call('vault__echo', { message: 'x' })],
    ['the same with a dot', ...call('vault.echo', { message: 'x' })],
    ['the same by its bare name', ...call('get-sum', { a: 1, b: 2 })],
    ['a denied tool', ...call('probe__hidden_tool', { message: 'x' })],
    ['the same with a dot', ...call('probe.hidden_tool', { message: 'x' })],
    ['the same by its bare name', ...call('hidden_tool', { message: 'x' })],
    ['a resource', 'resources/read', { uri: document }],
    ['a resource as its server spells it', 'resources/read', { uri: document.replace('vault/', '') }],
    ['a resource of a template', 'resources/read', { uri: 'demo://vault/resource/dynamic/text/1' }],
    ['following a resource', 'resources/subscribe', { uri: document }],
    ['a prompt', 'prompts/get', { name: 'vault__simple-prompt' }],
    ['a prompt by its bare name', 'prompts/get', { name: 'simple-prompt' }],
    ['completing a prompt', 'completion/complete', { ref: prompt, argument: { name: 'department', value: '' } }],
    ['completing a template', 'completion/complete', { ref: template, argument: { name: 'resourceId', value: '1' } }],
    [
      'execute_tool on a denied server',
      ...call('execute_tool', { server: 'vault', tool: 'echo', args: { message: 'x' } }),
    ],
    ['execute_tool of a denied tool', ...call('execute_tool', { server: 'probe', tool: 'hidden_tool', args: {} })],
    [
      'execute_tools',
      ...call('execute_tools', {
        calls: [
          { server: 'vault', tool: 'echo', args: { message: 'x' } },
          { server: 'probe', tool: 'hidden_tool', args: {} },
        ],
      }),
    ],
    ['get_server_tools of a denied server', ...call('get_server_tools', { server: 'vault' })],
    ['get_server_tools of a denied tool', ...call('get_server_tools', { server: 'probe', names: ['hidden_tool'] })],
    ['find_tool on a denied server', ...call('find_tool', { query: 'echo', server: 'vault' })],
    ['find_tool of a denied tool', ...call('find_tool', { query: 'hidden_tool' })],
    ['describe_tools', ...call('describe_tools', { names: ['vault.echo', 'probe.hidden_tool', 'hidden_tool'] })],
    ['list_tools of a denied server', ...call('list_tools', { server: 'vault' })],
    ['list_tools', ...call('list_tools')],
    ['list_servers', ...call('list_servers')],
    ['server_health of a denied server', ...call('server_health', { server: 'vault' })],
    ['registry_summary', ...call('registry_summary')],
    ['get_gateway_status', ...call('get_gateway_status')],
    ['the list of tools', 'tools/list', {}],
    ['the list of resources', 'resources/list', {}],
    ['the list of templates', 'resources/templates/list', {}],
    ['the list of prompts', 'prompts/list', {}],
  ])('%s', async (_, method, params) => {
    const one = await answer(full, method, params)
    expect(one).toBe(await answer(bare, method, params))
    expect(one).not.toMatch(/Keeps secrets|DENIED|NAMESPACE|not allowed/i)
  })

  test('the audit log has the denial nevertheless', async () => {
    await full.send(rpc('audited', 'resources/read', { uri: document }))
    await expect
      .poll(() =>
        endedIn(folder.path).filter(({ operation, agent }) => operation === 'read_resource' && agent === 'guest'),
      )
      .toContainEqual(expect.objectContaining({ decision: 'DENY' }))
  })

  test('also while the denied server has not started yet', async () => {
    const silent = { command: 'sh', args: ['-c', 'sleep 600'] }
    const probe = stdioServers.probe()
    // Longer than the test may take: a list that waits for the denied server fails it.
    const slow = { ...config, discovery: { listDeadline: '2m' } }
    await using starting = await startToolway({ ...slow, mcpServers: { probe, vault: silent } })
    await using without = await startToolway({ ...slow, mcpServers: { probe } })
    const [one, other] = [await rawSession(starting, as('guest')), await rawSession(without, as('guest'))]
    for (const [method, params] of [
      ['tools/list', {}],
      ['resources/list', {}],
      call('vault__echo', { message: 'x' }),
      ['prompts/get', { name: 'vault__simple-prompt' }],
      ['resources/read', { uri: document }],
      call('execute_tool', { server: 'vault', tool: 'echo' }),
      call('get_server_tools', { server: 'vault' }),
      call('find_tool', { query: 'echo' }),
      call('server_health', { server: 'vault' }),
      call('list_servers'),
    ] as const) {
      expect(await answer(one, method, params), method).toBe(await answer(other, method, params))
    }
  })
})
