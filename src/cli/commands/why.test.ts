import { describe, expect, test } from 'vitest'
import { folder } from '../folder.fixture.ts'
import { toolway } from '../shell.fixture.ts'

const config = {
  agents: {
    team: { allow: { servers: ['native'] }, deny: { tools: { native: ['h*'] } } },
    'team.junior': {},
  },
}

describe('B11: why', () => {
  test('tells that an agent may use a tool, by which rule, and what was considered', async () => {
    await using place = await folder({ 'toolway.json': config })
    const { code, stdout } = await toolway(['why', 'team', 'native__time'], place)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^team may use native\.time\nrule: agents\.team\.allow\.servers\[0\]\n/)
    expect(stdout).toMatch(/implicit grant +agents\.team\.allow\.servers\[0\] +allows/)
  })

  test('tells that it may not, ends with 4, and names inherited rules', async () => {
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

  test('without agents everybody may use everything', async () => {
    await using place = await folder({})
    const { stdout } = await toolway(['why', 'anybody', 'native.hash'], place)
    expect(stdout).toContain('rule: agents (none configured)')
  })
})

describe('G7: --agent', () => {
  test('lists and calls as the agent that is named', async () => {
    await using place = await folder({ 'toolway.json': config })
    const { stdout } = await toolway(['tools', '--agent', 'team', '--server', 'native', '--json'], place)
    expect(JSON.parse(stdout).tools.map(({ tool }: { tool: string }) => tool)).toEqual(['time'])
    const call = (agent: string) => toolway(['call', 'native.hash', 'data=x', '--agent', agent], place)
    expect(await call('team')).toMatchObject({ code: 4, stderr: expect.stringContaining('DENIED_BY_POLICY') })
    expect(await call('nobody')).toMatchObject({ code: 4, stderr: expect.stringContaining('INVALID_AGENT_ID') })
  })

  test('where none is named and none is the default, it says so', async () => {
    await using place = await folder({ 'toolway.json': config })
    const { code, stderr } = await toolway(['call', 'native.hash', 'data=x'], place)
    expect([code, stderr]).toEqual([4, expect.stringContaining('NO_FALLBACK_CONFIGURED')])
    expect(stderr).toContain('--agent')
  })
})

test('B11: an operator sees every server, whatever the agents may use', async () => {
  await using place = await folder({ 'toolway.json': config })
  const { stdout } = await toolway(['servers', '--json'], place)
  expect(JSON.parse(stdout).servers).toMatchObject([{ name: 'native', tools: 2 }])
})
