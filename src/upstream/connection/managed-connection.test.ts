import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import { silentLog } from '../../core/log.ts'
import { type ScriptedPeer, scriptedPeer } from '../peer.fixture.ts'
import type { InitializedConnection } from './handshake.ts'
import { ManagedConnection } from './managed-connection.ts'
import { ReconnectBackoff, type RestartLimit } from './reconnect.ts'
import { RpcConnection } from './rpc-connection.ts'

const never = new AbortController().signal
const options = { server: 'files', owned: false, log: silentLog }
const identity = { name: 'toolway', version: '1' }
const handshake = { era: 'legacy', protocolVersion: '2025-11-25', serverInfo: {}, capabilities: {} } as const

interface Setup {
  readonly idleMs?: number
  readonly fails?: () => boolean
  readonly restarts?: RestartLimit
}

function lineWith({ idleMs, fails = () => false, restarts }: Setup = {}) {
  const clock = createManualClock()
  const backoff = new ReconnectBackoff(clock, { restarts, random: () => 1 })
  const peers: ScriptedPeer[] = []
  const events: string[] = []
  const line = new ManagedConnection(
    { server: 'files', backoff, connectWithinMs: 120_000, idleMs, clock, log: silentLog },
    {
      async connect(signal): Promise<InitializedConnection> {
        if (fails()) throw new ToolwayError('SERVER_UNAVAILABLE', 'no such command')
        const peer = scriptedPeer({ echo: () => ({ ok: true }) })
        peers.push(peer)
        return { connection: await RpcConnection.open(peer.transport, options, signal), handshake, identity }
      },
      opened: () => events.push('opened'),
      closed: (error) => events.push(`closed${error ? `: ${error.message}` : ''}`),
      failed: () => events.push('failed'),
    },
  )
  const echo = () =>
    line.use({ signal: never }, ({ connection }) =>
      connection.request({ method: 'echo', params: () => undefined, signal: never }),
    )
  return { line, clock, peers, events, echo, backoff }
}

test('G2: a connection is opened on first use, once for all waiting callers', async () => {
  const { line, peers, echo } = lineWith()
  expect(peers).toHaveLength(0)
  await Promise.all([echo(), echo(), line.open(never)])
  await echo()
  expect(peers).toHaveLength(1)
})

test('F12: a lost connection is opened again by the next call', async () => {
  const { peers, echo, events } = lineWith()
  await echo()
  peers[0]?.die('The process ended.')
  await echo()
  expect(peers).toHaveLength(2)
  expect(peers[0]?.disposed).toBe(true)
  expect(events).toEqual(['opened', 'closed: The process ended.', 'opened'])
})

test('F12: a call that finds the connection dead, or loses it before it was sent, runs on a new one', async () => {
  const { peers, echo, line } = lineWith()
  await echo()
  peers[0]?.failSilently()
  await echo()
  expect(peers).toHaveLength(2)
  let attempts = 0
  const answer = line.use({ signal: never }, async ({ connection }) => {
    if (++attempts === 1) peers[1]?.failSilently()
    return connection.request({ method: 'echo', params: () => undefined, signal: never })
  })
  await expect(answer).resolves.toBeDefined()
  expect([attempts, peers.length]).toEqual([2, 3])
})

test('F12: an error of a working connection is not repeated', async () => {
  const { line } = lineWith()
  let attempts = 0
  const refused = line.use({ signal: never }, async () => {
    attempts++
    throw new ToolwayError('SERVER_UNAVAILABLE', 'refused our credential')
  })
  await expect(refused).rejects.toThrow('credential')
  expect(attempts).toBe(1)
})

test('T1/T5: after a failure the server is refused fast for a growing while, then tried again', async () => {
  let broken = true
  const { clock, echo, backoff } = lineWith({ fails: () => broken })
  await expect(echo()).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  await expect(echo()).rejects.toMatchObject({ code: 'SERVER_UNHEALTHY', details: { retryAfterMs: 1_000 } })
  clock.advance(1_000)
  await expect(echo()).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  await expect(echo()).rejects.toMatchObject({ code: 'SERVER_UNHEALTHY', details: { retryAfterMs: 2_000 } })
  broken = false
  clock.advance(2_000)
  await expect(echo()).resolves.toBeDefined()
  expect(backoff.failure).toBeUndefined()
})

test('T5: a call to a server that could be reached before is refused for at most 10 s, however long it was down', async () => {
  let down = false
  const { clock, echo, peers, backoff } = lineWith({ fails: () => down })
  await echo()
  down = true
  peers[0]?.die()
  for (let failure = 0; failure < 10; failure++) {
    await expect(echo()).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    clock.advance(backoff.pauseMs)
  }
  await expect(echo()).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  await expect(echo()).rejects.toMatchObject({ code: 'SERVER_UNHEALTHY', details: { retryAfterMs: 10_000 } })
  down = false
  clock.advance(10_000)
  await expect(echo()).resolves.toBeDefined()
})

test('F12: a failed reconnect in the background does not keep the next call from trying', async () => {
  let down = true
  const { line, echo, events, clock } = lineWith({ fails: () => down })
  await expect(line.reopen()).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  await expect(line.reopen()).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  down = false
  await echo()
  expect(events).toEqual(['failed', 'failed', 'opened'])
  await line[Symbol.asyncDispose]()
  expect(clock.pending).toBe(0)
})

test('B2: a connection is not idle as long as tasks that were started on it may run', async () => {
  const { line, clock, peers, echo } = lineWith({ idleMs: 1_000 })
  await echo()
  const { connection } = line.current as InitializedConnection
  connection.tasksUntil = clock.monotonic() + 5_500
  await clock.pass(5_000)
  expect(peers[0]?.disposed).toBe(false)
  await clock.pass(2_000)
  expect(peers[0]?.disposed).toBe(true)
})

test('G2: an idle connection is closed, one in use is not, and the next call reopens it', async () => {
  const { line, clock, peers, echo, events } = lineWith({ idleMs: 1_000 })
  const work = Promise.withResolvers<void>()
  const busy = line.use({ signal: never }, () => work.promise)
  await clock.pass(5_000)
  expect(line.current).toBeDefined()
  work.resolve()
  await busy
  await clock.pass(999)
  expect(line.current).toBeDefined()
  await clock.pass(1_000)
  expect(line.current).toBeUndefined()
  expect(events).toEqual(['opened', 'closed'])
  await echo()
  expect(peers).toHaveLength(2)
  await line[Symbol.asyncDispose]()
  expect(clock.pending).toBe(0)
})

test('G2: a caller that stops waiting for a slow server does not affect the others', async () => {
  const slow = Promise.withResolvers<InitializedConnection>()
  const clock = createManualClock()
  const callbacks = { opened() {}, closed() {}, failed() {} }
  const line = new ManagedConnection(
    {
      server: 's',
      backoff: new ReconnectBackoff(clock),
      connectWithinMs: 120_000,
      idleMs: undefined,
      clock,
      log: silentLog,
    },
    {
      connect: () => slow.promise,
      ...callbacks,
    },
  )
  const impatient = new AbortController()
  const first = line.open(impatient.signal)
  const second = line.open(never)
  impatient.abort(new Error('gone'))
  await expect(first).rejects.toThrow('gone')
  const connection = await RpcConnection.open(scriptedPeer({}).transport, options, never)
  slow.resolve({ connection, handshake, identity })
  await expect(second).resolves.toMatchObject({ handshake })
})

test('B7: disposal ends an attempt under way and closes what is open', async () => {
  const { line, peers, echo } = lineWith()
  await echo()
  await line[Symbol.asyncDispose]()
  expect(peers[0]?.disposed).toBe(true)
  await expect(echo()).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
})

test('B7: a connection that cannot be closed does not stop the disposal', async () => {
  const { line } = lineWith()
  const fails = () => Promise.reject(new Error('cannot close'))
  const retired = await line.open(never)
  Object.assign(retired.connection, { [Symbol.asyncDispose]: fails })
  Object.defineProperty(retired.connection.transport, 'usable', { value: false })
  const current = await line.open(never)
  Object.assign(current.connection, { [Symbol.asyncDispose]: fails })
  await expect(line[Symbol.asyncDispose]()).resolves.toBeUndefined()
})

test('F12: a call that was sent is not sent again when another one finds the connection dead', async () => {
  const { line, peers, echo } = lineWith()
  await echo()
  const sent: string[] = []
  const slow = line.use({ signal: never }, ({ connection }) => {
    sent.push('slow')
    return connection.request({ method: 'never answered', params: () => undefined, signal: never })
  })
  const ended = expect(slow).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  await new Promise((resolve) => setImmediate(resolve))
  peers[0]?.failSilently()
  await echo()
  expect(peers).toHaveLength(2)
  peers[0]?.die()
  await ended
  expect(sent).toEqual(['slow'])
  expect(peers[0]?.disposed).toBe(true)
  await line[Symbol.asyncDispose]()
})

test('G2, T5: a process that keeps crashing is not restarted beyond its limit, reports that, and gets one start per window', async () => {
  const { clock, peers, echo, events } = lineWith({ restarts: { max: 2, window: 60_000 } })
  for (let crash = 0; crash < 3; crash++) {
    await echo()
    peers.at(-1)?.die('It crashed.')
  }
  const refused = await echo().catch((error) => error)
  expect(refused).toMatchObject({ code: 'SERVER_UNHEALTHY', details: { retryAfterMs: 60_000 } })
  expect(refused.message).toMatch(/restart limit.*next attempt in 60 s.*It crashed\./)
  expect(refused.details.unsent).toBeUndefined()
  expect(events.at(-1)).toBe('failed')
  clock.advance(60_000)
  await echo()
  peers.at(-1)?.die('It crashed.')
  await expect(echo()).rejects.toMatchObject({ code: 'SERVER_UNHEALTHY' })
  expect(peers).toHaveLength(4)
})

test('F12: if opening the connection fails, the call counts as unsent', async () => {
  const { echo } = lineWith({ fails: () => true })
  await expect(echo()).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE', details: { unsent: true } })
})

test('T5: a call to a server that is known to be down does not wait long for an attempt that hangs', async () => {
  const clock = createManualClock()
  let attempts = 0
  const hanging = Promise.withResolvers<InitializedConnection>()
  const line = new ManagedConnection(
    {
      server: 's',
      backoff: new ReconnectBackoff(clock, { random: () => 0 }),
      connectWithinMs: 120_000,
      idleMs: undefined,
      clock,
      log: silentLog,
    },
    {
      connect: () =>
        ++attempts === 1 ? Promise.reject(new ToolwayError('SERVER_UNAVAILABLE', 'refused')) : hanging.promise,
      opened() {},
      closed() {},
      failed() {},
    },
  )
  await expect(line.open(never)).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  const waiting = line.open(never).catch((error) => error)
  await clock.pass(5_000)
  expect(await waiting).toMatchObject({ code: 'SERVER_UNHEALTHY', details: { retryAfterMs: 1_000 } })
  const patient = line.open(never)
  const connection = await RpcConnection.open(scriptedPeer({}).transport, options, never)
  hanging.resolve({ connection, handshake, identity })
  await expect(patient).resolves.toMatchObject({ handshake })
  expect(attempts).toBe(2)
  await line[Symbol.asyncDispose]()
  expect(clock.pending).toBe(0)
})

test('T5: replacing a connection ends calls in flight as unknown, and the next one starts when the old one has ended', async () => {
  const { line, peers, echo, events, clock } = lineWith()
  await echo()
  const slow = line.use({ signal: never }, ({ connection }) =>
    connection.request({ method: 'never answered', params: () => undefined, signal: never }),
  )
  const ended = expect(slow).rejects.toMatchObject({
    code: 'OUTCOME_UNKNOWN',
    message: expect.stringMatching(/^It hangs\./),
  })
  await new Promise((resolve) => setImmediate(resolve))
  line.replace(new ToolwayError('SERVER_UNAVAILABLE', 'It hangs.'))
  await ended
  await expect(echo()).rejects.toMatchObject({ code: 'SERVER_UNHEALTHY' })
  expect(events).toEqual(['opened', 'closed: It hangs.', 'failed'])
  clock.advance(1_000)
  await echo()
  expect(peers.map(({ disposed }) => disposed)).toEqual([true, false])
})
