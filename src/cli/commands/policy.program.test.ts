import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { stdioServers } from '../../../tests/fixtures/servers.ts'
import { folder } from '../folder.fixture.ts'
import { toolway } from '../kit.fixture.ts'

const proposed = {
  agents: { reader: { allow: { tools: { native: ['hash'] } } } },
  defaults: { agent: 'reader' },
}

/** A place where two tools have been called. */
async function used() {
  const place = await folder({ 'toolway.json': {}, 'new.json': proposed })
  for (const words of [
    ['native.hash', 'data=x'],
    ['native.hash', 'data=y'],
    ['native.time', 'name=get_time_utc'],
  ]) {
    await toolway(['call', ...words], place)
  }
  return place
}

describe('B12: policy replay', () => {
  test('shows which recorded calls a proposed policy would deny', async () => {
    await using place = await used()
    const { code, stdout, stderr } = await toolway(['policy', 'replay', '--policy', 'new.json', '--since', '1h'], place)
    expect(code).toBe(0)
    expect(stdout).toMatch(/would now be denied\n.*\n1 +reader +native\.time +agents\.reader \(default deny\)/)
    expect(stderr).toContain('3 recorded calls: 1 would now be denied, 0 would now be allowed.')
  })

  test('exits with 4 with --strict, and prints JSON', async () => {
    await using place = await used()
    const words = ['policy', 'replay', '--policy', 'new.json', '--strict', '--json']
    const { code, stdout } = await toolway(words, place)
    expect(code).toBe(4)
    expect(JSON.parse(stdout)).toMatchObject({
      calls: 3,
      denied: [{ agent: 'reader', server: 'native', tool: 'time', calls: 1, before: 'agents (none configured)' }],
      allowed: [],
    })
    await writeFile(join(place.cwd, 'new.json'), '{}')
    expect((await toolway(words, place)).code).toBe(0)
  })

  test('shows what would now be allowed', async () => {
    const blocking = { policy: { blockedTools: ['native.hash'] } }
    await using place = await folder({ 'toolway.json': blocking, 'new.json': {} })
    await toolway(['call', 'native.hash', 'data=x'], place)
    const { stdout } = await toolway(['policy', 'replay', '--policy', 'new.json', '--json'], place)
    expect(JSON.parse(stdout)).toMatchObject({
      denied: [],
      allowed: [{ tool: 'hash', before: 'policy.blockedTools[0]' }],
    })
  })

  test('judges reads by the proposed readTools, and lists tools that would no longer exist separately', async () => {
    const probe = stdioServers.probe()
    await using place = await folder({
      'toolway.json': {
        mcpServers: { alpha: probe, beta: probe, ro: { ...probe, readOnly: true, readTools: ['pid'] } },
      },
      'new.json': {
        mcpServers: {
          alpha: { ...probe, readOnly: true, readTools: ['echo'], tools: { exclude: ['pid'] } },
          ro: { ...probe, readOnly: true, readTools: ['pid', 'echo'] },
        },
      },
    })
    for (const words of [['alpha.echo', 'message=x'], ['alpha.pid'], ['beta.pid'], ['ro.echo', 'message=x']]) {
      await toolway(['call', ...words], place)
    }
    const words = ['policy', 'replay', '--policy', 'new.json', '--strict']
    const { code, stdout } = await toolway([...words, '--json'], place)
    expect(code).toBe(4)
    expect(JSON.parse(stdout)).toMatchObject({
      calls: 4,
      denied: [],
      allowed: [{ server: 'ro', tool: 'echo', before: 'mcpServers.ro.readOnly' }],
      gone: [
        { server: 'alpha', tool: 'pid', after: 'mcpServers.alpha.tools.exclude[0]' },
        { server: 'beta', tool: 'pid', after: 'mcpServers.beta' },
      ],
    })
    const text = await toolway(words, place)
    expect(text.stdout).toMatch(/would no longer exist\n.*\n1 +default +alpha\.pid +mcpServers\.alpha\.tools\.exclude/)
    expect(text.stderr).toContain('0 would now be denied, 1 would now be allowed, 2 would fail')
  })

  test('a missing file, an invalid time and a missing log are reported', async () => {
    await using place = await folder({ 'toolway.json': {}, 'new.json': {} })
    expect((await toolway(['policy', 'replay', '--policy', 'gone.json'], place)).code).toBe(2)
    expect((await toolway(['policy', 'replay'], place)).code).toBe(2)
    const { code, stderr } = await toolway(['policy', 'replay', '--policy', 'new.json'], place)
    expect([code, stderr]).toEqual([0, expect.stringContaining('There is no audit log')])
  })
})
