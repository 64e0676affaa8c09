/**
 * `node bench/code-mode.ts`: what a small program costs in the sandbox of this machine, through the whole pipeline, alone
 * and sixteen at once, and what calls from inside a program cost, of a tool in this process and of one over stdio.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Caller } from '../src/core/call.ts'
import { Json } from '../src/json/json.ts'
import type { Gateway } from '../src/runtime/gateway-api.ts'
import { startToolway } from '../tests/fixtures/toolway.ts'
import { median } from './measure/statistics.ts'

const runs = 30
const rounds = 5
const callsInOne = 200
const atOnce = 16
/** Time for the next children to start, in milliseconds. */
const afterBurstMs = 10_000

interface Ran {
  readonly status: string
  readonly isolation: string
  readonly value?: unknown
  readonly error?: { readonly message: string }
}

await using toolway = await startToolway({
  mcpServers: {
    echo: { command: process.execPath, args: [fileURLToPath(new URL('./targets/echo-stdio.ts', import.meta.url))] },
  },
  // What is written down is measured elsewhere.
  audit: { sync: 'none' },
})
const { gateway } = toolway
await gateway.refresh()
const caller = gateway.local
const { isolation } = await run(gateway, caller, '1+1')
process.stdout.write(`code mode, isolation ${isolation}\n`)

for (const [what, more, pauseMs] of [
  ['1+1, once a second (a spare engine is warm)', {}, 1000],
  ['1+1, once a second in a named environment', { environment: 'bench' }, 1000],
  ['1+1, without a pause (each engine is started anew)', {}, 0],
  ['1+1, without a pause in a named environment', { environment: 'javascript' }, 0],
  ['TypeScript, without a pause in a named environment', { environment: 'typescript', language: 'typescript' }, 0],
  ['Python, without a pause in a named environment', { environment: 'python', language: 'python' }, 0],
] as const) {
  const times: number[] = []
  for (let made = 0; made < runs; made++) {
    if (pauseMs > 0) await setTimeout(pauseMs)
    times.push(await timed(() => run(gateway, caller, '1+1', more)))
  }
  const p95 = times.toSorted((a, b) => a - b)[Math.floor(0.95 * times.length)] as number
  process.stdout.write(`  ${what}: p50 ${median(times).toFixed(1)} ms, p95 ${p95.toFixed(1)} ms\n`)
}

for (const when of ['first', 'second, after a pause', 'third, after a pause']) {
  const programs = () => Promise.all(Array.from({ length: atOnce }, () => run(gateway, caller, '1+1')))
  process.stdout.write(`  ${atOnce} programs at once, ${when}: ${(await timed(programs)).toFixed(0)} ms\n`)
  await setTimeout(afterBurstMs)
}

for (const [what, call] of [
  ['native.hash', "tools.native.hash({ data: 'x' })"],
  ['echo over stdio', "tools.echo.echo({ message: 'x' })"],
] as const) {
  for (const [how, program] of [
    ['one by one', `for (let made = 0; made < ${callsInOne}; made++) await ${call}`],
    ['all at once', `await Promise.all(Array.from({ length: ${callsInOne} }, () => ${call}))`],
  ] as const) {
    const times: number[] = []
    for (let round = 0; round < rounds; round++) times.push(await timed(() => run(gateway, caller, program)))
    const total = times.reduce((sum, time) => sum + time, 0)
    const calls = rounds * callsInOne
    process.stdout.write(
      `  ${calls} calls of ${what}, ${how}: ${total.toFixed(0)} ms, ${((total / calls) * 1000).toFixed(0)} µs each, programs included\n`,
    )
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

/** Runs a program as a front end would. */
async function run({ view, handle }: Gateway, caller: Caller, code: string, more: object = {}): Promise<Ran> {
  const { entry } = await view(caller).find('tool', 'native', 'execute_code')
  const { body } = await handle({
    id: randomUUID(),
    caller,
    entry,
    input: { arguments: Json.of({ code, ...more }), meta: {} },
    signal: new AbortController().signal,
    peer: { rounds: false, logLevel: undefined, notify() {}, ask: () => Promise.reject(new Error('nobody to ask')) },
  })
  const ran = body.value.structuredContent as Ran
  if (ran.status !== 'ok') throw new Error(`${ran.status}: ${ran.error?.message}`)
  return ran
}
