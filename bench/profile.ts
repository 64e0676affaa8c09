/**
 * `node bench/profile.ts [stdio|http|large|cache] [--seconds 8] [--in-flight 16] [--modern] [--write] [--keep FILE]`: where
 * the time of a call goes. Runs the real program under `--cpu-prof` and tells microseconds per call, by function and room.
 */
import { copyFile, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openFolders } from './folders.ts'
import { startGenerator } from './load/generator-process.ts'
import { type Cost, costsOf } from './measure/cpu-profile.ts'
import { startChild } from './targets/child.ts'
import { openSession } from './targets/session.ts'
import { httpEcho, reads, startToolway, stdioEcho } from './targets/toolway.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '8' },
    'in-flight': { type: 'string', default: '16' },
    modern: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    keep: { type: 'string' },
  },
})
const kind = positionals[0] ?? 'stdio'
const ms = Math.min(60, Number(values.seconds)) * 1000

await using open = new AsyncDisposableStack()
const { make: folder } = open.use(await openFolders())
const generator = open.use(startGenerator())
const echo = open.use(await startChild('./echo-http.ts', []))
const profiles = await folder('profiles')

const behind = kind === 'http' || kind === 'cache' ? httpEcho(echo.url) : stdioEcho(values.list ? 9980 : 10)
const more = kind === 'cache' ? { cache: { enabled: true, ttl: '10m', tools: ['echo.*'] } } : {}
const servers = { echo: values.write ? behind : reads(behind) }
const nodeArgs = ['--cpu-prof', '--cpu-prof-interval', '200', '--cpu-prof-dir', profiles]
const target = await startToolway({ folder: await folder('toolway'), servers, more }, { nodeArgs })
open.use(target)
const session = await openSession({ ...target, era: values.modern ? 'modern' : 'legacy' })
const calls = session.calls(kind === 'large' ? 'echo__large' : 'echo__echo')
const aim = values.list ? session.aim(session.prepare('tools/list', {}, '"tools":')) : calls

const inFlight = Number(values['in-flight'])
await generator.run({ aim, inFlight, warmUpMs: 0, ms: 3000, pids: [] })
const microseconds = () => Number(process.hrtime.bigint() / 1000n)
const from = microseconds()
const sample = await generator.run({ aim, inFlight, warmUpMs: 0, ms, pids: [target.pid] })
const to = microseconds()
await target[Symbol.asyncDispose]()

// Threads write profiles of their own: the program's is the largest.
const files = await Promise.all(
  (await readdir(profiles)).map(async (file) => ({ file, text: await readFile(join(profiles, file), 'utf8') })),
)
const whole = files.sort((a, b) => b.text.length - a.text.length)[0]
if (whole === undefined) throw new Error('the program has written no profile')
if (values.keep !== undefined) await copyFile(join(profiles, whole.file), values.keep)

const costs = costsOf(JSON.parse(whole.text), from, to)
const perCall = (cost: number) => (cost / sample.calls).toFixed(2).padStart(8)
const idle = costs.find(({ name }) => name === '(idle)')?.self ?? 0
const busy = costs.reduce((sum, { self }) => sum + self, 0) - idle
const line = ({ name, self, inclusive }: Cost) => `${perCall(self)} ${perCall(inclusive)}  ${name}`
const rooms = Object.entries(Object.groupBy(costs, ({ name }) => roomOf(name)))
  .map(([name, all = []]) => ({ name, self: all.reduce((sum, { self }) => sum + self, 0) }))
  .sort((a, b) => b.self - a.self)
const byInclusive = costs.toSorted((a, b) => b.inclusive - a.inclusive)
const lines = [
  `${kind}: ${Math.round((1000 * sample.calls) / sample.ms)} calls/s under the profiler, ${((1000 * sample.cpuMs) / sample.calls).toFixed(0)} µs CPU per call, all threads; ` +
    `${(busy / sample.calls).toFixed(0)} µs busy on the main thread, ${(idle / sample.calls).toFixed(0)} µs idle`,
  ...(sample.failure === undefined ? [] : [`FAILED: ${sample.failure}`]),
  '',
  'µs per call, by room',
  ...rooms.filter(({ name }) => name !== '(idle)').map(({ name, self }) => `${perCall(self)}  ${name}`),
  '',
  '    self     with what it calls',
  ...costs
    .filter(({ name }) => name !== '(idle)')
    .slice(0, 45)
    .map(line),
  '',
  'ours and the most expensive callees, with what they call',
  ...byInclusive
    .filter(({ name }) => / src\//.test(name))
    .slice(0, 60)
    .map(line),
  '',
]
process.stdout.write(lines.join('\n'))

/** The part of the program or of Node that a function belongs to. */
function roomOf(name: string): string {
  const ours = / src\/([\w-]+(?:\/[\w-]+(?=\/))?)/.exec(name)
  if (ours) return `src/${ours[1]}`
  const node = / node:(internal\/\w+|\w+)/.exec(name)
  if (node) return `node:${node[1]}`
  const other = / ([@\w-]+)\/.*:\d+$/.exec(name)
  if (other) return `package ${other[1]}`
  return name.startsWith('(') ? name : 'native'
}
