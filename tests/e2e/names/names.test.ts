import { describe, expect, test } from 'vitest'
import { connect, type Sdk } from '../../fixtures/clients.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

const discovery = { listDeadline: '20s' }

// At once, because each test has a gateway of its own and waits for its servers.
describe.concurrent('two servers with the same tools', () => {
  const twins = (priorities: { one: number; two: number }) => ({
    one: { ...stdioServers.everything(), priority: priorities.one },
    two: { ...stdioServers.everything(), priority: priorities.two },
  })

  test('F2: with flat names the priority decides; the loser is logged and keeps its prefixed name', async () => {
    await using toolway = await startToolway({
      mcpServers: { ...twins({ one: 1, two: 5 }), impostor: stdioServers.probe({ extra: ['hash', 'list_servers'] }) },
      naming: { strategy: 'flat' },
      discovery,
    })
    await using client = await connect('v2', { endpoint: toolway })
    const tools = await client.listTools()
    const server = (name: string) => tools.find((tool) => tool.name === name)?._meta?.['dev.toolway/server']
    expect(server('get-sum')).toBe('two')
    expect(server('one__get-sum')).toBe('one')
    expect(server('hash')).toBe('native')
    expect(server('list_servers')).toBe('toolway')
    expect(server('impostor__hash')).toBe('impostor')
    for (const name of ['get-sum', 'one__get-sum', 'two.get-sum', 'one.get-sum']) {
      const { content } = await client.callTool(name, { a: 1, b: 2 })
      expect(content).toEqual([{ type: 'text', text: 'The sum of 1 and 2 is 3.' }])
    }
    const warned = toolway.log.lines.filter(({ level }) => level === 'warn').map((line) => JSON.stringify(line))
    expect(warned).toContainEqual(expect.stringMatching(/get-sum/))
    expect(warned).toContainEqual(expect.stringMatching(/impostor/))
  })

  test('F2: with custom names an alias serves, and what has none is named as with prefix', async () => {
    await using toolway = await startToolway({
      mcpServers: { one: stdioServers.probe(), two: stdioServers.probe() },
      naming: { strategy: 'custom', aliases: { 'one.echo': 'say', 'two.state': 'tell' } },
      discovery,
    })
    await using client = await connect('v1', { endpoint: toolway })
    const names = (await client.listTools()).map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['say', 'two__echo', 'one__state', 'tell']))
    expect(names).not.toContain('one__echo')
    for (const name of ['say', 'one.echo', 'one__echo']) {
      expect((await client.callTool(name, { message: name })).content).toEqual([
        { type: 'text', text: `Echo: ${name}` },
      ])
    }
  })

  test('F3: a server’s own URI is read and subscribed to, listed or expanded from a template', async () => {
    const mcpServers = { everything: stdioServers.everything(), resource: stdioServers.probe() }
    await using toolway = await startToolway({ mcpServers, discovery })
    await using client = await connect('v1', { endpoint: toolway })
    for (const uri of ['demo://resource/dynamic/text/1', 'demo://resource/static/document/features.md']) {
      expect((await client.readResource(uri)).contents).toHaveLength(1)
      expect(await client.request('resources/subscribe', { uri })).toEqual({})
    }
  })

  test('F3: another separator', async () => {
    await using toolway = await startToolway({
      mcpServers: { one: stdioServers.probe() },
      naming: { separator: '-x-' },
      discovery,
    })
    await using client = await connect('v2', { endpoint: toolway })
    expect((await client.listTools()).map(({ name }) => name)).toContain('one-x-echo')
    for (const name of ['one-x-echo', 'one__echo', 'one.echo']) {
      expect((await client.callTool(name, { message: name })).content).toEqual([
        { type: 'text', text: `Echo: ${name}` },
      ])
    }
  })
})

test.concurrent('B1: long and unusual names are served in 64 characters, the same whatever else is connected', async () => {
  const long = 'a'.repeat(100)
  const extra = [`${long}1`, `${long}2`, 'käse/ünïcode', 'with space', '日本語', 'dots.and.dots', 'x'.repeat(60)]
  const probe = { probe: stdioServers.probe({ extra }) }
  const servedBy = async (mcpServers: Record<string, Readonly<Record<string, unknown>>>) => {
    await using toolway = await startToolway({ mcpServers, discovery })
    await using client = await connect('v2', { endpoint: toolway })
    const tools = await client.listTools()
    const own = tools.filter(({ description }) => extra.some((name) => description === `Probe: ${name}`))
    for (const { name } of own.filter(({ _meta }) => _meta?.['dev.toolway/server'] === 'probe')) {
      expect((await client.callTool(name, { message: 'ok' })).content).toEqual([{ type: 'text', text: 'Echo: ok' }])
    }
    for (const { name } of tools) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
    expect(new Set(tools.map(({ name }) => name)).size).toBe(tools.length)
    return own.filter(({ _meta }) => _meta?.['dev.toolway/server'] === 'probe').map(({ name }) => name)
  }
  const [alone, beside] = await Promise.all([
    servedBy(probe),
    servedBy({ another: stdioServers.probe({ extra }), ...probe }),
  ])
  expect(alone).toHaveLength(extra.length)
  expect(beside).toEqual(alone)
})

describe.concurrent.each<Sdk>(['v1', 'v2'])('a server that gets a new tool, seen by the client %s', (sdk) => {
  test('F4: the client gets list_changed and sees it', async () => {
    await using toolway = await startToolway({ mcpServers: { probe: stdioServers.probe() }, discovery })
    await using client = await connect(sdk, { endpoint: toolway })
    const names = async () => ((await client.request('tools/list')).tools as { name: string }[]).map(({ name }) => name)
    let seen = false
    // A client that is notified must find the change in the list.
    client.onNotification('notifications/tools/list_changed', async () => {
      seen ||= (await names()).includes('probe__fresh')
    })
    expect(await names()).not.toContain('probe__fresh')
    await client.callTool('probe.grow', { name: 'fresh' })
    await until(() => seen, { what: 'list_changed, and the new tool in the list' })
    expect((await client.callTool('probe.fresh', { message: 'new' })).content).toEqual([
      { type: 'text', text: 'Echo: new' },
    ])
  })
})
