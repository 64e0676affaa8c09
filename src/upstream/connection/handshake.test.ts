import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { silentLog } from '../../core/log.ts'
import { scriptedPeer } from '../peer.fixture.ts'
import { negotiate, openSession } from './handshake.ts'
import { openRpcConnection } from './rpc-connection.ts'

const signal = new AbortController().signal
const identity = { name: 'toolway', version: '1' }
const session = { protocolVersion: '2025-11-25', capabilities: {} }
const discovery = { supportedVersions: ['2026-07-28'], capabilities: {} }

async function opened(answers: Parameters<typeof scriptedPeer>[0], kind: 'stdio' | 'http' = 'stdio') {
  const clock = createManualClock()
  const peer = scriptedPeer(answers, { kind })
  const connection = await openRpcConnection(peer.transport, { server: 's', owned: true, log: silentLog }, signal)
  return {
    ...peer,
    peer,
    clock,
    connection,
    options: { server: 's', identity, capabilities: {}, clock, log: silentLog, signal },
  }
}

test('B2: a process that ignores `initialize` is used in the stateless era, and a late answer changes nothing', async () => {
  const { clock, connection, options, peer } = await opened({ 'server/discover': () => discovery })
  const opening = openSession(connection, options)
  await clock.pass(2_000)
  expect(await opening).toMatchObject({ era: 'modern' })
  expect(connection.logsByRequest).toBe(true)
  peer.say({ id: 1, result: session })
  await clock.pass(0)
  expect([peer.version, peer.heard.map(({ method }) => method)]).toEqual([
    '2026-07-28',
    ['initialize', 'server/discover'],
  ])
})

test('B2: a process that starts slowly gets a session if it offers one', async () => {
  const started = Promise.withResolvers<void>()
  const answer = (result: object) => () => started.promise.then(() => result)
  const { clock, connection, options } = await opened({
    initialize: answer(session),
    'server/discover': answer(discovery),
  })
  const opening = openSession(connection, options)
  await clock.pass(10_000)
  started.resolve()
  expect(await opening).toMatchObject({ era: 'legacy' })
})

test.each(['stdio', 'http'] as const)('B2: a stateless server that is slow is waited for, over %s', async (kind) => {
  const started = Promise.withResolvers<void>()
  const { clock, connection, options } = await opened(
    {
      'server/discover': () => started.promise.then(() => discovery),
      initialize: () => ({ error: { code: -32601, message: 'unknown' } }),
    },
    kind,
  )
  const opening = negotiate(connection, options)
  await clock.pass(20_000)
  started.resolve()
  expect(await opening).toMatchObject({ era: 'modern' })
})
