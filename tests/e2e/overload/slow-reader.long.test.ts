import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { settledMemory } from '../../fixtures/memory.ts'
import { goodHeaders, rawSession, rpc } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

interface Deaf extends Disposable {
  readonly response: IncomingMessage
}

/** Opens a stream with a call that has a lot to tell, and never reads of it. */
async function deafReader(toolway: LocalToolway, session: Record<string, string>, megabytes: number): Promise<Deaf> {
  const params = { name: 'loud__chatter', arguments: { megabytes }, _meta: { progressToken: 'p' } }
  const outgoing: ClientRequest = request(toolway.url, {
    method: 'POST',
    headers: { ...goodHeaders(toolway), ...session },
    agent: false,
  })
  outgoing.on('error', () => {})
  outgoing.end(rpc('deaf', 'tools/call', params))
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  response.on('error', () => {}).pause()
  return { response, [Symbol.dispose]: () => outgoing.destroy() }
}

async function sessionOf(toolway: LocalToolway): Promise<Record<string, string>> {
  const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'deaf', version: '1' } }
  const answer = await fetch(toolway.url, {
    method: 'POST',
    headers: goodHeaders(toolway),
    body: rpc(1, 'initialize', initialize),
  })
  await answer.text()
  return { 'mcp-session-id': answer.headers.get('mcp-session-id') ?? '', 'mcp-protocol-version': '2025-11-25' }
}

describe('B7: a client that never reads its 200 MB of stream', () => {
  test('costs less than 8 MiB, and the calls of other clients succeed', async () => {
    await using toolway = await startToolway({
      mcpServers: { loud: stdioServers.probe(), quiet: stdioServers.probe() },
    })
    const bystander = await rawSession(toolway)
    const echo = () =>
      bystander.answer('tools/call', { name: 'quiet__echo', arguments: { message: 'x' } }).then(({ result }) => result)
    await echo()
    await bystander.answer('tools/call', { name: 'loud__echo', arguments: { message: 'x' } })
    const session = await sessionOf(toolway)
    const before = await settledMemory()
    const allowed = 8 * 1024 * 1024
    using _ = await deafReader(toolway, session, 200)
    let most = 0
    let calls = 0
    let failed = 0
    const told = async () => {
      const { result } = await bystander.answer('tools/call', { name: 'loud__state', arguments: {} })
      const { told: count = 0 } = (result?.structuredContent ?? {}) as { told?: number }
      return count
    }
    // What is kept for the reader grows with what it is told. To collect all garbage takes long, so not after each call.
    const [all, step] = [200 * 16, 40 * 16]
    for (let now = 0, next = step; now < all; now = await told()) {
      const result = await echo()
      if (result?.isError || result === undefined) failed++
      calls++
      await pause(20)
      if (now < next) continue
      most = Math.max(most, (await settledMemory(before + allowed)) - before)
      next += step
    }
    most = Math.max(most, (await settledMemory(before + allowed)) - before)
    expect(failed).toBe(0)
    expect(calls).toBeGreaterThan(10)
    expect(most).toBeLessThan(allowed)
  })

  test('is forgotten when it leaves', async () => {
    await using toolway = await startToolway({ mcpServers: { loud: stdioServers.probe() } })
    const session = await sessionOf(toolway)
    const deaf = await deafReader(toolway, session, 50)
    deaf[Symbol.dispose]()
    const other = await rawSession(toolway)
    await until(
      async () => {
        const { result } = await other.answer('tools/call', { name: 'loud__echo', arguments: { message: 'still' } })
        return result?.isError !== true
      },
      { what: 'others to be served' },
    )
  })
})
