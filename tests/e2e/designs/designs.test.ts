import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sampled } from '../../../src/telemetry/metrics/exposition.fixture.ts'
import { connectCaller } from '../../fixtures/callers.ts'
import { rawRequest, rawSession } from '../../fixtures/raw-http.ts'
import type { Endpoint } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { asking, keyFor, originOf } from '../admin/people.ts'
import { endedIn } from '../audit/records.ts'
import { callerOf, startDesign } from './start.ts'

const namesOf = async (caller: Awaited<ReturnType<typeof callerOf>>, server: string) =>
  (await caller.tools()).filter((tool) => tool.server === server).map(({ name }) => name)

describe('a YAML file with mcp_endpoints', () => {
  test('J2: a read-only endpoint lists and runs its reads, and refuses its writes before they are sent', async () => {
    await using design = await startDesign({ 'executor.yaml': 'executor.yaml' })
    const caller = await callerOf(design)
    expect(await namesOf(caller, 'tickets')).toEqual(['tickets__get_ticket'])
    expect((await namesOf(caller, 'intake')).length).toBe(4)
    expect(await namesOf(caller, 'archive')).toEqual([])
    expect(await caller.call('tickets__get_ticket', { id: '7' })).toBe('get_ticket 1')
    expect(await caller.call('tickets__close_ticket', { id: '7' })).toBe('WRITE_NOT_ALLOWED')
    const args = { server: 'tickets', tool: 'close_ticket', args: { id: '7' } }
    expect(await caller.call('execute_tool', args)).toBe('WRITE_NOT_ALLOWED')
    expect(design.tickets.called).toEqual(['get_ticket'])
    expect(await caller.call('intake__close_ticket', { id: '7' })).toBe('close_ticket 2')
    expect(design.loaded.notes.join()).toContain('trustAnnotations')
  })

  test('J2: where a read-only server can show nothing, warnings and its status say so', async () => {
    await using design = await startDesign(
      { 'executor.yaml': 'executor.yaml' },
      { mcpServers: { tickets: { trustAnnotations: false } } },
    )
    const caller = await callerOf(design)
    expect(await namesOf(caller, 'tickets')).toEqual([])
    expect(await caller.call('list_tools', { server: 'tickets' })).toBe('WRITE_NOT_ALLOWED')
    const status = design.gateway.servers().find(({ name }) => name === 'tickets')?.status.reason
    const { result } = await (await rawSession(design)).answer('tools/call', { name: 'tickets__get_ticket' })
    for (const said of [JSON.stringify(design.log.lines), status, JSON.stringify(result)]) {
      expect(said).toContain('readTools')
      expect(said).toContain('trustAnnotations')
    }
  })

  test('J2: a read-only server whose tools say nothing is shown with the reason, and read_tools names its reads', async () => {
    await using design = await startDesign({ 'executor.yaml': 'executor.yaml' })
    const caller = await callerOf(design)
    await until(async () => (await caller.call('server_health', { server: 'reports' })).includes('healthy'), {
      what: 'the server to be listed',
    })
    const { servers } = JSON.parse(await caller.call('list_servers'))
    const shown = servers.find(({ name }: { name: string }) => name === 'reports')
    expect(shown).toMatchObject({ status: 'healthy', tools: 0 })
    const health = JSON.parse(await caller.call('server_health', { server: 'reports' }))
    const lines = design.log.lines.map((line) => JSON.stringify(line))
    const logged = lines.filter((line) => line.includes('reports') && line.includes('readTools'))
    expect(logged).toHaveLength(1)
    for (const said of [shown.reason, health.reason, ...logged]) {
      expect(said).toMatch(/read-only.*readTools.*readOnlyHint/)
    }
    await design.change('executor.yaml', (text) => text.replace('/database\n', '/database\n    read_tools: [query]\n'))
    await until(async () => (await namesOf(caller, 'reports')).length === 1, { what: 'the read' })
    expect(await caller.call('reports__query', { query: 'select 1' })).toMatch(/^query/)
    expect(await caller.call('reports__execute_raw_sql', { sql: 'select 1' })).toBe('WRITE_NOT_ALLOWED')
  })

  test('J2: an agent that may only read sees and runs reads, directly and through meta-tools', async () => {
    const agents = { jobs: { allow: { servers: ['*'] }, readOnly: true } }
    await using design = await startDesign(
      { 'executor.yaml': 'executor.yaml' },
      { agents, mcpServers: { intake: { trustAnnotations: true } }, sandbox: { minIsolation: 'worker' } },
    )
    const caller = await callerOf(design, 'jobs')
    expect(await namesOf(caller, 'intake')).toEqual(['intake__get_ticket'])
    expect(await caller.call('intake__get_ticket')).toBe('get_ticket 1')
    expect(await caller.call('intake__close_ticket')).toBe('WRITE_NOT_ALLOWED')
    expect(await caller.call('execute_tool', { server: 'intake', tool: 'close_ticket', args: {} })).toBe(
      'WRITE_NOT_ALLOWED',
    )
    const batch = { calls: [{ server: 'intake', tool: 'close_ticket', args: {} }] }
    expect(await caller.call('execute_tools', batch)).toContain('WRITE_NOT_ALLOWED')
    const tries = ['get_ticket', 'close_ticket'].map(
      (tool) => `await tools.intake.${tool}({}).then(() => 'reached', (error) => error.code)`,
    )
    const ran = JSON.parse(await caller.call('execute_code', { code: `[${tries.join(', ')}]` }))
    // Whatever is not shown to an agent cannot be found by its programs either.
    expect(ran.value).toEqual(['reached', expect.stringMatching(/^(WRITE_NOT_ALLOWED|TOOL_NOT_FOUND)$/)])
    expect(design.tickets.called).toEqual(['get_ticket', 'get_ticket'])
  })
})

describe('a TOML file with tool_forwarding', () => {
  test('F1, F2, F7, F9, F13: it does what its text says', async () => {
    await using design = await startDesign({ 'server.toml': 'forwarding.toml' })
    const caller = await callerOf(design)
    const note = join(design.notes, 'note.txt')

    // Names: those of the map, all others with the prefix; namespaces that are not allowed and blocked tools are not there.
    const files = await namesOf(caller, 'filesystem')
    expect(files).toEqual(expect.arrayContaining(['read_note', 'filesystem__write_file', 'filesystem__list_directory']))
    for (const gone of ['filesystem__move_file', 'filesystem__edit_file']) expect(files).not.toContain(gone)
    expect(await namesOf(caller, 'tickets')).toContain('ticket')
    expect(await namesOf(caller, 'memory')).toEqual([])
    expect(await caller.call('memory__read_graph')).toBe('NAMESPACE_NOT_ALLOWED')
    expect(await caller.call('filesystem__move_file', { source: note, destination: `${note}2` })).toBe('TOOL_BLOCKED')

    // Native tools are usable beside the forwarded ones.
    expect((await namesOf(caller, 'native')).length).toBeGreaterThan(0)
    expect(await caller.call('native::hash', { data: 'abc', algorithm: 'md5' })).toContain('900150983cd24fb0')

    // A second read comes from the cache, and the log says what is cached.
    expect(await caller.call('read_note', { path: note })).toBe('hello')
    await writeFile(note, 'changed behind its back')
    expect(await caller.call('read_note', { path: note })).toBe('hello')
    expect(await caller.call('ticket', { id: '1' })).toBe('get_ticket 1')
    expect(await caller.call('ticket', { id: '1' })).toBe('get_ticket 1')
    expect(JSON.stringify(design.log.lines)).toContain('tools of filesystem with readOnlyHint')

    // Authenticated callers may write; what was written is read again.
    const written = await caller.call('filesystem__write_file', { path: note, content: 'new' })
    expect(written).toContain('Successfully')
    expect(await readFile(note, 'utf8')).toBe('new')
    expect(await caller.call('read_note', { path: note })).toBe('new')

    // Paths stay in the folder that the file gives to the server.
    for (const path of ['/etc/passwd', `${design.notes}/../x`, 'note.txt', `${design.notes}/%2e%2e/x`]) {
      expect(await caller.call('read_note', { path }), path).toBe('INVALID_PATH')
    }
    expect(await caller.call('tickets__attach_file', { path: '../../etc/passwd' })).toBe('INVALID_PATH')
    expect(await caller.call('tickets__attach_file', { path: '/data/a.txt' })).toMatch(/^attach_file/)

    // A database gets one statement at a time.
    const called = design.tickets.called.length
    for (const sql of ['select 1; drop table x', 'select 1 -- \n; drop table x', "select 'a", '']) {
      expect(await caller.call('database__execute_raw_sql', { sql }), sql).toBe('UNSAFE_SQL')
      expect(await caller.call('database::query', { query: sql }), sql).toBe('UNSAFE_SQL')
    }
    expect(design.tickets.called.length).toBe(called)
    expect(await caller.call('database::execute_raw_sql', { sql: 'select 1' })).toMatch(/^execute_raw_sql/)
    expect(await caller.call('database__query', { query: "insert into t values ('a')" })).toMatch(/^query/)

    // The file lists one more tool to cache, which says nothing itself. The third call within a minute is one too many.
    const counted = await caller.call('tickets__count_tickets')
    expect(counted).toMatch(/^count_tickets/)
    expect(await caller.call('tickets__count_tickets')).toBe(counted)
    expect(await caller.call('tickets__count_tickets')).toBe('RATE_LIMITED')
  })

  test('F8: the default limit is of each namespace without its own, and of no native or meta-tool', async () => {
    await using design = await startDesign({ 'server.toml': 'forwarding.toml' })
    const caller = await callerOf(design)
    const limitedOf = async (name: string, args: object) => {
      const answers = await Promise.all(Array.from({ length: 25 }, () => caller.call(name, args)))
      return answers.filter((answer) => answer === 'RATE_LIMITED').length
    }
    expect(await limitedOf('native::hash', { data: 'abc', algorithm: 'md5' })).toBe(0)
    expect(await limitedOf('list_servers', {})).toBe(0)
    expect(await limitedOf('read_note', { path: join(design.notes, 'note.txt') })).toBe(0)
    expect(await limitedOf('database__query', { query: 'select 1' })).toBe(5)
    expect(await caller.call('tickets__close_ticket')).toBe('close_ticket 21')
  })

  test('W12: limits are those of a client, also where two clients have keys of one agent', async () => {
    const keys = ['one', 'two'].map((id) => keyFor(id, ['default']))
    await using design = await startDesign(
      { 'server.toml': 'forwarding.toml' },
      { auth: { keys: keys.map(({ configured }) => configured) } },
    )
    const [one, two] = await Promise.all(keys.map(({ key }) => callerOf({ ...design, token: key })))
    const count = (caller = one) => caller?.call('tickets__count_tickets')
    const counted = await count()
    expect([await count(), await count()]).toEqual([counted, 'RATE_LIMITED'])
    expect(await count(two)).toMatch(/^count_tickets/)
    const { considered } = await design.gateway.why('default', 'tickets__count_tickets')
    expect(JSON.stringify(considered)).toContain('each client')
  })

  test('F12: a read that times out is sent once more within its time, and a write is not', async () => {
    const more = { mcpServers: { tickets: { timeout: '1s' } } }
    await using design = await startDesign({ 'server.toml': 'forwarding.toml' }, more)
    const caller = await callerOf(design)
    const late = ['ticket', 'tickets__close_ticket'].map((name) => caller.call(name, { id: 'late' }))
    expect(await Promise.all(late)).toEqual([expect.stringMatching(/^get_ticket/), 'TIMEOUT'])
    expect([...design.tickets.called].sort()).toEqual(['close_ticket', 'get_ticket', 'get_ticket'])
  })

  test('F7: auth_required keeps anonymous callers from the tools that it names, and from no others', async () => {
    await using design = await startDesign({ 'server.toml': 'forwarding.toml' }, { auth: { token: 'none' } })
    const caller = await callerOf(design)
    const note = join(design.notes, 'note.txt')
    expect(await caller.call('read_note', { path: note })).toBe('hello')
    expect(await caller.call('filesystem__write_file', { path: note, content: 'x' })).toBe('AUTH_REQUIRED')
    expect(await caller.call('tickets__close_ticket')).toBe('AUTH_REQUIRED')
    expect(await namesOf(caller, 'filesystem')).not.toContain('filesystem__write_file')
    expect(await readFile(note, 'utf8')).toBe('hello')
  })
})

describe('two JSON files, servers and rules', () => {
  const pair = { '.mcp.json': 'mcp.json', '.mcp-gateway-rules.json': 'mcp-gateway-rules.json' }

  test('G6, G7: a tool needs its server and itself allowed; a caller without an agent may use nothing', async () => {
    await using design = await startDesign(pair)
    const path = join(design.notes, 'note.txt')
    const researcher = await callerOf(design, 'researcher')
    const files = await namesOf(researcher, 'filesystem')
    expect(files).toContain('filesystem__read_text_file')
    for (const gone of ['filesystem__write_file', 'filesystem__read_media_file']) expect(files).not.toContain(gone)
    expect(await researcher.call('filesystem__read_text_file', { path })).toBe('hello')
    expect(await researcher.call('filesystem__write_file', { path, content: 'x' })).toBe('DENIED_BY_POLICY')
    // Its tool is listed, its server is not.
    expect(await namesOf(researcher, 'memory')).toEqual([])
    expect(await researcher.call('memory__read_graph')).toBe('DENIED_BY_POLICY')
    expect(await researcher.call('execute_tool', { server: 'memory', tool: 'read_graph', args: {} })).toBe(
      'DENIED_BY_POLICY',
    )
    expect(JSON.stringify(design.log.lines)).toContain('agents.researcher.allow.tools.memory has no effect')

    const backend = await callerOf(design, 'backend')
    expect(await backend.call('memory__read_graph')).toContain('entities')
    expect(await backend.call('filesystem__write_file', { path, content: 'x' })).toBe('DENIED_BY_POLICY')
    // Inherits the servers of its parent, and narrows the tools.
    const reader = await callerOf(design, 'backend.reader')
    expect(await reader.call('memory__read_graph')).toContain('entities')
    expect(await reader.call('memory__create_entities', { entities: [] })).toBe('DENIED_BY_POLICY')

    const nobody = await callerOf(design)
    expect(await namesOf(nobody, 'filesystem')).toEqual([])
    expect(await nobody.call('filesystem__read_text_file', { path })).not.toBe('hello')
  })

  test('F11, G9: records name what meta-tools were asked for, and figures tell agents and operations apart', async () => {
    await using design = await startDesign(pair, { audit: { arguments: 'none' } })
    const caller = await callerOf(design, 'researcher')
    const { call } = caller
    const path = join(design.notes, 'note.txt')
    const files = await namesOf(caller, 'filesystem')
    // A refused lookup of a tool that is not known yet is no call, and counted only where it was asked for.
    expect(await namesOf(await callerOf(design, 'backend'), 'memory')).not.toEqual([])
    await call('list_servers')
    await call('get_server_tools', { server: 'filesystem', pattern: 'read_*' })
    await call('filesystem__read_text_file', { path })
    await call('execute_tool', { server: 'filesystem', tool: 'read_text_file', args: { path } })
    await call('execute_tool', { server: 'memory', tool: 'read_graph', args: {} })

    const ofMetaTools = () => endedIn(design.folder).filter(({ server }) => server === 'toolway')
    await until(() => ofMetaTools().length === 4, { what: 'four records' })
    const records = ofMetaTools()
    const reads = files.filter((name) => name.startsWith('filesystem__read_'))
    expect(records).toMatchObject([
      { tool: 'list_servers', decision: 'ALLOW' },
      {
        tool: 'get_server_tools',
        target: 'filesystem',
        decision: 'ALLOW',
        available: files.length,
        returned: reads.length,
      },
      { tool: 'execute_tool', target: 'filesystem', decision: 'ALLOW', is_error: false },
      { tool: 'execute_tool', target: 'memory', decision: 'DENY', reason: 'server_not_allowed' },
    ])
    expect(records.filter((record) => 'arguments' in record)).toEqual([])

    const { rows } = (await asking(originOf(design), design.token)('stats?by=agent-operation')).json
    const figures = (rows as { name: string; calls: number; denials: number }[])
      .filter(({ name }) => name.startsWith('researcher.'))
      .map(({ name, calls, denials }) => [name.slice('researcher.'.length), calls, denials])
    const expected = { list_servers: [1, 0], get_server_tools: [1, 0], execute_tool: [2, 1], call_tool: [3, 1] }
    expect(Object.fromEntries(figures.map(([name, ...counts]) => [name, counts]))).toEqual(expected)
    const headers = { authorization: `Bearer ${design.token}` }
    const { text } = await rawRequest(originOf(design), { path: '/metrics', method: 'GET', headers })
    for (const operation of Object.keys(expected)) {
      const answered = { agent: 'researcher', operation, outcome: 'answered' }
      expect(sampled(text, 'toolway_agent_calls_total', answered), operation).toBe(operation === 'call_tool' ? 2 : 1)
    }
  })

  test('G8: a server that is removed from the rules, or the servers, is gone for its callers', async () => {
    await using design = await startDesign(pair)
    const path = join(design.notes, 'note.txt')
    const researcher = await callerOf(design, 'researcher')
    const backend = await callerOf(design, 'backend')
    expect(await researcher.call('filesystem__read_text_file', { path })).toBe('hello')
    expect(await backend.call('memory__read_graph')).toContain('entities')

    await design.change('.mcp-gateway-rules.json', (text) => text.replace('"servers": ["filesystem"]', '"servers": []'))
    await until(async () => (await researcher.call('filesystem__read_text_file', { path })) === 'DENIED_BY_POLICY', {
      what: 'the server to be revoked',
    })
    expect(await namesOf(researcher, 'filesystem')).toEqual([])
    expect(await backend.call('filesystem__read_text_file', { path })).toBe('hello')

    await design.change('.mcp.json', (text) => {
      const { mcpServers } = JSON.parse(text)
      return JSON.stringify({ mcpServers: { filesystem: mcpServers.filesystem } })
    })
    await until(async () => (await namesOf(backend, 'memory')).length === 0, { what: 'memory to go' })
    expect(await backend.call('memory__read_graph')).toMatch(/^(TOOL|SERVER)_NOT_FOUND$/)
  })
})

describe('two JSON files, and a server that keeps its user in its process', () => {
  const files = { '.mcp.json': 'sessions.json', '.mcp-gateway-rules.json': 'sessions-rules.json' }
  const agents = ['alice', 'bob'] as const

  /** One session in which each call may name another agent. */
  async function openSession(design: Endpoint) {
    const session = await callerOf(design)
    const execute = (agent: string, tool: string, args: object = {}, server = 'db') =>
      session.call('execute_tool', { agent_id: agent, server, tool, args })
    return { ...session, execute }
  }

  test('W1, G3: agents that calls of one session name never meet in a server process', async () => {
    await using design = await startDesign(files, { sandbox: { minIsolation: 'worker' } })
    const { call, execute } = await openSession(design)
    expect(await execute('alice', 'login', { user: 'alice' })).toBe('alice')
    expect(await execute('bob', 'whoami')).toBe('nobody')
    expect(await execute('bob', 'login', { user: 'bob' })).toBe('bob')
    // Also not in a batch, in a program, or as a tool that the server added for one of them.
    for (const agent of agents) {
      const calls = [{ server: 'db', tool: 'whoami', args: {} }]
      expect(await call('execute_tools', { agent_id: agent, calls })).toContain(`"text":"${agent}"`)
      const code = 'await tools.db.whoami({})'
      expect(JSON.parse(await execute(agent, 'execute_code', { code }, 'native')).value).toBe(agent)
      await until(async () => (await execute(agent, `files_of_${agent}`)) === agent, { what: 'the new tool' })
      const [other] = agents.filter((one) => one !== agent)
      expect(await execute(agent, `files_of_${other}`)).toBe('TOOL_NOT_FOUND')
    }
    // The same agent in another session is another caller.
    expect(await (await callerOf(design, 'alice')).call('db__whoami')).toBe('nobody')
  })

  test.each(['v1', 'modern'] as const)(
    'W1: to a %s client, an agent is the same caller however a call names it',
    async (kind) => {
      await using design = await startDesign(files)
      await using client = await connectCaller(kind, design)
      const args = { agent_id: 'alice', server: 'db', tool: 'login', args: { user: 'alice' } }
      await client.call('execute_tool', args)
      const as = (agent: string) => ({ _meta: { 'dev.toolway/agent': agent } })
      const read = { uri: 'toolway://db/login://user' }
      for (const [agent, user] of [
        ['alice', 'alice'],
        ['bob', 'nobody'],
      ] as const) {
        const called = await client.request('tools/call', { name: 'db__whoami', arguments: {}, ...as(agent) })
        const content = await client.request('resources/read', { ...read, ...as(agent) })
        for (const result of [called, content]) expect(JSON.stringify(result)).toContain(`"text":"${user}"`)
      }
    },
  )

  test('G3: thirty executions at once do not mix their contexts', async () => {
    await using design = await startDesign(files)
    const { execute } = await openSession(design)
    const names = Array.from({ length: 15 }, (_, count) => `user-${count}`)
    const work = (server: string) => async (user: string, count: number) =>
      execute(agents[count % 2] as string, 'work_as', { user }, server)
    // One execution of each agent at a time: agents have processes of their own.
    for (const [first, second] of [
      ['a', 'b'],
      ['c', 'd'],
    ] as const) {
      const both = [execute('alice', 'work_as', { user: first }), execute('bob', 'work_as', { user: second })]
      expect(await Promise.all(both)).toEqual([first, second])
    }
    for (const agent of agents) await execute(agent, 'login', { user: agent })
    const all = Array.from({ length: 30 }, (_, count) => agents[count % 2] as string)
    expect(await Promise.all(all.map((agent) => execute(agent, 'whoami')))).toEqual(all)
    // With `session: call`, each execution has a process of its own.
    const users = [...names, ...names]
    expect(await Promise.all(users.map(work('each')))).toEqual(users)
    expect(await execute('alice', 'whoami', {}, 'each')).toBe('nobody')
  })
})

describe('files with servers only', () => {
  test('T1, T2: a TOML file with [mcp] proxies calls to its servers', async () => {
    await using design = await startDesign({ 'registry.toml': 'registry.toml' })
    const caller = await callerOf(design)
    expect(await caller.call('memory__read_graph')).toContain('entities')
    expect(await caller.call('tickets__close_ticket')).toBe('close_ticket 1')
    expect(await caller.call('execute_tool', { server: 'nowhere', tool: 'x', args: {} })).toBe('SERVER_NOT_FOUND')
    expect(await caller.call('native::hash', { data: 'abc', algorithm: 'md5' })).toContain('900150983cd24fb0')
  })

  test.each(['::', '.'])(
    'T1, F3: the name of the gateway may stand in front of its servers and meta-tools, with separator %s',
    async (separator) => {
      const naming = { gateway: 'toolhive-gateway', separator }
      await using design = await startDesign({ 'registry.toml': 'registry.toml' }, { naming })
      const caller = await callerOf(design)
      expect(await namesOf(caller, 'tickets')).toContain(`tickets${separator}get_ticket`)
      const spellings = ['toolhive-gateway.tickets.get_ticket', 'toolhive-gateway_tickets_get_ticket']
      for (const name of [...spellings, 'tickets.get_ticket', 'tickets::get_ticket']) {
        expect(await caller.call(name), name).toMatch(/^get_ticket/)
      }
      for (const name of ['list_servers', 'toolhive-gateway.list_servers', 'toolhive-gateway_list_servers']) {
        expect(await caller.call(name), name).toContain('"name":"tickets"')
      }
      expect(await caller.call('toolhive-gateway.nowhere.x')).toBe('SERVER_NOT_FOUND')
      expect(design.loaded.warnings.join()).toContain('naming.separator')
    },
  )

  test('G1: a plain file with mcpServers serves them to the single user', async () => {
    await using design = await startDesign({ 'claude_desktop_config.json': 'mcp.json' })
    const caller = await callerOf(design)
    expect(await caller.call('filesystem__read_text_file', { path: join(design.notes, 'note.txt') })).toBe('hello')
    expect(await caller.call('memory__read_graph')).toContain('entities')
  })
})
