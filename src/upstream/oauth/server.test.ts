import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { until } from '../../../tests/fixtures/until.ts'
import type { ServerConfig } from '../../config/schema.ts'
import { callOf } from '../../core/call.fixture.ts'
import { silentLog } from '../../core/log.ts'
import { createSeal } from '../../lib/seal.ts'
import { createConnector } from '../connection/connect.ts'
import { createServer } from '../server.ts'
import { startIssuer } from './issuer.fixture.ts'
import { openOAuth, serverConfig, signIn } from './oauth.fixture.ts'
import type { OAuth } from './oauth.ts'
import { startResource } from './resource.fixture.ts'

/** A complete server source that gets its tokens from `oauth`. */
function serverOf(config: ServerConfig, oauth: OAuth) {
  const clock = createManualClock()
  const common = { name: 'files', config, clock, log: silentLog }
  const server = createServer({
    ...common,
    timeoutMs: 30_000,
    refreshMs: 60_000,
    discovery: 'runtime',
    store: { load: async () => undefined, save: async () => {} },
    servedUri: (uri) => uri,
    seal: createSeal('a secret for the test'),
    connect: createConnector({ ...common, identity: { name: 'toolway', version: '1' }, oauth }),
  })
  const callAs = (principal: string) => {
    const [entry] = server.entries()
    if (!entry) throw new Error('it offers nothing')
    const call = callOf()
    return entry.run({ ...call, entry, caller: { ...call.caller, principal, session: `session of ${principal}` } })
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

test('B6: calls of a principal go by its own grant, and what is listed by that of the gateway', async () => {
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
  await Promise.all(['ann', 'bob', 'ann'].map(callAs))
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
