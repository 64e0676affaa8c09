import { expect, test } from 'vitest'
import { openTestServer } from './server.fixture.ts'

const ask = { headers: { origin: 'https://page.example', authorization: undefined } } as const

const noRules = { servers: [], tools: {} }

test('B2: the server card is public and lists the supported revisions', async () => {
  await using server = await openTestServer()
  const { statusCode, headers, body } = await server.fetchRaw({ path: '/mcp/server-card', method: 'GET', ...ask })
  expect([statusCode, headers['content-type'], headers['access-control-allow-origin']]).toEqual([
    200,
    'application/mcp-server-card+json',
    '*',
  ])
  const card = (await body.json()) as { name: string; remotes: { url: string; supportedProtocolVersions: string[] }[] }
  expect(card.name).toMatch(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/)
  expect(card.remotes).toEqual([
    {
      type: 'streamable-http',
      url: server.server.url,
      supportedProtocolVersions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'],
    },
  ])
  expect((await server.fetchRaw({ path: '/mcp/server-card', method: 'POST', ...ask })).statusCode).toBe(405)
  expect((await server.fetchRaw({ path: '/mcp/server-card/more', method: 'GET', ...ask })).statusCode).toBe(404)
})

test('B6: behind a proxy the card has the URL of the proxy, with TLS', async () => {
  await using server = await openTestServer({ config: { allowedHosts: ['tools.example.com'] } })
  const headers = { ...ask.headers, host: 'tools.example.com' }
  const { body } = await server.fetchRaw({ path: '/mcp/server-card', method: 'GET', headers })
  expect(await body.json()).toMatchObject({ remotes: [{ url: 'https://tools.example.com/mcp' }] })
})

test('B6: the card is not shown under the name of another host', async () => {
  await using server = await openTestServer()
  const headers = { ...ask.headers, host: 'evil.example' }
  expect((await server.fetchRaw({ path: '/mcp/server-card', method: 'GET', headers })).statusCode).toBe(403)
})

test('V15: each endpoint has a card of its own, which reveals no description', async () => {
  await using server = await openTestServer({ endpoints: { research: { ...noRules, description: 'secret plans' } } })
  const { body } = await server.fetchRaw({ path: '/mcp/research/server-card', method: 'GET', ...ask })
  const text = await body.text()
  expect(JSON.parse(text)).toMatchObject({
    name: 'io.github.toolway/toolway-research',
    remotes: [{ url: `${server.server.url}/research` }],
  })
  expect(text).not.toContain('secret')
  expect((await server.fetchRaw({ path: '/mcp/other/server-card', method: 'GET', ...ask })).statusCode).toBe(404)
})
