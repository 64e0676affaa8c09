import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type * as z from 'zod'
import { adminRoutes, type RouteParts } from '../../../src/admin/routes.ts'
import { notFound, resultText, serveBareHttp } from '../../fixtures/bare-server.ts'
import { connect } from '../../fixtures/clients.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { introduction } from '../../fixtures/line-server.ts'
import { alive } from '../../fixtures/processes.ts'
import { rawModern } from '../../fixtures/raw-callers.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { asking, originOf } from './people.ts'

const config = {
  history: {},
  mcpServers: {
    probe: { ...stdioServers.probe(), env: { PROBE_TOKEN: 'probe-secret-value' }, readTools: ['echo', 'pid'] },
    everything: stdioServers.everything(),
    idle: { ...stdioServers.probe(), disabled: true },
  },
  defaults: { agent: 'default' },
  agents: {
    default: { allow: { servers: ['*'] } },
    dev: { allow: { servers: ['probe'] }, deny: { tools: { probe: ['die*'] } }, perMinute: 1000 },
    'dev.junior': { allow: { tools: { probe: ['echo'] } } },
  },
}

let gateway: LocalToolway
let folder: Folder
let ask: ReturnType<typeof asking>
beforeAll(async () => {
  folder = await temporaryFolder()
  const skill = join(folder.path, 'greet')
  await mkdir(skill)
  await writeFile(join(skill, 'SKILL.md'), '---\nname: greet\ndescription: Greets people.\n---\nSay hello.\n')
  gateway = await startToolway({ ...config, skills: { folders: [folder.path] } })
  ask = asking(originOf(gateway), gateway.token)
  await using client = await connect('v1', { endpoint: gateway })
  await client.listTools()
  await client.callTool('probe__echo', { message: 'hello' })
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const processOf = async (name: string) => (await ask(`servers/${name}`)).json.process

describe('G10: what an operator sees', () => {
  test('every answer of the real gateway fits its schema', async () => {
    const { call } = (await ask('tools/probe__echo/call', { body: { arguments: { message: 'x' } } })).json
    const targets: Record<string, string> = {
      ...{ servers: 'probe', tools: 'probe__echo', pins: 'probe.echo', calls: call },
      skills: encodeURIComponent('skill://skills/greet/SKILL.md'),
    }
    const queries: Record<string, string> = { search: '?q=echo', stats: '?by=tool', why: '?agent=dev&tool=probe.echo' }
    // No registry is configured.
    const without = ['openapi.json', 'config/registry']
    const readable = adminRoutes({} as RouteParts).filter(
      ({ method, stream, path }) => method === 'GET' && !stream && !without.includes(path),
    )
    expect(readable.length).toBeGreaterThan(14)
    for (const { path, answer } of readable) {
      const concrete = path.replace(/\{\w+\}/, targets[path.split('/')[0] as string] as string)
      const { status, json } = await ask(concrete + (queries[path] ?? ''))
      expect([path, status]).toEqual([path, 200])
      const fits = (answer as z.ZodType).safeParse(json)
      expect([path, fits.error?.message]).toEqual([path, undefined])
    }
  })

  test('the overview counts servers, tools, calls and what tools cost a context', async () => {
    const { json } = await ask('overview')
    expect(json.servers).toMatchObject({ healthy: 4, disabled: 1 })
    expect(json.tools).toBeGreaterThan(20)
    expect(json.calls.calls).toBeGreaterThan(0)
    expect(json.tokens.direct).toBeGreaterThan(1_000)
    expect(json.endpoint).toBe(gateway.url)
  })

  test('a server shows its health, era, process and what it wrote', async () => {
    const { json } = await ask('servers/everything')
    expect(json).toMatchObject({
      name: 'everything',
      health: 'healthy',
      transport: 'stdio',
      era: 'legacy',
      paused: false,
    })
    expect(alive(json.process.pid)).toBe(true)
    expect(json.process.startedAt).toBeLessThanOrEqual(Date.now())
    const lines = json.stderr as { at: number; text: string }[]
    expect(lines.map(({ text }) => text).join('\n')).toContain('Starting default (STDIO) server')
    for (const { at } of lines) expect(at).toBeGreaterThanOrEqual(json.events.at(-1).at - 120_000)
    expect(json.launch).toContain('everything')
    expect(json.events.at(-1)).toMatchObject({ kind: 'started', times: 1 })
    expect(json.connections.open.map(({ pid }: { pid: number }) => pid)).toContain(json.process.pid)
    expect(json.offers.map(({ kind }: { kind: string }) => kind)).toEqual(
      expect.arrayContaining(['resource', 'template', 'prompt']),
    )
    const tools = (await ask('tools?server=everything&limit=500')).json.tools as { tokens: number }[]
    expect(json.toolTokens).toBe(tools.reduce((sum, { tokens }) => sum + tokens, 0))
    expect(json.callsSince).toBeLessThanOrEqual(Date.now())
    expect((await ask('servers/idle')).json).toMatchObject({ health: 'disabled', process: null, paused: false })
    expect((await ask('servers/everythin')).json.error.message).toContain('did you mean "everything"?')
  })

  test('tools are searched and paged; one shows its schema, its pin and the agents that may use it', async () => {
    const first = (await ask('tools?server=probe&limit=2')).json
    expect(first.tools).toHaveLength(2)
    const second = (await ask(`tools?server=probe&limit=500&cursor=${first.nextCursor}`)).json
    expect(first.tools.length + second.tools.length).toBe(first.total)
    expect(second.nextCursor).toBeNull()
    expect((await ask('tools?query=ECHO%20probe')).json.tools).toMatchObject([{ name: 'probe__echo', access: 'read' }])
    expect((await ask('tools?cursor=made-up')).status).toBe(400)
    const { json } = await ask('tools/probe.echo')
    expect(json).toMatchObject({ name: 'probe__echo', tool: 'echo', server: 'probe', pin: 'approved' })
    expect(json.definition.inputSchema.type).toBe('object')
    expect(json.agents).toMatchObject([
      { agent: 'default', allowed: true },
      { agent: 'dev', allowed: true },
      { agent: 'dev.junior', allowed: true },
    ])
    const { agents } = (await ask('tools/probe.pid')).json
    expect(agents[2]).toMatchObject({ agent: 'dev.junior', allowed: false, rule: expect.any(String) })
  })

  test('tools are sorted over all pages; a search finds servers, tools, agents and calls', async () => {
    const sorted = async (sort: string, cursor = '') => (await ask(`tools?limit=5&sort=${sort}&cursor=${cursor}`)).json
    const first = await sorted('-tokens')
    const second = await sorted('-tokens', first.nextCursor)
    const tokens = [...first.tools, ...second.tools].map((tool: { tokens: number }) => tool.tokens)
    expect(tokens).toEqual(tokens.toSorted((a, b) => b - a))
    expect(new Set([...first.tools, ...second.tools].map(({ name }: { name: string }) => name)).size).toBe(10)
    expect((await ask('tools?sort=colour')).status).toBe(400)
    const hits = async (text: string) => (await ask(`search?q=${encodeURIComponent(text)}`)).json.hits
    expect((await hits('prob'))[0]).toMatchObject({ kind: 'server', name: 'probe' })
    expect((await hits('echo prb'))[0]).toMatchObject({ kind: 'tool', name: 'probe__echo' })
    expect((await hits('junior'))[0]).toMatchObject({ kind: 'agent', name: 'dev.junior' })
    const { call } = (await ask('tools/probe__echo/call', { body: { arguments: { message: 'x' } } })).json
    expect(await hits(call)).toMatchObject([{ kind: 'call', name: call }])
    expect(await hits('e')).toHaveLength(20)
    expect((await ask('search')).status).toBe(400)
  })

  test('agents, the matrix and why agree with one another', async () => {
    const agents = (await ask('agents')).json
    expect(agents).toMatchObject([
      { name: 'default', isDefault: true, inherits: null },
      { name: 'dev', perMinute: 1000, limitsPer: 'agent' },
      { name: 'dev.junior', inherits: 'dev', perMinute: 1000, tools: 1 },
    ])
    const matrix = (await ask('agents/matrix?limit=500')).json
    expect(matrix.agents).toEqual(['default', 'dev', 'dev.junior'])
    const allowed = matrix.rows.filter((row: { allowed: boolean[] }) => row.allowed[1])
    expect(allowed).toHaveLength(agents[1].tools)
    for (const tool of ['echo', 'die', 'pid']) {
      const { json } = await ask(`why?agent=dev&tool=probe.${tool}`)
      const row = matrix.rows.find(
        (one: { server: string; tool: string }) => one.server === 'probe' && one.tool === tool,
      )
      expect([tool, json.allowed]).toEqual([tool, row.allowed[1]])
      expect(json.sentence).not.toBe('')
      expect(json.considered.length).toBeGreaterThan(0)
    }
  })
})

describe('G10: what an operator does', () => {
  test('a tool is tried as an agent: it answers, it is refused, it is recorded', async () => {
    const tried = (await ask('tools/probe__echo/call', { body: { arguments: { message: 'again' }, agent: 'dev' } }))
      .json
    expect(tried).toMatchObject({ error: null, result: { content: [{ type: 'text', text: 'Echo: again' }] } })
    const denied = (await ask('tools/probe__die/call', { body: { arguments: {}, agent: 'dev' } })).json
    expect(denied).toMatchObject({
      result: null,
      error: { code: 'DENIED_BY_POLICY', rule: expect.stringContaining('dev') },
    })
    const failed = (
      await ask('tools/probe__fail/call', { body: { arguments: { error: { code: -5, message: 'no' } } } })
    ).json
    expect(failed.error).toEqual({ code: 'rpc -5', message: 'no' })
    expect((await ask('tools/probe__ecko/call', { body: { arguments: {} } })).status).toBe(404)
    expect((await ask('tools/probe__echo/call', { body: { arguments: {}, agent: 'nobody' } })).status).toBe(403)

    const call = (await ask(`calls/${tried.call}`)).json
    expect(call).toMatchObject({ agent: 'dev', server: 'probe', name: 'echo', outcome: 'answered', principal: 'token' })
    expect(call.audit).toMatchObject({
      begin: { phase: 'before', call: tried.call, tool: 'echo', arguments: { message: 'again' } },
      end: { phase: 'after', call: tried.call, decision: 'ALLOW' },
    })
    const listed = (await ask('calls?agent=dev&outcome=denied')).json.calls
    expect(listed).toMatchObject([{ id: denied.call, code: 'DENIED_BY_POLICY' }])
  })

  test('a call of a meta-tool lists the calls that it made', async () => {
    const body = { arguments: { calls: [{ server: 'probe', tool: 'echo', args: { message: 'child' } }] } }
    const { call, error } = (await ask('tools/execute_tools/call', { body })).json
    expect(error).toBeNull()
    const { children } = (await ask(`calls/${call}`)).json
    expect(children).toMatchObject([{ parent: call, server: 'probe', name: 'echo' }])
  })

  test('the stream of events has a call while it runs', async () => {
    const leaving = new AbortController()
    const headers = { authorization: `Bearer ${gateway.token}` }
    const { body } = await fetch(`${originOf(gateway)}/admin/api/events`, { headers, signal: leaving.signal })
    const { call } = (await ask('tools/probe__echo/call', { body: { arguments: { message: 'seen' } } })).json
    let text = ''
    for await (const chunk of (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
      text += chunk
      if (text.includes(`"id":"${call}"`)) break
    }
    leaving.abort()
    for (const event of ['overview', 'servers', 'calls']) expect(text).toContain(`event: ${event}\n`)
  })

  test('a restart ends the process and starts another, and says so', async () => {
    const before = await processOf('probe')
    const { json } = await ask('servers/probe/restart', { method: 'POST' })
    expect(json).toMatchObject({ health: 'healthy', process: { restarts: before.restarts + 1 } })
    expect(json.process.pid).not.toBe(before.pid)
    expect(alive(before.pid)).toBe(false)
    const tried = (await ask('tools/probe__pid/call', { body: { arguments: {} } })).json
    expect(tried.result.content[0].text).toBe(String(json.process.pid))
  })

  test('F4: a refresh asks for every kind of client, whatever each can be asked for', async () => {
    let name = 'before'
    await using server = await serveBareHttp(({ id, method }, { send }) => {
      const list = { tools: [{ name, inputSchema: { type: 'object' } }] }
      const result = { initialize: introduction('silent'), 'tools/list': list }[method]
      if (id !== undefined) send(result ? resultText('legacy', id, result) : notFound(id))
    })
    await using silent = await startToolway({ history: {}, mcpServers: { silent: { url: server.url } } })
    const kinds = [{}, { roots: {} }].map((capabilities) => rawModern(silent, capabilities))
    const lists = () => Promise.all(kinds.map((client) => client('tools/list')))
    for (const list of await lists()) expect(list).toContain('silent__before')
    name = 'after'
    await asking(originOf(silent), silent.token)('servers/silent/refresh', { method: 'POST' })
    for (const list of await lists()) expect(list).toContain('silent__after')
  })

  test('a disabled server lists nothing and refuses calls with a sentence, until it is enabled', async () => {
    await using client = await connect('v1', { endpoint: gateway })
    const { pid } = await processOf('probe')
    const off = (await ask('servers/probe/disable', { method: 'POST' })).json
    expect(off).toMatchObject({ health: 'disabled', paused: true, process: null, tools: 0 })
    expect(alive(pid)).toBe(false)
    expect((await client.listTools()).filter(({ name }) => name.startsWith('probe'))).toEqual([])
    const refused = await client.callTool('probe__echo', { message: 'x' })
    expect(refused).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/"probe" is disabled/) }],
      _meta: { 'dev.toolway/error': { code: 'SERVER_DISABLED', server: 'probe' } },
    })
    expect((await ask('overview')).json.servers.disabled).toBe(2)
    expect((await ask('servers/probe/refresh', { method: 'POST' })).json.paused).toBe(true)

    const on = (await ask('servers/probe/enable', { method: 'POST' })).json
    expect(on).toMatchObject({ paused: false })
    const answer = await client.callTool('probe__echo', { message: 'back' })
    expect(answer.content).toEqual([{ type: 'text', text: 'Echo: back' }])
  })

  test('servers that are disabled in the configuration, and native tools, cannot be enabled or disabled here', async () => {
    const idle = await ask('servers/idle/enable', { method: 'POST' })
    expect([idle.status, idle.json.error.message]).toEqual([400, expect.stringContaining('mcpServers.idle.disabled')])
    expect((await ask('servers/native/disable', { method: 'POST' })).status).toBe(400)
    expect((await ask('servers/nobody/restart', { method: 'POST' })).status).toBe(404)
  })

  test('F11: actions of the operator are in the audit log, which is searched page by page', async () => {
    const { rows } = (await ask('audit?operation=*_server')).json
    expect(rows.map((row: { operation: string }) => row.operation)).toEqual(
      expect.arrayContaining(['restart_server', 'disable_server', 'enable_server']),
    )
    expect(rows[0]).toMatchObject({ principal: 'token', address: '127.0.0.1', decision: 'ALLOW', server: 'probe' })
    const first = (await ask('audit?tool=probe.echo&limit=1')).json
    const second = (await ask(`audit?tool=probe.echo&limit=1&cursor=${first.nextCursor}`)).json
    expect(first.rows[0].call).not.toBe(second.rows[0].call)
    expect((await ask('audit?text=message%3Dagain')).json.rows).toHaveLength(1)
    expect((await ask('audit?decision=deny&from=0')).json.rows.length).toBeGreaterThan(0)
    expect((await ask('audit?to=1')).json).toEqual({ rows: [], nextCursor: null })
    expect((await ask('audit?cursor=nonsense')).status).toBe(400)
  })

  test('F11: the chain of the audit log is checked on demand', async () => {
    expect((await ask('audit/chain')).json.state).toBe('unknown')
    expect((await ask('audit/chain/verify', { method: 'POST' })).json.state).toBe('checking')
    const chain = await until(
      async () => {
        const { json } = await ask('audit/chain')
        return json.state !== 'checking' && json
      },
      { what: 'the check' },
    )
    expect(chain).toMatchObject({ state: 'intact', problems: [], checkedAt: expect.any(Number) })
    expect(chain.records).toBeGreaterThan(10)
  })
})

describe('G8, G10: the configuration', () => {
  test('is shown without a secret', async () => {
    const { json, text } = await ask('config')
    expect(json.config.mcpServers.probe).toMatchObject({
      command: process.execPath,
      env: { PROBE_TOKEN: '[redacted]' },
    })
    expect(json.config.agents.dev.perMinute).toBe(1000)
    expect(text).not.toContain('probe-secret-value')
    expect(text).not.toContain(gateway.token)
    expect(json.files).toMatchObject([{ dialect: expect.any(String) }])
  })

  test('is reloaded, the response lists the changes, and an invalid one leaves the previous one in force', async () => {
    const dev = { ...config.agents.dev, perMinute: 5 }
    const { everything, ...others } = config.mcpServers
    const probe = { ...others.probe, env: { PROBE_TOKEN: 'another-secret-value' } }
    const skills = { folders: [folder.path] }
    await gateway.rewrite({ ...config, skills, mcpServers: { ...others, probe }, agents: { ...config.agents, dev } })
    const changed = (await ask('config/reload', { method: 'POST' })).json
    expect(changed).toMatchObject({ ok: true, error: null })
    expect(changed.changes.toSorted()).toEqual([
      'agents.dev.perMinute: 1000 → 5',
      'mcpServers.probe.env.PROBE_TOKEN changed',
      'server everything removed',
    ])
    expect((await ask('servers/everything')).status).toBe(404)

    await gateway.rewrite({ ...config, skills, limits: { perMinute: 'many' } })
    const wrong = (await ask('config/reload', { method: 'POST' })).json
    expect(wrong).toMatchObject({ ok: false, changes: [], error: expect.stringContaining('limits.perMinute') })
    const { reload, history } = (await ask('config')).json
    expect(reload).toMatchObject({ attempts: 2, successes: 1, lastError: wrong.error })
    expect(history.map(({ ok }: { ok: boolean }) => ok)).toEqual([false, true])
    expect((await ask('audit?operation=reload_config')).json.rows).toHaveLength(2)
  })
})
