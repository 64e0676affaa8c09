/**
 * `node bench/fleet.ts [--json] [--rounds N]`: calls through one, two and three replicas that share a Redis, through two
 * workers of one machine, and through one process that shares nothing. On a machine with few cores the calls per second say
 * little; CPU per call is what a fleet multiplies.
 */
import { parseArgs } from 'node:util'
import { commandLine, descendants } from '../tests/fixtures/processes.ts'
import { startRedis } from '../tests/fixtures/redis.ts'
import { openFolders } from './folders.ts'
import { type Generator, startGenerator } from './load/generator-process.ts'
import type { Aim } from './load/orders.ts'
import { openSession } from './targets/session.ts'
import { reads, startToolway, stdioEcho } from './targets/toolway.ts'

const { values: options } = parseArgs({
  options: { json: { type: 'boolean', default: false }, rounds: { type: 'string', default: '5' } },
})
const inFlight = 16

interface Arm {
  readonly name: string
  readonly replicas: readonly { readonly aim: Aim; readonly pids: readonly number[]; readonly generator: Generator }[]
}

interface ArmOptions {
  readonly replicas?: number
  readonly more?: Record<string, unknown>
  readonly words?: readonly string[]
}

interface Sample {
  readonly callsPerSecond: number
  /** Of the replicas, with the process that looks after workers; not of Redis or the servers behind them. */
  readonly cpuMicros: number
}

await using open = new AsyncDisposableStack()
const { make } = open.use(await openFolders())
const redis = open.use(await startRedis())
const shared = { stores: { path: './state', redis: { url: redis.url } } }

async function arm(name: string, { replicas: count = 1, more = {}, words = [] }: ArmOptions = {}): Promise<Arm> {
  const replicas = []
  for (let number = 0; number < count; number++) {
    const folder = await make(name.replaceAll(' ', '-'))
    const target = open.use(await startToolway({ folder, servers: { echo: reads(stdioEcho()) }, more }, { words }))
    const session = await openSession({ ...target, era: 'modern' })
    const pids = [target.pid, ...descendants(target.pid).filter(isWorker)]
    replicas.push({ aim: session.calls('echo__echo'), pids, generator: open.use(startGenerator()) })
  }
  return { name, replicas }
}

const isWorker = (pid: number) => commandLine(pid).includes('main.ts serve')

/** The same number of calls in flight over all replicas, as a balancer would spread them. */
async function run({ replicas }: Arm): Promise<Sample> {
  const each = Math.ceil(inFlight / replicas.length)
  const samples = await Promise.all(
    replicas.map(({ aim, pids, generator }) => generator.run({ aim, inFlight: each, warmUpMs: 300, ms: 1_500, pids })),
  )
  const calls = samples.reduce((sum, sample) => sum + sample.calls, 0)
  return {
    callsPerSecond: samples.reduce((sum, { calls, ms }) => sum + (1_000 * calls) / ms, 0),
    cpuMicros: (1_000 * samples.reduce((sum, { cpuMs }) => sum + cpuMs, 0)) / calls,
  }
}

const arms = [
  await arm('alone'),
  await arm('2 workers', { words: ['--workers', '2'] }),
  await arm('1 replica', { more: shared }),
  await arm('2 replicas', { replicas: 2, more: shared }),
  await arm('3 replicas', { replicas: 3, more: shared }),
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
