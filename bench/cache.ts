/** `node bench/cache.ts`: what a hit of the result cache costs, and what a miss adds to a call. The target is 5 µs a hit of small arguments. */
import { type Config, configSchema } from '../src/config/schema.ts'
import { callOf, entryOf } from '../src/core/call.fixture.ts'
import type { Call, Handler } from '../src/core/call.ts'
import { type Clock, systemClock } from '../src/core/clock.ts'
import type { Result } from '../src/core/result.ts'
import { Json } from '../src/json/json.ts'
import { members } from '../src/json/json-text.ts'
import { cache } from '../src/pipeline/cache/cache.ts'
import { cacheRules } from '../src/pipeline/cache/rules.ts'
import { memoryCache } from '../src/stores/cache.ts'

const targetNs = 5_000
const config = configSchema.parse({
  mcpServers: { files: { command: 'files', readTools: ['*'] } },
  cache: { enabled: true, maxEntries: 10_000 },
}) as Config
const clock: Clock = systemClock
const entry = entryOf({ traits: { readOnly: true, idempotent: true, timeoutMs: 30_000 } })
const { caller } = callOf()
const body = Buffer.from(JSON.stringify({ content: [{ type: 'text', text: 'x'.repeat(200) }] }))

/** The arguments of a call, parsed as the front end parses them. */
const small = (number: number) => ({ path: `/home/somebody/project/file-${number}.ts` })
const usual = (number: number) => ({
  ...small(number),
  head: 40,
  options: { encoding: 'utf8', follow: false },
  tags: ['a', 'b'],
})
const large = (number: number) => ({ ...usual(number), text: 'lorem ipsum '.repeat(340) })

/** A call as it arrives: with objects of its own. */
const callsOf = (argumentsOf: (number: number) => object, count: number): (() => Call) => {
  const values = Array.from({ length: count }, (_, number) => argumentsOf(number) as Record<string, unknown>)
  let made = 0
  const signal = new AbortController().signal
  return () => ({
    ...callOf({ entry, caller: { ...caller }, signal }),
    input: { arguments: Json.of(values[made++ % count] as Record<string, unknown>), meta: { progressToken: made } },
  })
}

const run: Handler = async () => ({ body: Json.raw(body), isError: false })

/** Nanoseconds per call, without what it costs to make one. */
async function measure(handle: (call: Call) => Promise<Result>, next: () => Call, calls: number): Promise<number> {
  const batch = 1_000
  let spent = 0n
  for (let done = 0; done < calls; done += batch) {
    const made = Array.from({ length: batch }, next)
    const start = process.hrtime.bigint()
    for (const call of made) await handle(call)
    spent += process.hrtime.bigint() - start
  }
  return Number(spent) / calls
}

const best = async (rounds: number, measured: () => Promise<number>): Promise<number> => {
  // The best of a few rounds: whatever else the machine does only ever adds.
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) least = Math.min(least, await measured())
  return least
}

const open = () => {
  const kept = cache({ store: memoryCache(config.cache), members, clock })
  const layer = kept.interceptor(cacheRules(config, () => undefined))
  if (layer === undefined) throw new Error('nothing is cached')
  return { ...kept, handle: (call: Call) => layer(call, run) }
}

const microseconds = (ns: number) => `${(ns / 1000).toFixed(2)} µs`
const bare = await best(4, () => measure(run, callsOf(small, 100), 200_000))
process.stdout.write(`cache: a call without it ${microseconds(bare)} (the bench's own cost)\n`)
for (const [name, argumentsOf] of Object.entries({ small, usual, large })) {
  const { handle, stats } = open()
  const hits = await best(4, () => measure(handle, callsOf(argumentsOf, 500), 200_000))
  const { hits: counted, misses } = stats()
  // Each has arguments of its own, so that none is ever found.
  const other = open()
  let number = 0
  const misser = callsOf((index) => argumentsOf(index + 1_000_000 * ++number), 50_000)
  const miss = await best(1, () => measure(other.handle, misser, 50_000))
  process.stdout.write(
    `cache: ${name} arguments: a hit ${microseconds(hits)}, a miss adds ${microseconds(miss - bare)}; ` +
      `hit rate ${((100 * counted) / (counted + misses)).toFixed(2)} %` +
      (name === 'small' ? `; target ${microseconds(targetNs)} ${hits < targetNs ? 'met' : 'missed'}\n` : '\n'),
  )
}
