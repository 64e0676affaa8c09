import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, type Sdk } from '../../fixtures/clients.ts'
import { rawSession } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'

let toolway: LocalToolway

beforeAll(async () => {
  const mcpServers = { many: stdioServers.manyTools('many', 10_500, 1_000, 'bare') }
  // More than a page of the gateway's, and more than a server may list by default.
  const discovery = { listDeadline: '30s', maxEntries: 10_500 }
  toolway = await startToolway({ mcpServers, discovery, defaults: { expose: 'both' } })
})

afterAll(() => toolway[Symbol.asyncDispose]())

test.each<Sdk>(['v1', 'v2'])('B2: the client %s gets every tool once, over as many pages as it takes', async (sdk) => {
  await using client = await connect(sdk, { endpoint: toolway })
  const names = (await client.listTools()).map(({ name }) => name).filter((name) => name.startsWith('many__'))
  expect(names).toHaveLength(10_500)
  expect(new Set(names).size).toBe(10_500)
  const first = await client.request('tools/list')
  expect(first).toHaveProperty('nextCursor')
})

test('B2, E1: an unknown cursor is refused', async () => {
  const session = await rawSession(toolway)
  for (const cursor of ['made-up', '', 7]) {
    expect(await session.answer('tools/list', { cursor })).toMatchObject({ error: { code: -32602 } })
  }
})
