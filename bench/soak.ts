/**
 * `npm run soak -- --minutes 120`: steady load on a real gateway with five servers, which are restarted every minute. The
 * configuration is reloaded every minute too, and clients connect and disconnect. Reports the slope of memory, file
 * descriptors and timers over the second half of the run. Exits with 1 if one of them grows, if memory exceeds
 * `--max-mb`, or if a call fails.
 */
import { parseArgs } from 'node:util'
import { openFolders } from './folders.ts'
import { startGenerator } from './load/generator-process.ts'
import { startObserved } from './measure/observed.ts'
import { residentBytesOf } from './measure/process.ts'
import { everydayUse } from './soak/aims.ts'
import { type Moment, readableSlopes, slopesOf } from './soak/slopes.ts'
import { ask } from './targets/ask.ts'
import { buildProgram } from './targets/build.ts'
import { startChild } from './targets/child.ts'
import { httpEcho, reads, stdioEcho, writeToolwayConfig } from './targets/toolway.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    rate: { type: 'string', default: '300' },
    'max-mb': { type: 'string', default: '200' },
    /** Without restarts and reloads. */
    calm: { type: 'boolean', default: false },
    /** Without the dashboard's history, to compare. */
    'no-history': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const minutes = Number(values.minutes)
const rate = Number(values.rate)
const maxBytes = Number(values['max-mb']) * 1_000_000
if (!(minutes > 0 && minutes <= 24 * 60 && rate > 0 && rate <= 100_000 && maxBytes > 0)) {
  throw new Error('--minutes must be a number up to 1440, --rate up to 100000 calls/s, and --max-mb more than 0.')
}

const note = (line: string) => process.stderr.write(`${line}\n`)
await using open = new AsyncDisposableStack()
const { make } = open.use(await openFolders())
const generator = open.use(startGenerator())
const echo = open.use(await startChild('./echo-http.ts', []))
const servers = {
  pipe: reads(stdioEcho()),
  web: reads(httpEcho(echo.url)),
  writes: stdioEcho(),
  alone: { ...reads(stdioEcho()), session: 'caller' },
  many: reads(stdioEcho(1000)),
}
const folder = await make('soak')
// The published program needs less memory than the sources.
const program = await buildProgram(await make('build'))
const history = { disabled: values['no-history'] }
const target = open.use(await startObserved({ folder, servers, more: { history } }, program))
note(`idle: RSS ${(residentBytesOf(target.pid) / 1e6).toFixed(0)} MB`)
const { origin } = new URL(target.url)

/** Restarts all servers and reloads a configuration with a changed timeout. */
async function disturb(round: number): Promise<void> {
  const headers = { authorization: `Bearer ${target.token}`, origin }
  for (const name of Object.keys(servers)) {
    const { status, text } = await ask(`${origin}/admin/api/servers/${name}/restart`, { method: 'POST', headers })
    if (status !== 200) throw new Error(`Restarting ${name} failed with ${status}: ${text.slice(0, 200)}`)
  }
  await writeToolwayConfig({
    folder,
    servers,
    more: { history, defaults: { agent: 'bench', timeout: `${30 + (round % 2)}s` } },
  })
  const { status, text } = await ask(`${origin}/admin/api/config/reload`, { method: 'POST', headers })
  if (status !== 200) throw new Error(`The reload failed with ${status}: ${text.slice(0, 200)}`)
}

/** Errors of calls that were running on a server when it was restarted. */
const tolerated = ['OUTCOME_UNKNOWN', 'SERVER_UNAVAILABLE', 'SERVER_UNHEALTHY', 'SERVER_CRASHED']

const begin = performance.now()
const elapsed = () => (performance.now() - begin) / 60_000
// At least 20 rounds in a run, and at most one a minute.
const roundMs = Math.min(60_000, Math.max(2000, (minutes * 60_000) / 20))
const moments: Moment[] = []
let [calls, refused, failures, failure] = [0, 0, 0, '']
for (let round = 0; elapsed() < minutes; round++) {
  // Resident memory varies between collections, so average it over the round.
  const resident: number[] = []
  const sampling = setInterval(() => resident.push(residentBytesOf(target.pid)), 1000)
  const { aim, end } = await everydayUse(target)
  const order = { aim, inFlight: 16, warmUpMs: 0, ms: roundMs, rate, tolerated, pids: [target.pid] }
  const load = generator.run(order)
  if (!values.calm) await disturb(round)
  const sample = await load
  calls += sample.calls
  refused += sample.refused
  failures += sample.failures
  failure ||= sample.failure ?? ''
  await end()
  clearInterval(sampling)
  const rss = resident.reduce((sum, value) => sum + value, 0) / resident.length
  const held = { ...(await target.observe()), rss, peak: Math.max(...resident) }
  moments.push([elapsed(), held])
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`
  note(
    `${elapsed().toFixed(1)} min: ${calls} calls, ${refused} refused, ${failures} failed, ` +
      `RSS ${megabytes(held.rss)} (up to ${megabytes(held.peak)}), heap ${megabytes(held.heap)}, ` +
      `external ${megabytes(held.external)}, ${held.descriptors} descriptors, ${held.timers} timers`,
  )
}

const slopes = slopesOf(moments)
const problems = slopes.filter(({ grows }) => grows).map(({ what }) => `${what} grows`)
const { mean } = slopes.find(({ what }) => what === 'rss') as { mean: number }
if (mean > maxBytes) problems.push(`resident memory is above ${values['max-mb']} MB`)
if (failures > 0) problems.push(`${failures} calls failed: ${failure}`)
const summary = `${calls} calls in ${minutes} minutes, ${refused} interrupted by restarts`
const verdict = problems.length === 0 ? `steady: ${summary}` : `${problems.join('; ')} (${summary})`
const report = {
  date: new Date().toISOString(),
  node: process.version,
  minutes,
  rate,
  calls,
  refused,
  failures,
  slopes,
  verdict,
}
process.stdout.write(
  values.json ? `${JSON.stringify({ ...report, moments })}\n` : `\n${readableSlopes(slopes)}\n\n${verdict}\n`,
)
process.exitCode = problems.length === 0 ? 0 : 1
