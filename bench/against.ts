/**
 * `node bench/against.ts CHECKOUT [--rounds 15] [--seconds 1] [--json]`: compares this state with another checkout (with
 * its own node_modules) in one interleaved run. The other checkout runs twice, in two processes: how the two differ is
 * the noise of the machine. A ratio above 1 for calls/s, or below 1 for CPU and latency, means that this state is better.
 */
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { openFolders } from './folders.ts'
import { startGenerator } from './load/generator-process.ts'
import { callsPerSecond, compare, cpuMicrosPerCall, type Metric, p50, p99 } from './measure/comparison.ts'
import { type Arm, runRounds, type Series } from './measure/rounds.ts'
import { startChild } from './targets/child.ts'
import { openSession } from './targets/session.ts'
import { httpEcho, reads, startToolway, stdioEcho } from './targets/toolway.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '15' },
    seconds: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
  },
})
const [checkout] = positionals
if (checkout === undefined) throw new Error('Name the checkout to compare with: node bench/against.ts ../other')
const other = pathToFileURL(join(resolve(checkout), 'src/cli/main.ts'))

await using open = new AsyncDisposableStack()
const folders = open.use(await openFolders())
const generator = open.use(startGenerator())
const echo = open.use(await startChild('./echo-http.ts', []))

const cases = [
  { name: 'stdio, read', server: reads(stdioEcho()), era: 'legacy' },
  { name: 'stdio, read, 2026-07-28', server: reads(stdioEcho()), era: 'modern' },
  { name: 'stdio, write', server: stdioEcho(), era: 'legacy' },
  { name: 'HTTP, read', server: reads(httpEcho(echo.url)), era: 'legacy' },
] as const

const metrics: Readonly<Record<string, Metric>> = { 'calls/s': callsPerSecond, CPU: cpuMicrosPerCall, p50, p99 }

async function arm(name: string, { server, era }: (typeof cases)[number], program?: URL): Promise<Arm> {
  const folder = await folders.make('against')
  const target = open.use(await startToolway({ folder, servers: { echo: server } }, { program }))
  const session = await openSession({ ...target, era })
  return { name, aim: session.calls('echo__echo'), pids: [target.pid] }
}

const options = { rounds: Number(values.rounds), turnMs: Number(values.seconds) * 1000 }
for (const one of cases) {
  const arms = [await arm('this', one), await arm('other', one, other), await arm('other again', one, other)]
  for (const inFlight of [16, 1]) report(one.name, await runRounds(generator, arms, { ...options, inFlight }))
}

function report(name: string, { samples, failures, inFlight }: Series): void {
  if (failures.size > 0) throw new Error(`${name}: ${[...failures].join(', ')}`)
  const of = (armName: string) => samples.get(armName) ?? []
  for (const [metric, figure] of Object.entries(metrics)) {
    // Latencies only mean something without queueing, throughput only with it.
    if (metric.startsWith('p') !== (inFlight === 1)) continue
    const { ratio, noise } = compare(of('this'), [of('other'), of('other again')], figure)
    const row = { case: name, inFlight, metric, ratio, noise }
    process.stdout.write(
      values.json
        ? `${JSON.stringify(row)}\n`
        : `${name.padEnd(26)} ${metric.padEnd(8)} ${ratio.toFixed(3)}× (noise ±${(noise * 100).toFixed(1)} %)\n`,
    )
  }
}
