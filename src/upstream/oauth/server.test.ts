import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { until } from '../../../tests/fixtures/until.ts'
import type { ServerConfig } from '../../config/schema.ts'
import { callOf } from '../../core/call.fixture.ts'
import type { Capabilities } from '../../core/call.ts'
import { silentLog } from '../../core/log.ts'
import type { Descriptors } from '../../core/stores.ts'
import { createSeal } from '../../lib/seal.ts'
import { createConnector } from '../connection/connect.ts'
import { UpstreamServer } from '../server.ts'
import { startIssuer } from './issuer.fixture.ts'
import { openOAuth, serverConfig, signIn } from './oauth.fixture.ts'
import type { OAuth } from './oauth.ts'
import { startResource } from './resource.fixture.ts'

/** The listing of an earlier run, with which no connection is needed to make a call. */
const listedBefore: Descriptors = {
  protocolVersion: '2025-11-25',
  era: 'legacy',
  capabilities: { tools: {} },
  serverInfo: { name: 'resource', version: '1' },
  tools: [{ name: 'work', inputSchema: { type: 'object' } }],
  resources: [],
  templates: [],
  prompts: [],
  fetchedAt: 0,
}

/** A complete server source that gets its tokens from `oauth`. */
function serverOf(config: ServerConfig, oauth: OAuth, { recalled = false } = {}) {
  const clock = createManualClock()
  const common = { name: 'files', config, clock, log: silentLog }
  const server = new UpstreamServer({
    ...common,
    defaults: { timeoutMs: 30_000, refreshMs: 60_000, discovery: recalled ? 'hybrid' : 'runtime' },
    host: {
      store: { load: async () => (recalled ? listedBefore : undefined), save: async () => {} },
      servedUris: () => (uri) => uri,
      seal: createSeal('a secret for the test'),
    },
    connect: createConnector({ ...common, identity: { name: 'toolway', version: '1' }, host: { oauth } }),
  })
  const callAs = (principal: string, capabilities: Capabilities = {}) => {
    const [entry] = server.entries()
    if (!entry) throw new Error('it offers nothing')
    const call = callOf()
    const session = `session of ${principal}`
    return entry.run({ ...call, entry, caller: { ...call.caller, principal, session, capabilities } })
  }
  return { server, clock, callAs }
}

test('B6: a server without a grant needs one, says how to get it, and is never a healthy one with no tools', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const [oauth, config] = [openOAuth(), serverConfig(resource.url)]
  const { server, clock, callAs } = serverOf(config, oauth)
  await using _ = server
  await server.ready()
  expect(server.status()).toMatchObject({
    health: 'needs-auth',
    reason: expect.stringContaining('toolway auth files'),
    lastError: expect.stringContaining('toolway auth files'),
  })
  await signIn(oauth, config, issuer)
  // The server becomes healthy automatically, without a restart.
  clock.advance(5_000)
  await until(() => server.status().health === 'healthy', { what: 'its return' })
  await until(() => server.entries().length, { what: 'its tools' })
  expect((await callAs('ann')).isError).toBe(false)
  // If the grant ends later, the known tools stay listed, and the error says what to do.
  issuer.revoke()
  issuer.behaviour.refuseRefresh = { status: 400, error: 'invalid_grant' }
  await expect(callAs('ann')).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  await server.refresh()
  expect(server.status().health).toBe('needs-auth')
  expect(server.entries()).toHaveLength(1)
})

test.each([
  ['the listing connection', {}],
  ['a connection of the caller', { elicitation: {} }],
])(
  'V7, B6: a call over %s shows that a new sign-in is needed, and the next call that it was done',
  async (_, capabilities) => {
    await using issuer = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    const [oauth, config] = [openOAuth(), serverConfig(resource.url)]
    await signIn(oauth, config, issuer)
    const { server, callAs } = serverOf(config, oauth, { recalled: true })
    await using _server = server
    await server.start()
    const health: string[] = []
    server.onChange(() => health.push(server.status().health))
    const call = () => callAs('ann', capabilities)
    expect((await call()).isError).toBe(false)
    issuer.revoke()
    issuer.behaviour.refuseRefresh = { status: 400, error: 'invalid_grant' }
    await expect(call()).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
    await until(() => server.status().health === 'needs-auth', { what: 'the missing sign-in' })
    expect(health.at(-1)).toBe('needs-auth')
    expect(server.status().reason).toContain('toolway auth files')

    // The clock stands still, so that only the call can show it.
    issuer.behaviour.refuseRefresh = undefined
    await signIn(oauth, config, issuer)
    expect((await call()).isError).toBe(false)
    await until(() => server.status().health === 'healthy', { what: 'its return' })
    expect(health.at(-1)).toBe('healthy')
  },
)

test('B6: a call that needs more scopes does not change the health of the server', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const [oauth, config] = [openOAuth(), serverConfig(resource.url)]
  await signIn(oauth, config, issuer)
  const { server, callAs } = serverOf(config, oauth)
  await using _ = server
  await server.ready()
  resource.behaviour.callScope = 'work:write'
  const before = resource.got.length
  await expect(callAs('ann')).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  // The rejected call, and the list that is fetched to find out whether only this call is affected.
  await until(() => resource.got.length >= before + 2, { what: 'the lists' })
  await server.refresh()
  expect(server.status().health).toBe('healthy')
})

test('B6: calls of a principal use its own grant, and lists that of the gateway', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const [oauth, config] = [openOAuth(), serverConfig(resource.url, { perPrincipal: true })]
  await signIn(oauth, config, issuer)
  await signIn(oauth, config, issuer, 'ann')
  await signIn(oauth, config, issuer, 'bob')
  const { server, callAs } = serverOf(config, oauth)
  await using _ = server
  await server.ready()
  const before = new Set(resource.got)
  await Promise.all(['ann', 'bob', 'ann'].map((principal) => callAs(principal)))
  const used = new Set(resource.got.filter((token) => !before.has(token)))
  expect(used.size).toBe(2)
  await expect(callAs('eve')).rejects.toMatchObject({
    code: 'AUTH_REQUIRED',
    message: expect.stringContaining('--principal eve'),
  })
  // The missing grant of one principal does not affect the health of the server.
  expect(server.status().health).toBe('healthy')
  expect((await callAs('bob')).isError).toBe(false)
})
