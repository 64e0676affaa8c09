/**
 * `node bench/fleet.ts [--json] [--rounds N]`: calls through one, two and three replicas that share a Redis, and through
 * one that shares nothing. On a machine with few cores the calls per second say little; CPU per call is what a fleet
 * multiplies.
 */
import { parseArgs } from 'node:util'
import { startRedis } from '../tests/fixtures/redis.ts'
import { openFolders } from './folders.ts'
import { type Generator, startGenerator } from './load/generator-process.ts'
import type { Aim } from './load/orders.ts'
import { type Era, openSession } from './targets/session.ts'
import { reads, startToolway, stdioEcho } from './targets/toolway.ts'

const { values: options } = parseArgs({
  options: { json: { type: 'boolean', default: false }, rounds: { type: 'string', default: '5' } },
})
const inFlight = 16

interface Arm {
  readonly name: string
  readonly replicas: readonly { readonly aim: Aim; readonly pid: number; readonly generator: Generator }[]
}

interface Sample {
  readonly callsPerSecond: number
  /** Of the replicas, not of Redis or the servers behind them. */
  readonly cpuMicros: number
}

await using open = new AsyncDisposableStack()
const { make } = open.use(await openFolders())
const redis = open.use(await startRedis())
const shared = { stores: { path: './state', redis: { url: redis.url } } }

async function arm(name: string, count: number, more: Record<string, unknown>, era: Era): Promise<Arm> {
  const replicas = []
  for (let number = 0; number < count; number++) {
    const folder = await make(name.replaceAll(' ', '-'))
    const target = open.use(await startToolway({ folder, servers: { echo: reads(stdioEcho()) }, more }))
    const session = await openSession({ ...target, era })
    replicas.push({ aim: session.calls('echo__echo'), pid: target.pid, generator: open.use(startGenerator()) })
  }
  return { name, replicas }
}

/** The same number of calls in flight over all replicas, as a balancer would spread them. */
async function run({ replicas }: Arm): Promise<Sample> {
  const each = Math.ceil(inFlight / replicas.length)
  const samples = await Promise.all(
    replicas.map(({ aim, pid, generator }) =>
      generator.run({ aim, inFlight: each, warmUpMs: 300, ms: 1_500, pids: [pid] }),
    ),
  )
  const calls = samples.reduce((sum, sample) => sum + sample.calls, 0)
  return {
    callsPerSecond: samples.reduce((sum, { calls, ms }) => sum + (1_000 * calls) / ms, 0),
    cpuMicros: (1_000 * samples.reduce((sum, { cpuMs }) => sum + cpuMs, 0)) / calls,
  }
}

const arms = [
  await arm('alone', 1, {}, 'modern'),
  await arm('1 replica', 1, shared, 'modern'),
  await arm('2 replicas', 2, shared, 'modern'),
  await arm('3 replicas', 3, shared, 'modern'),
]
const found = new Map<string, Sample[]>(arms.map(({ name }) => [name, []]))
// Interleaved, so that whatever the machine does happens to all of them; the first round only warms up.
for (let round = 0; round <= Number(options.rounds); round++) {
  for (const one of arms) {
    const sample = await run(one)
    if (round > 0) found.get(one.name)?.push(sample)
  }
}

const median = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] as number
const rows = [...found].map(([name, samples]) => ({
  name,
  callsPerSecond: Math.round(median(samples.map((sample) => sample.callsPerSecond))),
  cpuMicros: Math.round(median(samples.map((sample) => sample.cpuMicros))),
}))
if (options.json) console.log(JSON.stringify(rows))
else console.table(rows)
