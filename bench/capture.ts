/**
 * `node bench/capture.ts`: what capturing costs a call within the pipeline, without a server: off, on for another server
 * only, and on for this call with results of several sizes. The variants take turns, and the best round of each counts.
 * It counts CPU time, because the machine may be busy.
 */
import { captureJson, createRedactor } from '../src/audit/redact/redactor.ts'
import { noAudit } from '../src/core/audit.ts'
import { callOf, entryOf } from '../src/core/call.fixture.ts'
import type { Call } from '../src/core/call.ts'
import { systemClock } from '../src/core/clock.ts'
import { silentLog } from '../src/core/log.ts'
import type { Result } from '../src/core/result.ts'
import { Json } from '../src/json/json.ts'
import { capture } from '../src/pipeline/capture.ts'
import { openPipeline } from '../src/pipeline/pipeline.fixture.ts'
import { memoryCaptures } from '../src/stores/captures.ts'
import { createRecentCalls } from '../src/telemetry/calls/call-records.ts'

const secrets = Array.from({ length: 20 }, (_, index) => `key-${index}-${'x'.repeat(24)}${index}`)
const redactor = createRedactor({ secrets, keys: ['*token*', '*password*', '*secret*'] })
const store = memoryCaptures(() => ({ keep: 86_400_000, maxBytes: 64 * 1024 * 1024 }), systemClock)
const calls = createRecentCalls({ clock: systemClock, redact: (text) => text })
const watch = { observers: [calls.observer], clock: systemClock }

const capturing = (wanted: string) =>
  capture({
    wants: ({ entry }) => entry.server === wanted,
    store,
    json: (value, maxBytes) => captureJson(redactor, value, maxBytes),
    redact: redactor.text,
    maxBytesPerCall: 64 * 1024,
    clock: systemClock,
    log: silentLog,
  })

const prose = 'The quick brown fox reads /srv/data/report-2026.md and counts 42 lines of it. '
const resultOf = (bytes: number): Buffer => {
  const text = prose.repeat(Math.ceil(bytes / prose.length)).slice(0, bytes)
  return Buffer.from(JSON.stringify({ content: [{ type: 'text', text }] }))
}
const args = Buffer.from('{"path":"/srv/data/report-2026.md","head":40}')

const off = openPipeline({ audit: noAudit, watch })
const elsewhere = openPipeline({ audit: noAudit, watch, capture: capturing('other') })
const on = openPipeline({ audit: noAudit, watch, capture: capturing('files') })

interface Variant {
  readonly name: string
  readonly pipeline: typeof off
  readonly bytes: number
  readonly rounds: number
  best: number
}
const variants: Variant[] = [
  { name: 'off', pipeline: off, bytes: 1024, rounds: 20_000, best: Number.POSITIVE_INFINITY },
  { name: 'on for another server', pipeline: elsewhere, bytes: 1024, rounds: 20_000, best: Number.POSITIVE_INFINITY },
  { name: 'on, 1 KiB', pipeline: on, bytes: 1024, rounds: 4_000, best: Number.POSITIVE_INFINITY },
  { name: 'on, 16 KiB', pipeline: on, bytes: 16 * 1024, rounds: 500, best: Number.POSITIVE_INFINITY },
  { name: 'on, 60 KiB', pipeline: on, bytes: 60 * 1024, rounds: 200, best: Number.POSITIVE_INFINITY },
  { name: 'on, 256 KiB (cut)', pipeline: on, bytes: 256 * 1024, rounds: 50, best: Number.POSITIVE_INFINITY },
  { name: 'on, 4 MiB (cut)', pipeline: on, bytes: 4 * 1024 * 1024, rounds: 50, best: Number.POSITIVE_INFINITY },
]

let count = 0
for (let turn = 0; turn < 12; turn++) {
  for (const variant of variants) {
    const bytes = resultOf(variant.bytes)
    const run = async (): Promise<Result> => ({ body: Json.raw(bytes), isError: false })
    const entry = entryOf({ run })
    const start = process.cpuUsage()
    for (let round = 0; round < variant.rounds; round++) {
      const call: Call = callOf({ id: `c${count++}`, entry, input: { arguments: Json.raw(args), meta: {} } })
      await variant.pipeline.handle(call)
    }
    const { user, system } = process.cpuUsage(start)
    variant.best = Math.min(variant.best, (user + system) / variant.rounds)
  }
}
const base = variants[0]?.best ?? 0
for (const { name, best } of variants) {
  process.stdout.write(`capture ${name}: ${best.toFixed(2)} µs of CPU per call, ${(best - base).toFixed(2)} µs more\n`)
}
