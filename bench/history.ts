/**
 * `node bench/history.ts`: what keeping the history costs for each call, in CPU time of the thread that serves calls and
 * of the thread that writes. The target is 3 % of a call; a call over HTTP is measured in the same run, because a busy
 * machine makes everything take longer. With `history.disabled` there is no observer and no listener, so what remains is
 * one check for a listener per call: two such variants are measured, and their difference is the noise of the run. All
 * variants take turns in many short rounds.
 */
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { callOf, entryOf } from '../src/core/call.fixture.ts'
import type { Call } from '../src/core/call.ts'
import { systemClock } from '../src/core/clock.ts'
import { silentLog } from '../src/core/log.ts'
import type { Observer } from '../src/core/observer.ts'
import { sqliteHistory } from '../src/stores/sqlite/history-store.ts'
import { createRecentCalls } from '../src/telemetry/calls/call-records.ts'
import { HistoryRecorder } from '../src/telemetry/history/history-recorder.ts'
import { connect } from '../tests/fixtures/clients.ts'
import { startCommand } from '../tests/fixtures/command.ts'
import { temporaryFolder } from '../tests/fixtures/folders.ts'

const clock = systemClock
const redact = (text: string) => text
const say = (line: string) => process.stdout.write(`${line}\n`)
const entries = Array.from({ length: 200 }, (_, n) => entryOf({ server: `server${n % 10}`, name: `tool_${n}` }))

/** Calls of 200 tools by 5 agents; one in four is answered from the cache. */
const callsOf = (count: number): Call[] =>
  Array.from({ length: count }, (_, n) => {
    const { caller, ...call } = callOf({ entry: entries[n % entries.length] })
    return { ...call, id: `01890a5d-ac96-774b-bcce-${n}`, caller: { ...caller, agent: `agent${n % 5}` } }
  })

interface Cost {
  readonly serving: number
  readonly all: number
}

/** Makes calls at a steady rate, as clients do, and measures microseconds of CPU time for each. */
async function measure(observers: readonly Observer[], perSecond: number, seconds: number): Promise<Cost> {
  const burst = perSecond / 100
  const calls = callsOf(perSecond)
  const before = process.cpuUsage()
  const beforeHere = process.threadCpuUsage()
  let made = 0
  for (let tick = 0; tick < seconds * 100; tick++) {
    for (let n = 0; n < burst; n++) {
      const call = calls[made++ % calls.length] as Call
      const start = performance.now()
      const steps = [{ name: 'attempt' as const, start: start - 4, end: start }]
      const trail = made % 4 === 0 ? { cache: 'hit' as const, steps: [] } : { steps }
      const observed = {
        call,
        operation: 'call_tool' as const,
        at: clock.now(),
        start,
        end: start,
        ms: (made * 37) % 200,
        trail,
      }
      for (const observer of observers) observer.ended({ ...observed, outcome: { kind: 'answered' } })
    }
    await setTimeout(10)
  }
  await setTimeout(2_100)
  const sum = ({ user, system }: { user: number; system: number }) => (user + system) / made
  return { serving: sum(process.threadCpuUsage(beforeHere)), all: sum(process.cpuUsage(before)) }
}

/** Measures several variants in turns. What else the machine does only ever adds, so the least counts. */
async function least(variants: readonly (readonly Observer[])[], perSecond: number): Promise<Cost[]> {
  const rounds: Cost[][] = variants.map(() => [])
  for (let round = 0; round < 8; round++) {
    for (const [index, observers] of variants.entries()) rounds[index]?.push(await measure(observers, perSecond, 0.5))
  }
  return rounds.map((costs) => {
    const serving = Math.min(...costs.map((cost) => cost.serving))
    return { serving, all: serving + Math.min(...costs.map((cost) => cost.all - cost.serving)) }
  })
}

/** Microseconds of CPU time that the serving thread of a gateway without history takes for a call over HTTP. */
async function wholeCall(): Promise<number> {
  await using toolway = await startCommand({ history: { disabled: true } })
  await using client = await connect('v2', { endpoint: toolway })
  const call = () => client.callTool('hash', { data: 'x' })
  const ticksOf = () => {
    const fields =
      readFileSync(`/proc/${toolway.pid}/task/${toolway.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return Number(fields[11]) + Number(fields[12])
  }
  const rounds: number[] = []
  for (let round = 0; round < 3; round++) {
    const before = ticksOf()
    for (let made = 0; made < 1_000; made++) await call()
    rounds.push(((ticksOf() - before) * 10_000) / 1_000)
  }
  return Math.min(...rounds)
}

const callUs = await wholeCall()
const targetUs = 0.03 * callUs
say(`a call over HTTP to a native tool, without history: ${callUs.toFixed(0)} µs of serving time`)

for (const perSecond of [500, 5_000]) {
  await using folder = await temporaryFolder()
  await using store = sqliteHistory({
    ...{
      folder: folder.path,
      captures: { keepMs: 0, maxBytes: 0 },
      startedAt: clock.now(),
      keepMs: 30 * 86_400_000,
      maxBytes: 256 * 1024 * 1024,
      clock,
      log: silentLog,
    },
    thread: new URL('../src/stores/sqlite/history-thread.ts', import.meta.url),
  })
  const recorder = new HistoryRecorder({ store, clock, redact })
  const control = createRecentCalls({ clock, redact })
  const on = createRecentCalls({ clock, redact, onEnded: (call) => recorder.add(call) })
  const disabled = createRecentCalls({ clock, redact, onEnded: undefined })
  const variants = [[control.observer], [disabled.observer], [recorder.observer, on.observer]]
  for (const observers of variants) await measure(observers, perSecond, 1)
  const [without, off, withHistory] = (await least(variants, perSecond)) as [Cost, Cost, Cost]
  const serving = withHistory.serving - without.serving
  const writing = withHistory.all - withHistory.serving - (without.all - without.serving)
  const share = (us: number) =>
    `${us.toFixed(2)} µs of serving time for each call (${((100 * us) / callUs).toFixed(1)} %)`
  const met = serving <= targetUs ? 'met' : 'missed'
  const rate = `${perSecond.toLocaleString('en')} calls/s`
  say(`${rate}, history off, compared with itself: ${share(off.serving - without.serving)}`)
  say(
    `${rate}, history on: ${share(serving)}, target 3 % ${met}; ${writing.toFixed(2)} µs of the writing thread, ${recorder.use().refused.toLocaleString('en')} calls only counted`,
  )
}
