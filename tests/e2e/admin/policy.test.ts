import { readFile, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect } from '../../fixtures/clients.ts'
import { rawRequest } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { asking, keyFor, originOf } from './people.ts'

const dev = keyFor('dev', ['dev'])

let gateway: LocalToolway
let ask: ReturnType<typeof asking>
beforeAll(async () => {
  gateway = await startToolway({
    history: {},
    mcpServers: { probe: { ...stdioServers.probe(), env: { API_TOKEN: 'inline-secret-1' } } },
    agents: { dev: { allow: { tools: { probe: ['echo', 'pid'] } } } },
    auth: { keys: [dev.configured] },
  })
  ask = asking(originOf(gateway), gateway.token)
  await writeFile(gateway.configFile, (await text()).replace('{', '{ // mine\n'))
  await using client = await connect('v1', { endpoint: { url: gateway.url, token: dev.key } })
  for (const message of ['a', 'b', 'c']) await client.callTool('probe__echo', { message })
  await client.callTool('probe__pid', {})
  await client.callTool('probe__die', {}).catch(() => {})
})
afterAll(() => gateway[Symbol.asyncDispose]())

const text = () => readFile(gateway.configFile, 'utf8')
const edit = { changes: [{ path: ['agents', 'dev', 'allow', 'tools', 'probe'], value: ['pid', 'die'] }] }

/** The events of a replay. */
async function replay(body: object, token = gateway.token) {
  const { status, text } = await rawRequest(originOf(gateway), {
    path: '/admin/api/policy/replay',
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const events = text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : []))
  return { status, events, text }
}

describe('V10: a proposed policy', () => {
  test('is replayed over recorded calls before it is saved, with the calls that would change', async () => {
    const before = await text()
    const { status, events } = await replay({ edit })
    expect(status).toBe(200)
    const end = events.at(-1)
    expect(end).toMatchObject({
      kind: 'end',
      replay: {
        complete: true,
        denied: { calls: 3, changes: [{ agent: 'dev', server: 'probe', tool: 'echo', calls: 3 }] },
        allowed: { calls: 1, changes: [{ tool: 'die', calls: 1 }] },
        gone: { calls: 0 },
      },
    })
    expect(end.replay.calls).toBe(5)
    const [{ examples, before: rule }] = end.replay.denied.changes
    expect(rule).toContain('agents.dev.allow')
    expect(examples).toHaveLength(3)
    expect((await ask(`calls/${examples[0]}`)).json).toMatchObject({ server: 'probe', name: 'echo' })
    expect(await text()).toBe(before)
  })

  test('counts only calls of the time that was asked for', async () => {
    const { events } = await replay({ edit, days: 1e-9 })
    expect(events.at(-1).replay.calls).toBe(0)
  })

  test('shows which permissions change, also for new and removed agents', async () => {
    const { json } = await ask('policy/preview', { body: edit })
    expect(json).toMatchObject({ agents: ['dev'], changed: 2, omitted: 0 })
    expect(json.rows).toEqual([
      { server: 'probe', tool: 'echo', before: [true], after: [false] },
      { server: 'probe', tool: 'die', before: [false], after: [true] },
    ])
    const added = { changes: [{ path: ['agents', 'ops'], yaml: 'allow: { servers: [probe] }' }] }
    const preview = (await ask('policy/preview', { body: added })).json
    expect(preview.agents).toEqual(['ops'])
    expect(preview.rows).toContainEqual({ server: 'probe', tool: 'echo', before: [null], after: [true] })
  })

  test('that is invalid is refused with the problem', async () => {
    const wrong = { changes: [{ path: ['agents', 'dev', 'alow'], value: [] }] }
    for (const { status, text } of [await ask('policy/preview', { body: wrong }), await replay({ edit: wrong })]) {
      expect(status).toBe(400)
      expect(text).toContain('alow')
    }
  })

  test('is saved and undone; the file keeps its comments', async () => {
    const before = await text()
    const { hash } = (await ask('config/preview', { body: edit })).json
    const { edit: saved } = (await ask('config/apply', { body: { ...edit, hash } })).json
    expect(await text()).toContain('// mine')
    expect((await ask('why?agent=dev&tool=probe.echo')).json.allowed).toBe(false)
    await ask('config/undo', { body: { id: saved.id } })
    expect(await text()).toBe(before)
    expect((await ask('why?agent=dev&tool=probe.echo')).json.allowed).toBe(true)
  })
})

test('V9: the parts of the policy have values, YAML and schemas for forms, and no secrets', async () => {
  const { json, text } = await ask('policy')
  expect(json.parts).toContainEqual({
    ...{ kind: 'agent', title: 'Agent dev', path: ['agents', 'dev'], hash: expect.any(String) },
    ...{ value: { allow: { tools: { probe: ['echo', 'pid'] } } }, yaml: expect.stringContaining('- echo') },
  })
  expect(json.parts.map(({ kind }: { kind: string }) => kind)).toEqual([
    'agent',
    'rules',
    'limits',
    'defaults',
    'guards',
  ])
  expect(json.schemas.agent.properties.perMinute).toMatchObject({ type: 'number', minimum: 1 })
  expect(json.schemas.guards.items).toBeDefined()
  expect(text).not.toContain('inline-secret')
})

test('V9, B6: only admins see and replay the policy', async () => {
  const asDev = asking(originOf(gateway), dev.key)
  expect((await asDev('policy')).status).toBe(403)
  expect((await asDev('policy/preview', { body: edit })).status).toBe(403)
  expect((await replay({ edit }, dev.key)).status).toBe(403)
})
