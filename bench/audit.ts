/**
 * `node bench/audit.ts`: what it costs to record a call, before and after, and to have it on disk before the answer.
 * Take ratios seriously and absolute numbers as a hint: they are those of this machine's disk.
 */
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { verifyAudit } from '../src/audit/verify/verify.ts'
import { type AuditLog, openAuditLog } from '../src/audit/write/audit-log.ts'
import type { AuditBegin, AuditEnd } from '../src/core/audit.ts'
import { systemClock } from '../src/core/clock.ts'
import { silentLog } from '../src/core/log.ts'
import { temporaryFolder } from '../tests/fixtures/folders.ts'

const say = (line: string) => process.stdout.write(line + '\n')
const microseconds = (ms: number) => `${(ms * 1000).toFixed(1)} µs`

await using folder = await temporaryFolder()
const key = 'a secret of this benchmark alone'

const open = (name: string, sync: 'writes' | 'none'): Promise<AuditLog> =>
  openAuditLog({
    folder: join(folder.path, name),
    sync,
    unrecordedReads: 'allow',
    retainMs: 90 * 24 * 60 * 60 * 1000,
    key,
    describe: (given) => given,
    clock: systemClock,
    log: silentLog,
  })

const subject = (call: number, write: boolean) => ({
  call: `01890a5d-ac96-774b-bcce-${String(call).padStart(12, '0')}`,
  agent: 'team.role',
  principal: 'key:build',
  address: '127.0.0.1',
  operation: 'call_tool' as const,
  kind: 'tool' as const,
  server: 'files',
  tool: 'read_text_file',
  write,
})
const begin = (call: number, write: boolean): AuditBegin => ({
  ...subject(call, write),
  arguments: { path: '/home/somebody/project/README.md', head: 40, options: { encoding: 'utf8' } },
})
const end = (call: number, write: boolean): AuditEnd => ({
  ...subject(call, write),
  decision: 'ALLOW',
  rule: 'agents.team.allow.tools.files',
  is_error: false,
  latency_ms: 12.25,
})

/** Milliseconds for one line of the usual length, without and with a sync: what the disk takes anyway. */
function bareDisk(): { append: number; synced: number } {
  const fd = openSync(join(folder.path, 'bare'), 'a')
  const line = Buffer.from('x'.repeat(499) + '\n')
  const time = (count: number, run: () => void) => {
    const start = performance.now()
    for (let done = 0; done < count; done++) run()
    return (performance.now() - start) / count
  }
  const append = time(50_000, () => writeSync(fd, line))
  const synced = time(300, () => {
    writeSync(fd, line)
    fdatasyncSync(fd)
  })
  closeSync(fd)
  return { append, synced }
}

const bare = bareDisk()
say(`bare disk: append of 500 bytes ${microseconds(bare.append)}, with fdatasync ${microseconds(bare.synced)}`)

{
  await using audit = await open('append', 'none')
  const count = 100_000
  const round = () => {
    const start = performance.now()
    for (let call = 0; call < count; call++) {
      audit.begin(begin(call, false))
      audit.end(end(call, false))
    }
    return (performance.now() - start) / count / 2
  }
  round()
  const cost = Math.min(round(), round())
  say(`append of a record, nothing awaited: ${microseconds(cost)} (${(cost / bare.append).toFixed(1)}x a bare append)`)
}

for (const inFlight of [1, 16, 256]) {
  await using audit = await open(`commit-${inFlight}`, 'writes')
  const times: number[] = []
  let calls = 0
  const until = performance.now() + 2000
  const start = performance.now()
  const worker = async () => {
    while (performance.now() < until) {
      const call = calls++
      audit.begin(begin(call, true))
      const before = performance.now()
      await audit.end(end(call, true))
      times.push(performance.now() - before)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
  const each = (performance.now() - start) / times.length
  times.sort((a, b) => a - b)
  const at = (part: number) => microseconds(times[Math.floor(times.length * part)] ?? 0)
  say(
    `group commit, ${inFlight} in flight: ${microseconds(each)} per write (${(each / bare.synced).toFixed(2)}x a bare ` +
      `fdatasync), ${Math.round(1000 / each)} writes/s; waited p50 ${at(0.5)}, p99 ${at(0.99)}`,
  )
}

{
  const start = performance.now()
  const { ok, records } = await verifyAudit({ folder: join(folder.path, 'append'), key })
  const took = performance.now() - start
  const speed = Math.round((records / took) * 1000)
  say(`verify: ${records} records in ${took.toFixed(0)} ms (${speed} per second), ${ok ? 'whole' : 'NOT WHOLE'}`)
}
{
  const start = performance.now()
  await using audit = await open('append', 'none')
  say(`start on a log with ${audit.status().seq} records: ${(performance.now() - start).toFixed(1)} ms`)
}
