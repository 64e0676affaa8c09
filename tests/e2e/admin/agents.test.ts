import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { asking, keyFor, originOf } from './people.ts'

const dev = keyFor('dev', ['dev'])
const ops = keyFor('ops', ['ops'])

let gateway: LocalToolway
let asDev: ReturnType<typeof asking>
let asOperator: ReturnType<typeof asking>
beforeAll(async () => {
  gateway = await startToolway({
    history: {},
    mcpServers: { probe: stdioServers.probe(), other: stdioServers.probe() },
    agents: { dev: { allow: { tools: { probe: ['echo', 'pid'] } } }, ops: { allow: { servers: ['*'] } } },
    auth: { keys: [dev.configured, ops.configured] },
  })
  asDev = asking(originOf(gateway), dev.key)
  asOperator = asking(originOf(gateway), gateway.token)
  for (const [ask, name] of [
    [asking(originOf(gateway), ops.key), 'other.echo'],
    [asDev, 'probe.echo'],
    [asDev, 'probe.die'],
  ] as const) {
    await ask(`tools/${name}/call`, { body: { arguments: { message: 'x' } } })
  }
})
afterAll(() => gateway[Symbol.asyncDispose]())

describe('B6, G10: a caller without admin rights', () => {
  test('sees its own identity, and acts as its own agent only', async () => {
    expect((await asDev('session')).json).toEqual({
      ...{ principal: 'key:dev', agent: 'dev', authenticated: true, admin: false, agents: ['dev'] },
    })
    const other = await asDev('tools/probe.echo/call', { body: { arguments: {}, agent: 'ops' } })
    expect([other.status, other.json.error.code]).toEqual([403, 'INVALID_AGENT_ID'])
    expect((await asDev('why?agent=ops&tool=other.echo')).status).toBe(403)
  })

  test('sees the servers and tools of their agent, without processes or what these wrote', async () => {
    const servers = (await asDev('servers')).json
    expect(servers.map(({ name }: { name: string }) => name)).toEqual(['probe'])
    expect(servers[0].process).toBeNull()
    const hidden = { launch: null, connections: null, events: [], stderr: [] }
    expect((await asDev('servers/probe')).json).toMatchObject(hidden)
    const hits = async (text: string) => (await asDev(`search?q=${text}`)).json.hits
    expect(await hits('echo')).toMatchObject([{ kind: 'tool', name: 'probe__echo' }])
    for (const text of ['other', 'ops', 'die']) expect(await hits(text)).toEqual([])
    expect((await asDev('servers/other')).status).toBe(404)
    const { tools, total } = (await asDev('tools')).json
    expect([total, tools.map(({ name }: { name: string }) => name)]).toEqual([2, ['probe__echo', 'probe__pid']])
    expect((await asDev('tools?query=die')).json.total).toBe(0)
    expect((await asDev('tools/probe.echo')).json.agents).toMatchObject([{ agent: 'dev', allowed: true }])
    for (const name of ['probe.die', 'other.echo']) expect((await asDev(`tools/${name}`)).status).toBe(403)
  })

  test('sees the calls and the figures of their agent, and no audit records', async () => {
    const calls = (await asDev('calls')).json.calls
    expect(calls.map(({ agent }: { agent: string }) => agent)).toEqual(['dev', 'dev'])
    expect((await asDev('calls?agent=ops')).json).toMatchObject({ calls: [], total: 0 })
    const [theirs] = (await asOperator('calls?agent=ops')).json.calls
    expect((await asDev(`calls/${theirs.id}`)).status).toBe(404)
    const own = (await asDev(`calls/${calls[1].id}`)).json
    expect([own.name, own.audit]).toEqual(['echo', { begin: null, end: null }])
    expect((await asDev('overview')).json.calls).toMatchObject({ calls: 2, denials: 1 })
    expect((await asDev('stats?by=server')).json.rows).toMatchObject([{ name: 'probe', calls: 2 }])
    const { points } = (await asDev('series')).json
    expect(points.reduce((sum: number, point: { calls: number }) => sum + point.calls, 0)).toBe(2)
    expect((await asOperator('stats?by=agent')).json.rows).toHaveLength(2)
  })

  test('learns why their agent may use a tool, or may not', async () => {
    expect((await asDev('why?tool=probe.echo')).json).toMatchObject({ agent: 'dev', allowed: true })
    const { json } = await asDev('why?tool=probe.die')
    expect(json).toMatchObject({ allowed: false, sentence: expect.any(String) })
  })

  test('sees no audit, no configuration and no other agents, and changes nothing', async () => {
    for (const path of ['audit', 'audit/chain', 'agents', 'agents/matrix', 'config']) {
      const { status, json } = await asDev(path)
      expect([path, status, json.error.code]).toEqual([path, 403, 'DENIED_BY_POLICY'])
    }
    for (const path of ['servers/probe/restart', 'servers/probe/disable', 'config/reload', 'audit/chain/verify']) {
      expect([path, (await asDev(path, { method: 'POST' })).status]).toEqual([path, 403])
    }
    const { rows } = (await asOperator('audit?operation=authenticate&principal=key:dev')).json
    expect(rows.length).toBeGreaterThanOrEqual(9)
  })
})
