import { expect } from 'vitest'
import { startCounted } from '../../fixtures/counted-server.ts'
import { type LocalFleet, startFleet } from '../../fixtures/fleet.ts'
import { rawRequest, rawSession, rpc } from '../../fixtures/raw-http.ts'
import type { LocalToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { search } from './archive.ts'
import { countAllowed } from './limits.ts'
import type { Load } from './load.ts'
import { keptOne, looks } from './looks.ts'

/** Ended, or there and silent. */
export type Outage = 'stopped' | 'deaf'

const perMinute = 5

export interface Shaken extends LocalFleet {
  /** An agent of which nothing has been counted yet. */
  nextAgent(): string
}

const allow = { servers: ['*'] }

/** Three replicas with a tool whose results are kept, and with so many agents that each have a limit of their own. */
export async function startShaken(open: AsyncDisposableStack, agents: number): Promise<Shaken> {
  const { url } = open.use(await startCounted())
  const own = Array.from({ length: agents }, (_, n) => [`agent${n + 1}`, { perMinute, allow }])
  let last = 0
  const fleet = await startFleet(open, {
    mcpServers: { counted: { url } },
    // Counted in Redis, and never too many.
    agents: { load: { allow, perMinute: 1_000_000 }, ...Object.fromEntries(own) },
    defaults: { agent: 'load' },
    cache: { enabled: true, tools: ['counted.look'] },
    audit: { path: './audit', sync: 'all' },
  })
  await acquaint(fleet.replicas)
  return { ...fleet, nextAgent: () => `agent${++last}` }
}

/** Each replica learns the addresses of the others from Redis once a second; a request for a session of theirs teaches it at once. */
async function acquaint(replicas: readonly LocalToolway[]): Promise<void> {
  for (const owner of replicas) {
    const { headers } = await rawSession(owner)
    const knows = async ({ url }: LocalToolway) =>
      (await rawRequest(url, { headers, body: rpc(1, 'ping') })).status === 200
    for (const replica of replicas) await until(() => knows(replica), { what: 'a replica to know another' })
  }
}

/** What a call may wait for a Redis that does not answer: three times half a second. */
const mostWaitMs = 1_500
/** What a busy machine may add. A call that waits for a store itself waits far longer. */
const busyMs = 4_000
/** What a search may wait for a PostgreSQL that does not answer. */
const mostSearchMs = 3_000

/** Redis goes and comes back under load: limits and results are each replica's own meanwhile, and shared again after. */
export async function withoutRedis(fleet: Shaken, load: Load, how: Outage): Promise<void> {
  const { redis } = fleet
  const before = slowest(load, 0)
  const from = load.outcomes.length
  if (how === 'stopped') await redis.stop()
  else redis.freeze()
  await allSay(fleet, 'redis', 0)
  const alone = await counted(fleet, 6 * perMinute)
  expect(alone.allowed).toBeGreaterThanOrEqual(3 * perMinute)
  expect(alone.allowed).toBeLessThanOrEqual(3 * (perMinute + alone.back + 1))
  expect(await looks(fleet)).toEqual([1, 2, 3])
  await load.more(20)
  if (how === 'stopped') await redis.start()
  else redis.thaw()
  await allSay(fleet, 'redis', 1)
  expect(slowest(load, from)).toBeLessThan(before + mostWaitMs + busyMs)
  const together = await counted(fleet, 2 * perMinute)
  expect(together.allowed).toBeGreaterThanOrEqual(perMinute)
  expect(together.allowed).toBeLessThanOrEqual(perMinute + together.back + 1)
  expect(await looks(fleet, { kept: await keptOne(fleet) })).toEqual([1, 1, 1])
  await load.more(20)
}

/** PostgreSQL goes and comes back under load: nobody waits for it, and searches are answered from each replica's own log. */
export async function withoutPostgres(fleet: Shaken, load: Load, how: Outage): Promise<void> {
  const { postgres } = fleet
  const before = slowest(load, 0)
  const from = load.outcomes.length
  if (how === 'stopped') await postgres.stop()
  else postgres.freeze()
  const begun = performance.now()
  expect((await search(fleet.replicas[0] as LocalToolway, 'load-')).source).toBe('local')
  expect(performance.now() - begun).toBeLessThan(2 * mostSearchMs)
  await allSay(fleet, 'postgres', 0)
  await load.more(40)
  expect(slowest(load, from)).toBeLessThan(before + busyMs)
  if (how === 'stopped') await postgres.start()
  else postgres.thaw()
  await allSay(fleet, 'postgres', 1)
  expect((await search(fleet.replicas[0] as LocalToolway, 'load-')).source).toBe('postgres')
  await load.more(20)
}

const counted = ({ endpoint, nextAgent }: Shaken, calls: number) =>
  countAllowed(endpoint, { agent: nextAgent(), perMinute, calls })

const named = { redis: 'Redis', postgres: 'PostgreSQL' }

/** Waits until every replica has noticed that a store is there or not; then its metrics say so, too. */
async function allSay({ replicas }: LocalFleet, store: keyof typeof named, up: 0 | 1): Promise<void> {
  const noticed = ({ log }: LocalToolway) => {
    const last = log.lines.findLast(({ message }) => message.startsWith(`${named[store]} `))
    return last?.message.startsWith(`${named[store]} is available`) === (up === 1)
  }
  await until(() => replicas.every(noticed), { what: `${store} to be ${up ? 'there' : 'away'}` })
  for (const { url, token } of replicas) {
    const page = await fetch(new URL('/metrics', url), { headers: { authorization: `Bearer ${token}` } })
    expect(await page.text()).toContain(`toolway_store_up{store="${store}"} ${up}`)
  }
}

const slowest = ({ outcomes }: Load, from: number): number =>
  Math.max(...outcomes.slice(from).map(({ begun, ended }) => ended - begun))
