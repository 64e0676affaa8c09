import { describe, expect, test } from 'vitest'
import { stdioServers } from '../../../tests/fixtures/servers.ts'
import { folder } from '../folder.fixture.ts'
import { toolway } from '../kit.fixture.ts'

const config = {
  agents: {
    team: { allow: { servers: ['native'] }, deny: { tools: { native: ['h*'] } } },
    'team.junior': {},
  },
}

describe('B11: why', () => {
  test('shows that an agent may use a tool, by which rule, and what was considered', async () => {
    await using place = await folder({ 'toolway.json': config })
    const { code, stdout } = await toolway(['why', 'team', 'native__time'], place)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^team may use native\.time\nrule: agents\.team\.allow\.servers\[0\]\n/)
    expect(stdout).toMatch(/implicit grant +agents\.team\.allow\.servers\[0\] +allows/)
  })

  test('shows that it may not, exits with 4, and names inherited rules', async () => {
    await using place = await folder({ 'toolway.json': config })
    const { code, stdout } = await toolway(['why', 'team.junior', 'native.hash', '--json'], place)
    expect(code).toBe(4)
    expect(JSON.parse(stdout)).toMatchObject({
      agent: 'team.junior',
      server: 'native',
      tool: 'hash',
      allowed: false,
      code: 'DENIED_BY_POLICY',
      rule: 'agents.team.deny.tools.native[0]',
    })
  })

  test('names near misses of agents and tools', async () => {
    await using place = await folder({ 'toolway.json': config })
    const agent = await toolway(['why', 'taem', 'native.hash'], place)
    expect(agent.code).toBe(4)
    expect(agent.stderr).toContain('did you mean "team"?')
    const tool = await toolway(['why', 'team', 'native.tme'], place)
    expect([tool.code, tool.stderr]).toEqual([2, expect.stringContaining('TOOL_NOT_FOUND')])
  })

  test('without agents every caller may use every tool', async () => {
    await using place = await folder({})
    const { stdout } = await toolway(['why', 'anybody', 'native.hash'], place)
    expect(stdout).toContain('rule: agents (none configured)')
  })
})

describe('B11: why without a credential', () => {
  const guarded = { ...config, policy: { requireAuth: ['native.time'] } }
  const open = { ...guarded, auth: { token: 'none' } }

  test('shows with --anonymous the decision for a caller without a credential', async () => {
    await using place = await folder({ 'toolway.json': guarded })
    const { code, stdout } = await toolway(['why', 'team', 'native.time', '--anonymous'], place)
    expect(code).toBe(4)
    expect(stdout).toMatch(/^team, without a credential, may not use native\.time\nrule: policy\.requireAuth\[0\]\n/)
    expect(stdout).toContain('Anonymous callers are not admitted')
    const json = await toolway(['why', 'team', 'native.time', '--anonymous', '--json'], place)
    expect(JSON.parse(json.stdout)).toMatchObject({ authenticated: false, allowed: false, code: 'AUTH_REQUIRED' })
  })

  test('if no credential is required it says so, and shows what differs for anonymous callers', async () => {
    await using place = await folder({ 'toolway.json': open })
    const { code, stdout } = await toolway(['why', 'team', 'native.time'], place)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^team may use native\.time\n/)
    expect(stdout).toContain('as anonymous (auth.token: none) and may not use it: policy.requireAuth[0]\n')
    const same = await toolway(['why', 'team', 'native.hash'], place)
    expect(same.stdout).toContain('as anonymous (auth.token: none); the same applies to them.\n')
    const json = await toolway(['why', 'team', 'native.time', '--json'], place)
    expect(JSON.parse(json.stdout)).toMatchObject({
      authenticated: true,
      allowed: true,
      anonymous: { allowed: false, code: 'AUTH_REQUIRED', rule: 'policy.requireAuth[0]' },
    })
  })

  test('if a credential is required, anonymous callers are not mentioned', async () => {
    await using place = await folder({ 'toolway.json': guarded })
    expect((await toolway(['why', 'team', 'native.time'], place)).stdout).not.toContain('nonymous')
    expect((await toolway(['why', 'team', 'native.time', '--json'], place)).stdout).not.toContain('nonymous')
  })

  test('callers without a key act only as the default agent', async () => {
    const keys = [{ id: 'ci', hash: `sha256:${'0'.repeat(64)}`, agents: ['team'] }]
    const auth = { token: 'none', keys }
    await using place = await folder({ 'toolway.json': { ...config, auth, defaults: { agent: 'team.junior' } } })
    const { stdout } = await toolway(['why', 'team', 'native.time'], place)
    expect(stdout).toContain('as anonymous (auth.token: none) and may not use it: auth.token\n')
    const asked = await toolway(['why', 'team', 'native.time', '--anonymous', '--json'], place)
    expect(asked.code).toBe(4)
    expect(JSON.parse(asked.stdout)).toMatchObject({ code: 'INVALID_AGENT_ID', rule: 'auth.token' })
    const fallback = await toolway(['why', 'team.junior', 'native.time', '--anonymous'], place)
    expect(fallback.code).toBe(0)
  })
})

test('B11: why shows approvals and limits that still apply to an allowed tool', async () => {
  const probe = { ...stdioServers.probe(), approve: ['x', 'ech*'] }
  await using place = await folder({
    'toolway.json': { mcpServers: { probe }, limits: { servers: { probe: 60 } }, policy: { blockedTools: ['*.pid'] } },
  })
  const { code, stdout } = await toolway(['why', 'anybody', 'probe.echo'], place)
  expect(code).toBe(0)
  expect(stdout).toMatch(/^approval +mcpServers\.probe\.approve\[1\] +passes +a person must approve/m)
  expect(stdout).toMatch(/^limit +limits\.servers\.probe +passes +60 calls per minute to the server probe/m)
  const json = await toolway(['why', 'anybody', 'probe.echo', '--json'], place)
  expect(JSON.parse(json.stdout).considered).toContainEqual(
    expect.objectContaining({ step: 'approval', rule: 'mcpServers.probe.approve[1]', outcome: 'passes' }),
  )
  const refused = await toolway(['why', 'anybody', 'probe.pid', '--json'], place)
  expect(JSON.parse(refused.stdout).considered.at(-1)).toMatchObject({ outcome: 'denies' })
})

test('B11: why shows a server that is closed to the agent, even before its tools are known', async () => {
  await using place = await folder({ 'toolway.json': { ...config, mcpServers: { probe: stdioServers.probe() } } })
  const { code, stdout } = await toolway(['why', 'team', 'probe.echo', '--json'], place)
  expect(code).toBe(4)
  expect(JSON.parse(stdout)).toMatchObject({ server: 'probe', tool: 'echo', rule: 'agents.team (default deny)' })
})

test('B11: why suggests agents for an unknown one', async () => {
  await using place = await folder({ 'toolway.json': config })
  const { code, stderr } = await toolway(['why', 'stranger', 'native.hash'], place)
  expect(code).toBe(4)
  expect(stderr).toContain('There is no agent "stranger"; use team or team.junior.\n')
})

describe('G7: --agent', () => {
  test('lists and calls as the named agent', async () => {
    await using place = await folder({ 'toolway.json': config })
    const { stdout } = await toolway(['tools', '--agent', 'team', '--server', 'native', '--json'], place)
    const listed = JSON.parse(stdout).tools.map(({ tool }: { tool: string }) => tool)
    expect(listed).toContain('time')
    expect(listed).not.toContain('hash')
    const call = (agent: string) => toolway(['call', 'native.hash', 'data=x', '--agent', agent], place)
    expect(await call('team')).toMatchObject({ code: 4, stderr: expect.stringContaining('DENIED_BY_POLICY') })
    expect(await call('nobody')).toMatchObject({ code: 4, stderr: expect.stringContaining('INVALID_AGENT_ID') })
  })

  test('without an agent and a default agent the error says so', async () => {
    await using place = await folder({ 'toolway.json': config })
    const { code, stderr } = await toolway(['call', 'native.hash', 'data=x'], place)
    expect([code, stderr]).toEqual([4, expect.stringContaining('NO_FALLBACK_CONFIGURED')])
    expect(stderr).toContain('--agent')
  })
})

test('B11: an operator sees every server, whatever the agents may use', async () => {
  await using place = await folder({ 'toolway.json': config })
  const { stdout } = await toolway(['servers', '--json'], place)
  expect(JSON.parse(stdout).servers).toMatchObject([{ name: 'native', tools: 4 }])
})
