import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Overview } from '../../../src/admin/contract.ts'
import { attack, attacks } from '../../fixtures/attacks.ts'
import { type Command, startCommand } from '../../fixtures/command.ts'
import { type HttpServer, startHttpServer } from '../../fixtures/http-server.ts'
import { rawModern } from '../../fixtures/raw-callers.ts'
import { rawSession } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { until } from '../../fixtures/until.ts'
import { asking, keyFor, originOf } from '../admin/people.ts'

/**
 * An attack lasts for 0.6 s, or less if the bystander has called often enough meanwhile. One that reaches a bound goes
 * on until something was refused.
 */
const attackMs = { most: 600, least: 200 }
const enoughRounds = 5

const [attacker, bystander] = [keyFor('attacker', ['default']), keyFor('bystander', ['default'])]

let web: HttpServer
let gateway: Command
/** Calls a tool of each server, the one in a session, the other without, and fails if a call does. */
let callBoth: () => Promise<void>
let budgets: () => Promise<Overview['budgets']>

beforeAll(async () => {
  web = await startHttpServer()
  gateway = await startCommand({
    mcpServers: {
      files: { ...stdioServers.everything(), concurrency: 8 },
      web: { url: web.url, concurrency: 8 },
    },
    // Small enough for the attacks to reach them.
    limits: { concurrency: 16, queue: 16 },
    server: { maxInFlight: '32MiB', maxInFlightPerCaller: '6MiB', maxConnectionsPerAddress: 600 },
    auth: { keys: [attacker.configured, bystander.configured] },
  })
  const own = { ...gateway, token: bystander.key }
  const [session, stateless] = [await rawSession(own), rawModern(own)]
  callBoth = async () => {
    const calls = await Promise.all([
      session.ask('tools/call', { name: 'files__echo', arguments: { message: 'here' } }),
      stateless('tools/call', { name: 'web__echo', arguments: { message: 'here' } }),
    ])
    for (const text of calls) expect(JSON.parse(text).result?.content, text).toMatchObject([{ text: 'Echo: here' }])
  }
  const ask = asking(originOf(gateway), gateway.token)
  budgets = async () => ((await ask('overview')).json as Overview).budgets
  await callBoth()
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await web[Symbol.asyncDispose]()
})

/** Runs an attack beside a bystander. Returns what the bystander and an operator have seen. */
async function watch(one: (typeof attacks)[number]) {
  const refusals = (all: Overview['budgets']) => all.find(({ name }) => name === one.reaches)?.refused ?? 0
  const before = refusals(await budgets())
  const over = new AbortController()
  const attacking = attack(one, { ...gateway, token: attacker.key }, over.signal)
  const begun = performance.now()
  const failures: unknown[] = []
  const exceeded: Overview['budgets'][number][] = []
  let answered = 0
  const enough = (rounds: number) =>
    performance.now() - begun >= (rounds < enoughRounds ? attackMs.most : attackMs.least)
  let reached = one.reaches === undefined
  for (let rounds = 0; !reached || !enough(rounds); rounds++) {
    await callBoth().then(
      () => answered++,
      (thrown: unknown) => failures.push(thrown),
    )
    const now = await budgets()
    exceeded.push(...now.filter(({ used, limit, largest, perCaller }) => used > limit || largest > perCaller))
    reached ||= refusals(now) > before
  }
  over.abort()
  await attacking
  return { answered, failures, exceeded }
}

describe('V6: one caller who attacks costs another caller no call, and exceeds no bound', () => {
  test.each(attacks)('V6: $name ($protocol)', async (one) => {
    const { answered, failures, exceeded } = await watch(one)
    expect(failures).toEqual([])
    expect(exceeded).toEqual([])
    expect(answered).toBeGreaterThan(0)
  })

  test('V6: the attacks leave nothing behind that waits', async () => {
    const gone = ['queued_calls', 'request_bytes', 'response_bytes', 'streams', 'subscriptions']
    const left = async () => (await budgets()).filter(({ name, used }) => gone.includes(name) && used > 0)
    await until(async () => (await left()).length === 0, { what: 'everything to be given back' })
    await callBoth()
  })
})
