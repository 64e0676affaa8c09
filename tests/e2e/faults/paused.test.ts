import type { ServerResponse } from 'node:http'
import { setTimeout as pass } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { connect } from '../../fixtures/clients.ts'
import { startCommand } from '../../fixtures/command.ts'
import { json, result, rogueHttp } from '../../fixtures/rogue-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { until } from '../../fixtures/until.ts'

const answers: Record<string, object> = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'held', version: '1' },
  },
  'tools/list': { tools: [{ name: 'held', inputSchema: { type: 'object' } }] },
  ping: {},
}

test('F10, J3, T5: after a pause of the process every answer that arrived meanwhile is read, and nothing counts as a failure', async () => {
  await using open = new AsyncDisposableStack()
  const held = new Map<unknown, ServerResponse>()
  const remote = open.use(
    await rogueHttp((got, response) => {
      const { id, method = '' } = got.message ?? {}
      if (method === 'tools/call') return held.set(id, response)
      if (got.method !== 'POST' || id === undefined) return response.writeHead(got.method === 'GET' ? 405 : 202).end()
      const answer = answers[method]
      return answer ? json(response, result(id, answer)) : response.writeHead(400).end()
    }),
  )
  const toolway = open.use(
    await startCommand({
      // Long enough for all calls to arrive before the pause, also on a busy machine.
      mcpServers: {
        remote: { url: remote.url, timeout: '3s' },
        probe: { ...stdioServers.probe(), timeout: '3s' },
      },
      breaker: { failures: 1 },
      health: { interval: '200ms', timeout: '500ms' },
    }),
  )
  const client = open.use(await connect('v2', { endpoint: toolway }))
  await client.callTool('probe.echo', { message: 'up' })
  const before = toolway.children()

  const calls = Array.from({ length: 10 }, () => [
    client.callTool('probe.later', { ms: 600 }),
    client.callTool('remote.held'),
  ]).flat()
  await until(() => held.size === 10, { what: 'the calls to arrive' })
  process.kill(toolway.pid, 'SIGSTOP')
  open.defer(() => void process.kill(toolway.pid, 'SIGCONT'))
  for (const [id, response] of held) json(response, result(id, { content: [{ type: 'text', text: 'held' }] }))
  // Longer than any call may take: only real time lets the timers of another process run out.
  await pass(3_500)
  process.kill(toolway.pid, 'SIGCONT')

  const results = await Promise.all(calls)
  expect(results.filter(({ isError }) => isError)).toEqual([])
  for (const server of ['probe', 'remote']) {
    const { structuredContent } = await client.callTool('server_health', { server })
    expect(structuredContent).toMatchObject({ status: expect.stringMatching(/^(healthy|degraded)$/) })
    // A busy machine may make a check slow, until the next one.
    const isHealthy = async () =>
      ((await client.callTool('server_health', { server })).structuredContent as { status: string }).status ===
      'healthy'
    await until(isHealthy, { what: `${server} to be healthy` })
  }
  expect((await client.callTool('probe.echo', { message: 'after' })).isError).toBeUndefined()
  expect(toolway.children()).toEqual(before)
})
