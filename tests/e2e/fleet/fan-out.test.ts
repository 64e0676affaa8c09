import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, type Sdk } from '../../fixtures/clients.ts'
import { startRedis } from '../../fixtures/redis.ts'
import { json, type RogueHttp, result, rogueHttp } from '../../fixtures/rogue-http.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { withPart } from '../../fixtures/with-part.ts'

/** A server that both replicas use. It never says that its list has changed. */
async function startShop() {
  const shop = { tools: ['buy'], broken: false }
  const introduction = {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'shop', version: '1' },
  }
  const answers: Record<string, () => object> = {
    initialize: () => introduction,
    ping: () => ({}),
    'tools/list': () => ({ tools: shop.tools.map((name) => ({ name, inputSchema: { type: 'object' } })) }),
    'tools/call': () => ({ content: [{ type: 'text', text: 'done' }] }),
  }
  const server: RogueHttp = await rogueHttp(({ message: { id, method = '' } = {} }, response) => {
    if (id === undefined) return response.writeHead(method === '' ? 405 : 202).end()
    if (method === 'tools/call' && shop.broken) return response.writeHead(500).end()
    const answer = answers[method]
    const unknown = JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } })
    json(response, answer ? result(id, answer()) : unknown)
  })
  const calls = () => server.got.filter(({ message }) => message?.method === 'tools/call').length
  return { server, shop, calls }
}

withPart('redis-server', 'B10: what happens at one replica and concerns all', () => {
  const open = new AsyncDisposableStack()
  const token = 'the-token-of-the-whole-fleet'
  let upstream: Awaited<ReturnType<typeof startShop>>
  let one: LocalToolway
  let other: LocalToolway
  let config: Parameters<typeof startToolway>[0]

  beforeAll(async () => {
    const redis = open.use(await startRedis())
    upstream = await startShop()
    open.use(upstream.server)
    config = {
      auth: { token },
      mcpServers: { shop: { url: upstream.server.url } },
      stores: { path: './state', redis: { url: redis.url } },
      // Nobody finds out by itself in the time of a test.
      discovery: { refresh: '1h' },
      breaker: { failures: 3, openFor: '1m' },
    }
    one = open.use(await startToolway(config, { watch: true }))
    other = open.use(await startToolway(config))
  })
  afterAll(() => open.disposeAsync())

  const ask = async (path: string) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await fetch(new URL(path, one.url), { method: 'POST', headers })
    return { status: answer.status, body: await answer.json() }
  }

  test('G8: a reload that is asked of one is done by all, each with its own files; one that a file brings is not', async () => {
    const successes = () => [one, other].map(({ gateway }) => gateway.reloadStatus().successes)
    await one.rewrite({ ...config, policy: { blockedTools: ['shop.sell'] } })
    await until(() => successes()[0] !== 0, { what: 'what the file brings' })
    await other.rewrite({ ...config, policy: { blockedTools: ['shop.rob'] } })
    expect(await ask('/admin/api/config/reload')).toMatchObject({ status: 200, body: { ok: true } })
    await until(() => successes()[1] !== 0, { what: 'the reload of the other one' })
    const blocked = [one, other].map(({ gateway }) => gateway.loaded.config.policy.blockedTools)
    expect(blocked).toEqual([['shop.sell'], ['shop.rob']])
    await one.gateway.reload()
    await until(() => successes()[1] !== 1, { what: 'the second reload' })
    expect(successes()[1]).toBe(2)
  })

  test.each<Sdk>(['v1', 'v2'])(
    'F4: a tool that one replica finds is announced to the client %s of the other',
    async (sdk) => {
      await using here = await connect(sdk, { endpoint: one })
      await using there = await connect(sdk, { endpoint: other })
      const names = async () => (await there.listTools()).map(({ name }) => name)
      const tool = `sell_${sdk}`
      let seen = false
      // A client that is notified must find the change in the list.
      there.onNotification('notifications/tools/list_changed', async () => {
        seen ||= (await names()).includes(`shop__${tool}`)
      })
      await here.listTools()
      expect(await names()).toContain('shop__buy')
      upstream.shop.tools.push(tool)
      expect(await ask('/admin/api/servers/shop/refresh')).toMatchObject({ status: 200 })
      await until(() => seen, { what: 'list_changed, and the new tool in the list' })
      expect((await there.callTool(`shop.${tool}`)).isError).not.toBe(true)
    },
  )

  test('J3: a server that fails at one is given up by the other at its next failure, and not before', async () => {
    await using here = await connect('v1', { endpoint: one })
    await using there = await connect('v1', { endpoint: other })
    const code = async (client: typeof here) => {
      const { isError, structuredContent, _meta } = await client.callTool('shop.buy')
      return isError ? JSON.stringify({ structuredContent, _meta }) : 'fine'
    }
    upstream.shop.broken = true
    for (let failed = 0; failed < 3; failed++) await code(here)
    expect(await code(here)).toContain('CIRCUIT_OPEN')
    await until(() => other.log.lines.some(({ message }) => message.includes('another replica')), { what: 'the hint' })
    const before = upstream.calls()
    expect(await code(there)).not.toContain('CIRCUIT_OPEN')
    expect(await code(there)).toContain('CIRCUIT_OPEN')
    expect(upstream.calls()).toBe(before + 1)
  })
})
