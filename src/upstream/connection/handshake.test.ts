import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { pause } from '../../core/deadline.ts'
import { ServerError } from '../../core/errors.ts'
import { silentLog } from '../../core/log.ts'
import { scriptedPeer } from '../peer.fixture.ts'
import { negotiate, openSession } from './handshake.ts'
import { RpcConnection } from './rpc-connection.ts'

const signal = new AbortController().signal
const identity = { name: 'toolway', version: '1' }
const session = { protocolVersion: '2025-11-25', capabilities: {} }
const discovery = { supportedVersions: ['2026-07-28'], capabilities: {} }

async function opened(answers: Parameters<typeof scriptedPeer>[0], kind: 'stdio' | 'http' = 'stdio') {
  const clock = createManualClock()
  const peer = scriptedPeer(answers, { kind })
  const connection = await RpcConnection.open(peer.transport, { server: 's', owned: true, log: silentLog }, signal)
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

test('B2: a stateless server that is slow and ignores `initialize` is used', async () => {
  const started = Promise.withResolvers<void>()
  const { clock, connection, options } = await opened(
    { 'server/discover': () => started.promise.then(() => discovery) },
    'http',
  )
  const opening = negotiate(connection, options)
  await clock.pass(7_000)
  started.resolve()
  await clock.pass(5_000)
  expect(await opening).toMatchObject({ era: 'modern' })
  expect(clock.pending).toBe(0)
})

test('B2: a slow server that has accepted a session gets it, however long `notifications/initialized` takes', async () => {
  const started = Promise.withResolvers<void>()
  const answer = (result: object) => () => started.promise.then(() => result)
  const answers = { initialize: answer(session), 'server/discover': answer(discovery) }
  const { clock, connection, options } = await opened(answers, 'http')
  connection.notify = () => pause(clock, 8_000)
  const opening = negotiate(connection, options)
  await clock.pass(7_000)
  started.resolve()
  await clock.pass(5_000)
  await clock.pass(3_000)
  expect(await opening).toMatchObject({ era: 'legacy' })
  expect(clock.pending).toBe(0)
})

describe('F5: the error about a server that supports other protocol versions only names both sides', () => {
  const refused = { error: { code: -32601, message: 'Method not found' } }
  const unsupported = { code: -32022, message: 'Unsupported', data: { supported: ['2099-01-01'] } }
  const failure = async (answers: Parameters<typeof scriptedPeer>[0]) => {
    const { connection, options } = await opened(answers, 'http')
    return negotiate(connection, options).catch((thrown: unknown) => thrown)
  }
  const both = { code: 'SERVER_UNAVAILABLE', message: expect.stringMatching(/"2099-01-01".*2026-07-28.*2024-11-05/) }

  test.each([
    ['a result', { supportedVersions: ['2099-01-01'], capabilities: {} }],
    ['an error', { error: unsupported }],
  ])('if server/discover is answered with %s', async (_, answer) => {
    expect(await failure({ 'server/discover': () => answer, initialize: () => refused })).toMatchObject(both)
  })

  test('but not if it lists a version that should have worked, or lists none', async () => {
    for (const supportedVersions of [['2099-01-01', '2025-11-25'], [7], undefined]) {
      const discover = () => ({ supportedVersions, capabilities: {} })
      const thrown = await failure({ 'server/discover': discover, initialize: () => refused })
      expect(thrown).toBeInstanceOf(ServerError)
    }
  })
})
