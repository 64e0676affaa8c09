import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { able, connectCaller } from '../../fixtures/callers.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { startProvider } from '../../fixtures/identity-provider.ts'
import { goodHeaders, type RawRequest, rawRequest, rawSession, rpc } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { startToolway } from '../../fixtures/toolway.ts'
import { endedIn } from './records.ts'

const initialize = rpc(0, 'initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'by-hand', version: '1' },
})
const initialized = '{"jsonrpc":"2.0","method":"notifications/initialized"}'

/** Sends lines to a gateway over stdio, and gives back the operations that its audit log has afterwards. */
async function recordedOverStdio(lines: readonly string[], config = {}) {
  await using folder = await temporaryFolder()
  {
    await using toolway = await startToolway(config, { folder })
    const [input, output] = [new PassThrough(), new PassThrough()]
    output.resume()
    const served = toolway.gateway.stdio(input, output)
    input.end(lines.map((line) => `${line}\n`).join(''))
    await served
  }
  return endedIn(folder.path)
}

const cancelled = (params: object) => JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params })

const malformed = { operation: 'malformed_request', decision: 'ERROR', reason: 'malformed_request', is_error: true }

/** Messages of an open session that break the protocol. */
const faults: readonly (readonly [string, string])[] = [
  ['no JSON', '{"jsonrpc":"2.0",'],
  ['no message', '{"jsonrpc":"2.0"}'],
  ['another version', '{"jsonrpc":"1.0","id":1,"method":"ping"}'],
  ['an id that is neither text nor number', '{"jsonrpc":"2.0","id":{},"method":"ping"}'],
  ['a member twice', '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}'],
  ['a call without a name', rpc(1, 'tools/call', {})],
  ['a call whose arguments are a list', rpc(1, 'tools/call', { name: 'hash', arguments: [] })],
  ['a member that looks like a known one', rpc(1, 'tools/call', { name: 'hash', Name: 'x' })],
  ['a notification with a member that looks like a known one', cancelled({ requestId: 1, RequestId: 2 })],
]

describe('F11: malformed input over stdio leaves exactly one record', () => {
  test.each(faults)('%s', async (_, line) => {
    expect(await recordedOverStdio([initialize, initialized, line])).toMatchObject([malformed])
  })

  test('more values than server.maxValues', async () => {
    const line = rpc(1, 'tools/call', { name: 'hash', arguments: { data: Array(1_100).fill(0) } })
    const config = { server: { maxValues: 1_000 } }
    expect(await recordedOverStdio([initialize, initialized, line], config)).toMatchObject([malformed])
  })

  test('a second initialize', async () => {
    expect(await recordedOverStdio([initialize, initialized, initialize])).toMatchObject([malformed])
  })

  test('as the first line', async () => {
    expect(await recordedOverStdio(['hello'])).toMatchObject([malformed])
  })

  test('a request before initialize', async () => {
    expect(await recordedOverStdio([rpc(1, 'tools/list')])).toMatchObject([malformed])
  })

  test('the bad one of a batch', async () => {
    const batched = initialize.replace('2025-11-25', '2025-03-26')
    const line = `[${rpc(1, 'ping')},{"jsonrpc":"2.0"}]`
    expect(await recordedOverStdio([batched, initialized, line])).toMatchObject([malformed])
  })

  test('none where all is well', async () => {
    expect(await recordedOverStdio([initialize, initialized, rpc(1, 'ping')])).toEqual([])
  })
})

describe('F11: malformed input over HTTP leaves exactly one record, with the caller', () => {
  test.each(faults)('%s', async (_, line) => {
    await using folder = await temporaryFolder()
    {
      await using toolway = await startToolway({}, { folder })
      const session = await rawSession(toolway)
      await session.send(line)
    }
    const records = endedIn(folder.path)
    expect(records).toMatchObject([malformed])
    expect(records[0]?.principal).not.toBe('unknown')
  })
})

describe('F11: malformed input at the OpenAI endpoint leaves exactly one record, with the caller', () => {
  const json = { 'content-type': 'application/json' }
  const path = '/v1/chat/completions'
  test.each<[string, RawRequest, number]>([
    ['no JSON', { body: '{"messages":', headers: json }, 400],
    ['no object', { body: '[]', headers: json }, 400],
    ['no messages', { body: '{"model":"local"}', headers: json }, 400],
    ['another type', { body: '{}', headers: { 'content-type': 'text/plain' } }, 415],
    ['too much', { body: `{"messages":"${'x'.repeat(5_000)}"}`, headers: json }, 413],
  ])('%s', async (_, request, status) => {
    await using folder = await temporaryFolder()
    {
      await using toolway = await startToolway(
        {
          server: { maxBody: '4KiB' },
          models: { local: { kind: 'openai', baseUrl: 'http://127.0.0.1:9/v1', model: 'm', apiKey: 'k' } },
          chat: { model: 'local' },
        },
        { folder },
      )
      const headers = { ...goodHeaders(toolway), ...request.headers }
      expect((await rawRequest(toolway.url, { ...request, path, headers })).status).toBe(status)
    }
    const records = endedIn(folder.path)
    expect(records).toMatchObject([{ ...malformed, address: '127.0.0.1' }])
    expect(records[0]?.principal).not.toBe('unknown')
  })
})

describe('F11: a token that lacks scopes leaves one record', () => {
  test.each([
    ['at the MCP endpoint', '/mcp', initialize],
    ['at the OpenAI endpoint', '/v1/chat/completions', '{"messages":[]}'],
  ])('%s', async (_, path, body) => {
    await using folder = await temporaryFolder()
    await using provider = await startProvider()
    {
      const jwt = provider.config({ scopes: { 'tools:read': ['reader'] } })
      await using toolway = await startToolway({ agents: { reader: {} }, auth: { jwt } }, { folder })
      const enter = async (scope: string) => {
        const token = await provider.token({ scope })
        return rawRequest(toolway.url, { path, headers: goodHeaders({ url: toolway.url, token }), body })
      }
      expect((await enter('other')).status).toBe(403)
    }
    expect(endedIn(folder.path)).toMatchObject([
      { operation: 'authenticate', decision: 'DENY', code: 'DENIED_BY_POLICY', address: '127.0.0.1', is_error: true },
    ])
  })
})

describe('F11: a refused approval is recorded exactly once', () => {
  const config = {
    approvals: { by: ['client'] },
    mcpServers: { probe: { ...stdioServers.probe(), approve: ['echo'] } },
  }
  test.each([
    ['a no', able, { action: 'accept', content: { approve: false } }],
    ['a declined question', able, { action: 'decline' }],
    ['nobody to ask', {}, undefined],
  ])('%s', async (_, capabilities, answer) => {
    await using folder = await temporaryFolder()
    {
      await using toolway = await startToolway(config, { folder })
      await using caller = await connectCaller('v2', toolway, {
        capabilities,
        answer: (method) => (method === 'roots/list' ? { roots: [] } : answer),
      })
      expect(await caller.call('probe__echo', { message: 'x' })).toMatchObject({ isError: true })
    }
    expect(endedIn(folder.path).filter(({ operation }) => operation === 'call_tool')).toMatchObject([
      {
        decision: 'DENY',
        code: 'DENIED_BY_POLICY',
        reason: 'not_approved',
        rule: 'mcpServers.probe.approve[0]',
        is_error: true,
      },
    ])
  })
})
