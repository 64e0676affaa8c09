/**
 * `npm run soak -- --minutes 30`: everyday load on a real gateway with several servers, and what it holds all the while:
 * memory, descriptors, timers. Ends by itself; exits with 1 where something grows.
 */
import { parseArgs } from 'node:util'
import { openFolders } from './folders.ts'
import { startGenerator } from './load/generator-process.ts'
import { startObserved } from './measure/observed.ts'
import { everydayUse } from './soak/aims.ts'
import { type Moment, readableSlopes, slopesOf } from './soak/slopes.ts'
import { startChild } from './targets/child.ts'
import { httpEcho, reads, stdioEcho } from './targets/toolway.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    rate: { type: 'string', default: '300' },
    json: { type: 'boolean', default: false },
  },
})
const minutes = Number(values.minutes)
const rate = Number(values.rate)
if (!(minutes > 0 && minutes <= 24 * 60 && rate > 0 && rate <= 100_000)) {
  throw new Error('--minutes is a number up to 1440, --rate calls a second up to 100000.')
}

const note = (line: string) => process.stderr.write(`${line}\n`)
await using open = new AsyncDisposableStack()
const { make: folder } = open.use(await openFolders())
const generator = open.use(startGenerator())
const echo = open.use(await startChild('./echo-http.ts', []))
const servers = {
  pipe: reads(stdioEcho()),
  web: reads(httpEcho(echo.url)),
  writes: stdioEcho(),
  alone: { ...reads(stdioEcho()), session: 'caller' },
  many: reads(stdioEcho(1000)),
}
const target = open.use(await startObserved({ folder: await folder('soak'), servers }))

const begin = performance.now()
const elapsed = () => (performance.now() - begin) / 60_000
// Some sixty looks at it, whatever the length, and none so short that a look is most of it.
const turnMs = Math.max(2000, (minutes * 60_000) / 60)
const moments: Moment[] = []
let calls = 0
let failures = 0
let failure = ''
while (elapsed() < minutes) {
  // Sessions come and go with each turn, and so do connections.
  const { aim, end } = await everydayUse(target)
  const sample = await generator.run({ aim, inFlight: 16, warmUpMs: 0, ms: turnMs, rate, pids: [target.pid] })
  calls += sample.calls
  failures += sample.failures
  failure ||= sample.failure ?? ''
  await end()
  const held = await target.observe()
  moments.push([elapsed(), held])
  note(
    `${elapsed().toFixed(1)} min: ${calls} calls, ${failures} failed, heap ${(held.heap / 1e6).toFixed(1)} MB, ` +
      `RSS ${(held.rss / 1e6).toFixed(0)} MB, ${held.descriptors} descriptors, ${held.timers} timers`,
  )
}

const slopes = slopesOf(moments)
const growing = slopes.filter(({ grows }) => grows).map(({ what }) => what)
const good = growing.length === 0 && failures === 0
const verdict = good
  ? `steady over ${minutes} minutes and ${calls} calls`
  : [growing.length > 0 && `grows: ${growing.join(', ')}`, failures > 0 && `${failures} calls failed: ${failure}`]
      .filter(Boolean)
      .join('; ')
const report = {
  date: new Date().toISOString(),
  node: process.version,
  minutes,
  rate,
  calls,
  failures,
  slopes,
  verdict,
}
process.stdout.write(
  values.json ? `${JSON.stringify({ ...report, moments })}\n` : `\n${readableSlopes(slopes)}\n\n${verdict}\n`,
)
process.exitCode = good ? 0 : 1
