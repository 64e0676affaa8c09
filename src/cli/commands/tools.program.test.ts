import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { twoServers } from '../everything.fixture.ts'
import { folder } from '../folder.fixture.ts'
import { toolway } from '../kit.fixture.ts'
import { widthOf } from '../table.ts'

describe('B11: tools and servers', () => {
  let place: Awaited<ReturnType<typeof folder>>
  beforeAll(async () => {
    place = await folder({ 'toolway.json': twoServers })
  })
  afterAll(() => place[Symbol.asyncDispose]())

  test('F1: tools lists native and forwarded tools, and notes servers without any', async () => {
    const { code, stdout, stderr } = await toolway(['tools'], place)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^NAME +SERVER +DESCRIPTION\n/)
    expect(stdout).toMatch(/^hash +native +\S/m)
    expect(stdout).toMatch(/^everything__echo +everything +\S/m)
    expect(stderr).toMatch(/^broken has no tools: \S/m)
  })

  test('tools --server --json lists those of one server', async () => {
    const { stdout } = await toolway(['tools', 'list', '--server', 'everything', '--json'], place)
    const { tools } = JSON.parse(stdout)
    expect(tools).toContainEqual(
      expect.objectContaining({ name: 'everything__echo', server: 'everything', tool: 'echo' }),
    )
    expect(new Set(tools.map((tool: { server: string }) => tool.server))).toEqual(new Set(['everything']))
    expect((await toolway(['tools', '--server', 'nowhere'], place)).stderr).toMatch(/^error SERVER_NOT_FOUND: /)
  })

  test('J2: tools --server says why nothing of a server can be used, and which settings change that', async () => {
    const [name, everything] = ['everything', { ...twoServers.mcpServers.everything, readOnly: true }]
    await using readOnly = await folder({ 'toolway.json': { mcpServers: { [name]: everything } } })
    const { code, stderr } = await toolway(['tools', '--server', name], readOnly)
    expect(code).toBe(4)
    expect(stderr).toMatch(/^error WRITE_NOT_ALLOWED: .*readTools.*trustAnnotations/)
    await using denied = await folder({
      'toolway.json': { ...twoServers, agents: { a: { allow: { servers: ['*'] } } } },
    })
    const nobody = await toolway(['tools', '--server', name], denied)
    expect(nobody).toMatchObject({ code: 4, stderr: expect.stringContaining('NO_FALLBACK_CONFIGURED') })
  })

  test('tools show prints the whole definition, its arguments first', async () => {
    const { stdout } = await toolway(['tools', 'show', 'everything.get-sum'], place)
    expect(stdout).toMatch(/^everything__get-sum +get-sum of everything\n/)
    expect(stdout).toMatch(/Arguments\n +NAME +TYPE +REQUIRED +DESCRIPTION\n +a +number +yes +First number\n/)
    expect(stdout).toMatch(/Input schema\n {2}\{\n {4}"/)
    expect(stdout).toContain('toolway call everything.get-sum a=… b=…')
    const json = await toolway(['tools', '--json', 'show', 'everything__get-sum'], place)
    expect(JSON.parse(json.stdout)).toMatchObject({
      name: 'everything__get-sum',
      inputSchema: { properties: { a: { type: 'number' } } },
      _meta: { 'dev.toolway/server': 'everything' },
    })
  })

  test('V15: tools show, why and validate know overrides', async () => {
    const override = { name: 'add', description: 'Adds.', fixed: { b: 1 }, hidden: true }
    const everything = { ...twoServers.mcpServers.everything, tools: { 'get-sum': override, 'get-sun': {} } }
    const config = { mcpServers: { everything }, policy: { blockedTools: ['everything.add'] } }
    await using at = await folder({ 'toolway.json': config })
    const { stdout } = await toolway(['tools', 'show', 'everything.add'], at)
    expect(stdout).toMatch(/^everything__add +get-sum of everything\n/)
    const fields = 'name, description, inputSchema, hidden'
    expect(stdout).toContain(`changed by mcpServers.everything.tools.get-sum: ${fields}\n`)
    expect(stdout).toContain('toolway call everything.add a=…')
    expect((await toolway(['why', 'default', 'everything.add'], at)).stdout).toMatch(
      /^default may use everything\.get-sum, which callers see as add\n/,
    )
    expect((await toolway(['call', 'everything.add', 'a=2'], at)).stdout).toContain('The sum of 2 and 1 is 3')
    const { stdout: valid, stderr } = await toolway(['validate'], at)
    expect(valid + stderr).toContain('rules name the tool everything.get-sum')
    expect(valid + stderr).toContain('everything has no tool get-sun; did you mean "get-sum"?')
  })

  test('B5: descriptions of tools cannot control the terminal, and names that could are not served', async () => {
    const program = `require('node:readline').createInterface(process.stdin).on('line', (line) => {
      const { id, method } = JSON.parse(line)
      const evil = '\\x1b[2J\\u202e'
      const description = 'Greets' + evil
      const inputSchema = { type: 'object', properties: { who: { description } }, required: ['who'] }
      const hidden = { type: 'object', properties: { ['who' + evil]: {} } }
      const protocolVersion = '2025-11-25'
      const result = {
        initialize: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'rude', version: '1' } },
        'tools/list': {
          tools: [
            { name: 'greet', description, inputSchema },
            { name: 'greet' + evil, inputSchema },
            { name: 'hide', inputSchema: hidden },
            { name: 'broken', inputSchema: { type: 'object', $ref: '#/$defs/missing' } },
          ],
        },
      }[method]
      const error = { code: -32601, message: 'no' }
      if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) }))
    })`
    const rude = { command: process.execPath, args: ['-e', program] }
    await using at = await folder({ 'toolway.json': { mcpServers: { rude } } })
    const listed = await toolway(['tools', '--server', 'rude', '--json'], at)
    const { tools } = JSON.parse(listed.stdout)
    expect(tools.map(({ tool }: { tool: string }) => tool)).toEqual(['greet', 'broken'])
    expect(tools[1].problem).toContain('input schema')
    expect(listed.stderr).toContain('broken cannot be used')
    const [{ name }] = tools
    const { stdout } = await toolway(['tools', 'show', name], at)
    const why = await toolway(['why', 'default', name], at)
    expect(stdout).toContain('toolway call rude.greet who=…')
    expect(why.stdout).toContain('may use rude.greet\n')
    expect(stdout + why.stdout).not.toMatch(/[\x1b\u202e]/)
  })

  test('B3: tools --agent lists what a client of that agent is shown, and says that there is more', async () => {
    await using narrow = await folder({
      'toolway.json': { agents: { narrow: { allow: { servers: ['native'] }, expose: 'meta' } } },
    })
    const { stdout, stderr } = await toolway(['tools', '--agent', 'narrow', '--json'], narrow)
    const names = JSON.parse(stdout).tools.map(({ name }: { name: string }) => name)
    expect(names).toContain('find_tool')
    expect(names).not.toContain('hash')
    expect(stderr).toMatch(/expose.*: [1-9]\d*\.$/m)
  })

  test('B8: tools cost shows every mode, the agent, the servers and the largest tools', async () => {
    await using narrow = await folder({
      'toolway.json': { agents: { narrow: { allow: { servers: ['native'] }, expose: 'meta' } } },
    })
    const { code, stdout } = await toolway(['tools', 'cost', '--agent', 'narrow', '--top', '2'], narrow)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^MODE +TOOLS +TOKENS/m)
    expect(stdout).toMatch(/^meta +\d+ +\d+ +.*narrow$/m)
    expect(stdout).toMatch(/^native +\d+ +\d+$/m)
    const cost = JSON.parse(
      (await toolway(['tools', 'cost', '--agent', 'narrow', '--top', '2', '--json'], narrow)).stdout,
    )
    const { direct, meta, both } = cost.modes
    expect(cost).toMatchObject({ agent: 'narrow', expose: 'meta', saved: 0 })
    expect(both).toEqual({ tools: direct.tools + meta.tools, tokens: direct.tokens + meta.tokens })
    expect(cost.tools).toHaveLength(2)
    expect(cost.tools[0].tokens).toBeGreaterThanOrEqual(cost.tools[1].tokens)
    expect(cost.servers.map(({ server }: { server: string }) => server).sort()).toEqual(['native', 'toolway'])
  })

  test('servers connects to each server and shows its state', async () => {
    const { code, stdout } = await toolway(['servers'], place)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^everything +healthy +stdio +20\d\d-\d\d-\d\d +\d+ /m)
    expect(stdout).toMatch(/^broken +unhealthy +stdio +0 +\S/m)
    const json = await toolway(['servers', '--json'], place)
    expect(JSON.parse(json.stdout).servers).toContainEqual(
      expect.objectContaining({ name: 'everything', status: 'healthy', transport: 'stdio', tools: expect.any(Number) }),
    )
  })

  test('B11: servers notes that a server without a response may still be downloading its program', async () => {
    const silent = { command: process.execPath, args: ['-e', 'process.stdin.resume()'] }
    await using slow = await folder({ 'toolway.json': { mcpServers: { silent } } })
    const { stdout } = await toolway(['servers', '--timeout', '100ms'], slow)
    expect(stdout).toMatch(
      /^silent: no response within 0\.1 s \(--timeout\)\. .*`toolway servers --timeout 5m` waits longer\. .*`toolway doctor`/m,
    )
  })

  test('on a terminal the table fits its width, problems are not truncated, and progress goes to stderr', async () => {
    const { stdout, stderr } = await toolway(['servers'], { ...place, columns: 60 })
    const [lines = '', problems = ''] = stdout
      .replace(/\x1b\[\d+m/g, '')
      .trimEnd()
      .split('\n\n')
    for (const line of lines.split('\n')) expect(widthOf(line)).toBeLessThanOrEqual(60)
    expect(problems).not.toContain('…')
    expect(stderr).toMatch(/Waiting for .*everything/)
    expect(stderr.endsWith('\r\x1b[2K')).toBe(true)
  })
})
