/** `node bench/traces.ts`: what watching a call costs, and what tracing it costs, in CPU time for each call. */
import { setTimeout } from 'node:timers/promises'
import { callOf, entryOf } from '../src/core/call.fixture.ts'
import type { Call } from '../src/core/call.ts'
import { systemClock } from '../src/core/clock.ts'
import { silentLog } from '../src/core/log.ts'
import { textResult } from '../src/core/result.ts'
import { attemptInSteps } from '../src/pipeline/attempt.ts'
import type { Watch } from '../src/pipeline/observe.ts'
import { recordedBy } from '../src/pipeline/pipeline.fixture.ts'
import type { TraceSampling } from '../src/telemetry/traces/call-spans.ts'
import { createExporter } from '../src/telemetry/traces/exporter.ts'
import type { OtlpClient } from '../src/telemetry/traces/otlp-client.ts'
import { createTraceEncoder } from '../src/telemetry/traces/otlp-client.ts'
import { createTracer } from '../src/telemetry/traces/traces.ts'

const clock = systemClock
const calls = 100_000
const result = textResult('x')

/** A call of a server's tool from a client over HTTP that is traced itself. */
const { caller, peer, input } = callOf()
const call: Call = callOf({
  entry: entryOf({ run: () => Promise.resolve(result) }),
  caller: { ...caller, address: '127.0.0.1' },
  peer: { ...peer, request: { id: 7, revision: '2025-11-25' } },
  input: { ...input, meta: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' } },
})

/** A receiver that takes everything at once: what is left is our own part. */
const post: OtlpClient = {
  send: async () => ({ kind: 'taken', rejected: 0 }),
  async [Symbol.asyncDispose]() {},
}
const encode = createTraceEncoder({}, '0')
const exporter = createExporter({ post, encode, receiver: 'bench', clock, log: silentLog })
const servers = new Map([['files', { attributes: '', protocolVersion: () => '2025-11-25' }]])

const traced = (sampling: TraceSampling): Watch => {
  const tracer = createTracer({ sampling, exporter, clock, redact: (text) => text, servers })
  return { observers: [tracer], tracing: tracer, clock }
}

const rows: Readonly<Record<string, Watch>> = {
  'nobody watches': { observers: [], clock },
  'one watches': { observers: [{ ended() {} }], clock },
  'traced, not recorded': traced({ parentBased: false, ratio: 0 }),
  'traced, two spans recorded, encoded and sent': traced({ parentBased: true, ratio: 1 }),
}

/** The best of a few rounds: whatever else the machine does only ever adds. */
async function measure(watch: Watch): Promise<number> {
  const handle = recordedBy(
    watch,
    attemptInSteps(watch, [], ({ entry }) => entry.run(call)),
  )
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 6; round++) {
    const before = process.cpuUsage()
    for (let made = 0; made < calls; made++) await handle(call)
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / calls)
    await setTimeout(20)
  }
  return best
}

const bare = await measure(rows['nobody watches'] as Watch)
for (const [name, watch] of Object.entries(rows)) {
  process.stdout.write(`${name}: ${((await measure(watch)) - bare).toFixed(2)} µs more for each call\n`)
}
await exporter[Symbol.asyncDispose]()
const { sent, dropped } = exporter.stats()
process.stdout.write(`${sent.toLocaleString('en')} spans sent, ${dropped.toLocaleString('en')} dropped\n`)
