import { expect, test } from 'vitest'
import { greeting, notFound, resultText, serveBareHttp } from '../../fixtures/bare-server.ts'
import { rawSession, rpc } from '../../fixtures/raw-http.ts'
import { startToolway } from '../../fixtures/toolway.ts'

test('V5: arguments are checked by the digits of the schema and their own, and reach the server as they are', async () => {
  const received: string[] = []
  const schema = '{"type":"object","properties":{"id":{"type":"integer","maximum":9223372036854775807}}}'
  await using server = await serveBareHttp(({ id, method }, way) => {
    if (id === undefined) return
    const greeted = greeting('legacy', method as string, { tools: {} })
    if (greeted) way.send(resultText('legacy', id, greeted))
    else if (method === 'tools/list')
      way.send(`{"jsonrpc":"2.0","id":${id},"result":{"tools":[{"name":"get","inputSchema":${schema}}]}}`)
    else if (method === 'tools/call') {
      received.push(way.received)
      way.send(resultText('legacy', id, { content: [] }))
    } else way.send(notFound(id))
  })
  await using toolway = await startToolway({ mcpServers: { bare: { type: 'http', url: server.url } } })
  const session = await rawSession(toolway)
  const call = async (digits: string) => {
    const { text } = await session.send(
      rpc(7, 'tools/call', { name: 'bare__get', arguments: { id: 0 } }).replace('"id":0', `"id":${digits}`),
    )
    return text.includes('INVALID_ARGUMENTS')
  }
  expect(await call('9223372036854775807')).toBe(false)
  expect(received.at(-1)).toContain('9223372036854775807')
  expect(await call('9223372036854775808')).toBe(true)
  expect(await call('9223372036854775807.5')).toBe(true)
  expect(received).toHaveLength(1)
})
