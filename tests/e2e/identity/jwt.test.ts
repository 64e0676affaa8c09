import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { connectCaller } from '../../fixtures/callers.ts'
import { type Provider, signingKey, startProvider } from '../../fixtures/identity-provider.ts'
import { goodHeaders, rawRequest, rawSession, rpc } from '../../fixtures/raw-http.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'

let provider: Provider
let toolway: LocalToolway
let open: AsyncDisposableStack

beforeEach(async () => {
  open = new AsyncDisposableStack()
  provider = open.use(await startProvider())
  toolway = open.use(await startToolway({ auth: { jwt: provider.config() } }))
})
afterEach(() => open.disposeAsync())

const holding = (token: string) => ({ url: toolway.url, token })

const enter = async (token: string) => {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'by-hand', version: '1' } }
  const body = rpc(0, 'initialize', params)
  return rawRequest(toolway.url, { headers: goodHeaders(holding(token)), body })
}

describe('B6: tokens of an identity provider', () => {
  test.each(['v1', 'v2', 'modern'] as const)('let a %s client in', async (kind) => {
    await using caller = await connectCaller(kind, holding(await provider.token()))
    const { content } = await caller.call('native__hash', { data: 'hello', algorithm: 'sha256' })
    expect(JSON.stringify(content)).toContain('2cf24dba5fb0a30e')
    expect(provider.requests).toBe(1)
  })

  test('another token of the same subject can use its session; one of another subject cannot', async () => {
    const { headers } = await enter(await provider.token())
    const session = String(headers['mcp-session-id'])
    const ping = async (token: string) =>
      (
        await rawRequest(toolway.url, {
          headers: { ...goodHeaders(holding(token)), 'mcp-session-id': session },
          body: rpc(1, 'ping'),
        })
      ).status
    expect(await ping(await provider.token({ jti: 'refreshed' }))).toBe(200)
    expect(await ping(await provider.token({ sub: 'bert' }))).toBe(404)
    expect(await ping(await provider.token({ agent: 'other' }))).toBe(404)
    expect(await ping(toolway.token)).toBe(404)
  })

  test('an invalid token is refused, and the gateway token and the provider still work', async () => {
    const stranger = await signingKey('first')
    for (const token of [
      await provider.token({}, { key: stranger }),
      await provider.token({ exp: Math.floor(Date.now() / 1000) - 60 }),
      await provider.token({ aud: 'https://other.example' }),
    ]) {
      const { status, headers, text } = await enter(token)
      expect(status).toBe(401)
      expect(headers['www-authenticate']).toContain('error="invalid_token"')
      expect(text + JSON.stringify(toolway.log.lines)).not.toContain(token.split('.')[2])
    }
    await rawSession(toolway)
    await rawSession(holding(await provider.token()))
  })

  test('an unavailable provider is a 503, and does not affect other credentials', async () => {
    provider.behave((response) => response.destroy())
    const { status, headers } = await enter(await provider.token())
    expect({ status, retry: headers['retry-after'] }).toEqual({ status: 503, retry: '10' })
    await rawSession(toolway)
  })
})
