/** `node bench/sandbox.ts [--json]`: what a program costs in each tier that works here. */
import { setTimeout as pause } from 'node:timers/promises'
import { configSchema } from '../src/config/schema.ts'
import { systemClock } from '../src/core/clock.ts'
import type { Language, Tier } from '../src/core/executor.ts'
import { silentLog } from '../src/core/log.ts'
import { SandboxExecutor } from '../src/sandbox/executor.ts'

const runs = 21
const calls = 1000
/** Long enough for the next child to come up, as long as the first has taken twice: this is about one that waits. */
const rest = (first: number) => pause(Math.min(4000, 2 * first))

interface Row {
  readonly tier: Tier
  readonly language: Language
  /** Milliseconds of `1+1`, with a child that waits for it. */
  readonly warm: { readonly p50: number; readonly p95: number }
  /** Milliseconds of `1+1` when even the tier has to be found. */
  readonly first: number
  /** Microseconds of one of a thousand host calls, one after the other and eight at a time. */
  readonly callInTurn: number
  readonly callAtOnce: number
}

const inTurn: Record<string, string> = {
  javascript: `for (let i = 0; i < ${calls}; i++) await host('echo', '{}')`,
  python: `for i in range(${calls}): host('echo', '{}')`,
}
const atOnce: Record<string, string> = {
  javascript: `await Promise.all(Array.from({ length: ${calls} }, () => host('echo', '{}'))); 1`,
  python: `import asyncio\nlen(await asyncio.gather(*[ahost('echo', '{}') for _ in range(${calls})]))`,
}

async function measure(tier: Tier, language: Language): Promise<Row | string> {
  const config = configSchema.parse({ sandbox: { minIsolation: 'worker' } }).sandbox
  const child = new URL('../src/sandbox/guest/main.ts', import.meta.url)
  const limits = { calls }
  await using executor = new SandboxExecutor({
    config,
    child,
    clock: systemClock,
    log: silentLog,
    limits,
    tiers: [tier],
  })
  const time = async (code: string): Promise<number> => {
    const begun = performance.now()
    const signal = new AbortController().signal
    const asked = { code, language, owner: 'bench', timeoutMs: 60_000, signal }
    const outcome = await executor.run({ ...asked, host: async (_, input) => input })
    const took = performance.now() - begun
    if (outcome.status !== 'ok') throw new Error(outcome.error?.message)
    return took
  }
  try {
    const first = await time('1+1')
    const times: number[] = []
    for (let run = 0; run < runs; run++) {
      await rest(first)
      times.push(await time('1+1'))
    }
    times.sort((a, b) => a - b)
    const at = (part: number) => times[Math.min(runs - 1, Math.floor(runs * part))] as number
    const perCall = async (code: string) => {
      await rest(first)
      return ((await time(code)) * 1000) / calls
    }
    const warm = { p50: at(0.5), p95: at(0.95) }
    const [turn, once] = [inTurn[language] as string, atOnce[language] as string]
    return { tier, language, warm, first, callInTurn: await perCall(turn), callAtOnce: await perCall(once) }
  } catch (error) {
    return `${language} in tier ${tier}: ${(error as Error).message}`
  }
}

const cases = [
  ['bwrap', 'javascript'],
  ['process', 'javascript'],
  ['worker', 'javascript'],
  ['bwrap', 'python'],
] as const

const rows: (Row | string)[] = []
for (const [tier, language] of cases) rows.push(await measure(tier, language))

if (process.argv.includes('--json')) process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`)
else {
  const line = (...cells: string[]) =>
    `${cells.map((cell, n) => (n < 2 ? cell.padEnd(12) : cell.padStart(14))).join('')}\n`
  process.stdout.write(line('tier', 'language', '1+1 p50', '1+1 p95', 'first', 'call in turn', '8 at once'))
  for (const row of rows) {
    if (typeof row === 'string') process.stdout.write(`${row}\n`)
    else {
      const { tier, language, warm, first, callInTurn, callAtOnce } = row
      const ms = [warm.p50, warm.p95, first].map((value) => `${value.toFixed(1)} ms`)
      process.stdout.write(line(tier, language, ...ms, `${callInTurn.toFixed(0)} µs`, `${callAtOnce.toFixed(0)} µs`))
    }
  }
}
