import { expect, test } from 'vitest'
import { callOf } from '../../core/call.fixture.ts'
import { Json } from '../../json/json.ts'
import { serverWith } from '../server.fixture.ts'

/** Calls the first tool of the server. */
const call = (server: ReturnType<typeof serverWith>['server']) => {
  const [entry] = server.entries()
  if (!entry) throw new Error('no entry')
  return entry.run(callOf({ entry, input: { arguments: Json.of({}), meta: {} } }))
}

test('G2, T5: an unused process sleeps, its tools stay, health says so, and the next call wakes it', async () => {
  const { server, clock, peers, names } = serverWith({ changes: { idle: '1m' } })
  await server.ready()
  await clock.pass(120_000)
  expect(peers[0]?.disposed).toBe(true)
  expect(names()).toEqual(['read'])
  expect(server.status()).toMatchObject({ health: 'healthy', reason: expect.stringContaining('idle') })
  await clock.pass(600_000)
  expect(peers).toHaveLength(1)
  await call(server)
  expect(peers).toHaveLength(2)
  expect(server.status()).toMatchObject({ health: 'healthy', reason: '' })
  await server[Symbol.asyncDispose]()
  expect(clock.pending).toBe(0)
})

test('T5: a server that hangs is detected without a call, and recovers automatically', async () => {
  let hangs = false
  const { server, clock, peers, warnings } = serverWith({ hangs: () => hangs })
  await server.ready()
  const changes: string[] = []
  server.onChange(() => changes.push(server.status().health))
  const pinged = () => peers[0]?.heard.some(({ method }) => method === 'ping')
  while (!pinged()) await clock.pass(1_000)
  hangs = true
  const start = clock.now()
  while (server.status().health !== 'unhealthy') await clock.pass(100)
  expect(clock.now() - start).toBeLessThanOrEqual(65_000)
  hangs = false
  expect(server.status()).toMatchObject({
    health: 'unhealthy',
    reason: expect.stringMatching(/within 5 s \(health\.timeout\)/),
  })
  expect(peers[0]?.disposed).toBe(true)
  expect(warnings.join()).toContain('server is unhealthy')
  await clock.pass(2_000)
  expect(server.status()).toMatchObject({ health: 'healthy', reason: '' })
  expect(changes).toEqual(expect.arrayContaining(['unhealthy', 'healthy']))
  expect(peers).toHaveLength(2)
  await server[Symbol.asyncDispose]()
  expect(clock.pending).toBe(0)
})

test('T5, T1: one that cannot be reached is refused before anything is sent, says when it is tried, and is back without a call', async () => {
  let down = false
  const { server, clock, peers } = serverWith({
    down: () => down,
    changes: { url: 'http://127.0.0.1:1/', command: undefined },
  })
  await server.ready()
  down = true
  peers[0]?.die()
  await expect(call(server)).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE', details: { unsent: true } })
  const refused = await call(server).catch((error) => error)
  expect(['SERVER_UNHEALTHY', 'SERVER_UNAVAILABLE']).toContain(refused.code)
  expect(server.status()).toMatchObject({ health: 'unhealthy', reason: expect.stringContaining('files is down.') })
  await clock.pass(300_000)
  expect(server.status().health).toBe('unhealthy')
  down = false
  await clock.pass(30_000)
  expect(server.status().health).toBe('healthy')
  expect(peers).toHaveLength(2)
  await server[Symbol.asyncDispose]()
  expect(clock.pending).toBe(0)
})

test('G2: an idle process is not restarted again and again', async () => {
  let starts = 0
  const down = () => ++starts > 0
  const { server, clock } = serverWith({ down, changes: { idle: '1m', restarts: { max: 100, window: '1m' } } })
  await server.refresh()
  await clock.pass(120_000)
  const tried = starts
  expect(tried).toBeGreaterThan(1)
  await clock.pass(3_600_000)
  expect(starts).toBe(tried)
  await server[Symbol.asyncDispose]()
  expect(clock.pending).toBe(0)
})
