import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { callOf } from '../../core/call.fixture.ts'
import { ToolwayError } from '../../core/errors.ts'
import { silentLog } from '../../core/log.ts'
import type { HandshakeResult } from '../connection/handshake.ts'
import { ManagedConnection } from '../connection/managed-connection.ts'
import { ReconnectBackoff } from '../connection/reconnect.ts'
import { RpcConnection } from '../connection/rpc-connection.ts'
import { type ScriptedPeer, scriptedPeer } from '../peer.fixture.ts'
import { encodeRequest } from '../requests/encode-request.ts'
import { HealthCheck } from './health-check.ts'

const never = new AbortController().signal

/** One connection to a server with these answers, checked every 30 s with a timeout of 5 s. */
async function checked(
  answers: Parameters<typeof scriptedPeer>[0] = {},
  era: HandshakeResult['era'] = 'legacy',
  capabilities: HandshakeResult['capabilities'] = {},
) {
  const clock = createManualClock()
  const peers: ScriptedPeer[] = []
  const lost: string[] = []
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
      async connect(signal) {
        const peer = scriptedPeer({ hello: () => ({}), ...answers })
        peers.push(peer)
        const connection = await RpcConnection.open(
          peer.transport,
          { server: 's', owned: false, log: silentLog },
          signal,
        )
        await connection.request({ method: 'hello', params: () => undefined, signal })
        const handshake = { era, protocolVersion: '1', serverInfo: {}, capabilities }
        return { connection, handshake, identity: { name: 'toolway', version: '1' } }
      },
      opened() {},
      closed: (error) => lost.push(error?.message ?? 'closed'),
      failed() {},
    },
  )
  const checks = new HealthCheck({
    server: 's',
    intervalMs: 30_000,
    timeoutMs: 5_000,
    connections: () => [line],
    healthMayHaveChanged() {},
    clock,
    log: silentLog,
  })
  await line.open(never)
  checks.opened()
  const pings = () => peers[0]?.heard.filter(({ method }) => /ping|discover/.test(method ?? '')).length
  const call = (signal = never) =>
    line.use({ signal: never }, (open) =>
      open.connection.request(
        encodeRequest(open, { method: 'tools/call', capabilities: {}, signal, peer: callOf().peer }),
      ),
    )
  return { clock, line, checks, lost, pings, call, peers }
}

test.each([
  ['legacy', 'ping'],
  ['modern', 'server/discover'],
] as const)('T5: an idle connection of the %s era is checked with %s, an active one is not', async (era, method) => {
  const { clock, pings, lost, checks, line } = await checked({ [method]: () => ({}) }, era)
  await clock.pass(30_000)
  expect(pings()).toBe(0)
  await clock.pass(30_000)
  expect(pings()).toBe(1)
  await clock.pass(60_000)
  expect(pings()).toBe(3)
  expect([lost, checks.degradation]).toEqual([[], undefined])
  checks[Symbol.dispose]()
  await line[Symbol.asyncDispose]()
  expect(clock.pending).toBe(0)
})

test('T5: a server that does not support ping counts as alive', async () => {
  const { clock, pings, lost } = await checked({ ping: () => ({ error: { code: -32601, message: 'what?' } }) })
  await clock.pass(120_000)
  expect([pings(), lost]).toEqual([3, []])
})

test('T5: one that hangs is given up, with a sentence that says why', async () => {
  const { clock, lost, line } = await checked()
  await clock.pass(64_999)
  expect(lost).toEqual([])
  await clock.pass(1)
  expect(lost).toEqual([expect.stringContaining('within 5 s (health.timeout)')])
  expect(line.current).toBeUndefined()
})

test('T5: one that did not answer a check in time is not given up where this process was paused', async () => {
  const { clock, lost, pings } = await checked()
  await clock.pass(60_000)
  expect(pings()).toBe(1)
  clock.pause(600_000)
  await clock.pass(0)
  expect(lost).toEqual([])
  // At the next check, the server has the full time to answer.
  await clock.pass(35_000)
  expect(lost).toHaveLength(1)
})

test('T5: an answer that was waiting to be read while this process was paused is not a slow one', async () => {
  const answered = Promise.withResolvers<object>()
  const { clock, checks, lost } = await checked({
    ping() {
      // The timer of the check is late as well, and runs only after the messages that have arrived were read.
      setImmediate(() => answered.resolve({}))
      return answered.promise
    },
  })
  await clock.pass(60_000 - 1)
  const after = clock.after
  clock.after = (ms, callback) => after(ms === 5_000 ? 20_000 : ms, callback)
  clock.advance(1)
  clock.advance(10_000)
  await clock.pass(0)
  expect([checks.degradation, lost]).toEqual([undefined, []])
})

test('T5: one that works on a call has the time of the call, and is called strained meanwhile', async () => {
  const { clock, lost, call, peers, checks } = await checked()
  const slow = call()
  await clock.pass(200_000)
  expect(lost).toEqual([])
  expect(checks.degradation).toMatch(/while a call is running/)
  peers[0]?.say({ id: 2, result: {} })
  await slow
  await clock.pass(30_000)
  expect(checks.degradation).toBeUndefined()
})

test('T5: if calls have timed out, too, the server counts as hung, and later calls fail fast', async () => {
  const { clock, lost, call } = await checked()
  await clock.pass(30_000)
  const first = new AbortController()
  const ended = expect(call(first.signal)).rejects.toThrow('too late')
  const second = call().catch((error) => error)
  await clock.pass(20_000)
  first.abort(new ToolwayError('TIMEOUT', 'too late'))
  await ended
  await clock.pass(20_000)
  expect(lost).toEqual([])
  await clock.pass(30_000)
  expect(lost).toHaveLength(1)
  expect(await second).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
})

test('T5: a slow answer makes it degraded until a quick one', async () => {
  let slow = true
  const { clock, checks, lost } = await checked({
    ping: () => (slow ? new Promise((resolve) => clock.after(4_000, () => resolve({}))) : {}),
  })
  await clock.pass(70_000)
  expect(checks.degradation).toContain('4000 ms')
  slow = false
  await clock.pass(30_000)
  expect([checks.degradation, lost]).toEqual([undefined, []])
})

test('T5: no check runs while no connection is open', async () => {
  const { clock, line, checks } = await checked()
  await line[Symbol.asyncDispose]()
  await clock.pass(30_000)
  expect(clock.pending).toBe(0)
  checks[Symbol.dispose]()
})

test('T5: one that leaves a ping without an answer is asked for a list before it is taken for hung', async () => {
  const { clock, lost, peers, checks } = await checked({ 'tools/list': () => ({ tools: [] }) }, 'legacy', { tools: {} })
  await clock.pass(300_000)
  expect(lost).toEqual([])
  expect(checks.degradation).toBeUndefined()
  const asked = peers[0]?.heard.map(({ method }) => method).filter((method) => /ping|list/.test(method ?? ''))
  expect(asked?.slice(0, 3)).toEqual(['ping', 'tools/list', 'tools/list'])
})

test('T5: a server with lists that answered pings and now answers nothing counts as hung', async () => {
  let hangs = false
  const { clock, lost } = await checked({ ping: () => (hangs ? undefined : {}) }, 'legacy', { tools: {} })
  await clock.pass(61_000)
  hangs = true
  await clock.pass(34_000)
  expect(lost).toHaveLength(1)
})

test('T5: one that cannot be reached any more is given up at the first check', async () => {
  const { clock, lost, peers } = await checked()
  await clock.pass(59_999)
  peers[0]?.failSilently()
  await clock.pass(1)
  expect(lost).toEqual(['The process has ended.'])
})
