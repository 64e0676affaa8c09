import { callsPerSecond, compare, cpuMicrosPerCall, type Metric, noiseOf, p50, p99 } from '../measure/comparison.ts'
import type { Arm, Series } from '../measure/rounds.ts'
import { median } from '../measure/statistics.ts'
import { type Bound, compared, percent, type Row, without } from '../measure/verdict.ts'
import type { Scenario } from '../scenario.ts'
import { startChild } from '../targets/child.ts'
import { type Era, openSession } from '../targets/session.ts'
import { httpEcho, reads, startToolway, stdioEcho } from '../targets/toolway.ts'
import { peerArms, peerRows } from './peer-rows.ts'
import { samplesOf, startYardstick, yardstick, yardsticksOf } from './yardstick.ts'

const scenario = 'calls'

/** What Toolway is put in front of, and how it is declared. */
const series = [
  { name: 'stdio server, read', server: 'stdio', era: 'legacy', calls: 1, cpu: 1, p50: 1.3 },
  { name: 'HTTP server, read', server: 'http', era: 'legacy', calls: 0.9 },
  { name: 'stdio server, read, 2026-07-28', server: 'stdio', era: 'modern', calls: 1, cpu: 1, p50: 1.3 },
  { name: 'HTTP server, read, 2026-07-28', server: 'http', era: 'modern', calls: 0.9 },
  { name: 'stdio server, write', server: 'stdioWrite', era: 'legacy' },
  { name: 'HTTP server, write', server: 'httpWrite', era: 'legacy' },
] as const satisfies readonly { name: string; server: string; era: Era; calls?: number; cpu?: number; p50?: number }[]

const figures = {
  'calls/s': { metric: callsPerSecond, show: (value: number) => `${Math.round(value)}/s` },
  'CPU per call': { metric: cpuMicrosPerCall, show: (value: number) => `${value.toFixed(0)} µs` },
  p50: { metric: p50, show: (value: number) => `${value.toFixed(3)} ms` },
  p99: { metric: p99, show: (value: number) => `${value.toFixed(3)} ms` },
} satisfies Record<string, { metric: Metric; show(value: number): string }>

type Figure = keyof typeof figures

/** A call of a tool that answers at once: what the way through costs. */
export const calls: Scenario = {
  name: scenario,
  title: 'tools/call of an echo tool, 100 bytes',
  async run(bench) {
    await using open = new AsyncDisposableStack()
    const echo = open.use(await startChild('./echo-http.ts', []))
    const proxies = await startYardstick(open, echo.url)
    const servers = {
      stdio: reads(stdioEcho()),
      http: reads(httpEcho(echo.url)),
      stdioWrite: stdioEcho(),
      httpWrite: httpEcho(echo.url),
    }
    const started = Object.fromEntries(
      await Promise.all(
        Object.entries(servers).map(async ([name, server]) => {
          const folder = await bench.folder(name)
          return [name, open.use(await startToolway({ folder, servers: { echo: server } }))] as const
        }),
      ),
    )
    const ours = await Promise.all(
      series.map(async ({ name, server, era }): Promise<Arm> => {
        const target = started[server] as (typeof started)[string]
        const session = await openSession({ ...target, era })
        return { name, aim: session.calls('echo__echo'), pids: [target.pid] }
      }),
    )
    const peers = await peerArms(open, bench, { stdio: servers.stdio, http: servers.http })
    const arms: Arm[] = [
      { name: 'direct', aim: (await openSession(echo)).calls('echo'), pids: [echo.pid] },
      ...(await proxies.arms(async (proxy) => (await openSession(proxy)).calls('echo'))),
      ...ours,
      ...peers.arms,
    ]
    const many = await bench.series(scenario, arms, { inFlight: 16 })
    const alone = await bench.series(scenario, arms, { inFlight: 1 })
    return [...rowsOf(many, alone), ...peerRows(peers, many, alone)]
  },
}

function rowsOf(many: Series, alone: Series): Row[] {
  const absolute = (from: Series, name: string, figure: Figure) =>
    figures[figure].show(median(samplesOf(from, name).map(figures[figure].metric)))
  const bases = (['calls/s', 'CPU per call', 'p50', 'p99'] as const).flatMap((figure): Row[] => {
    const from = figure.startsWith('p') ? alone : many
    const base = yardsticksOf(from)
    const what = `${yardstick}: ${figure}, ${from.inFlight} in flight`
    const direct = figure === 'CPU per call' ? '' : `; direct ${absolute(from, 'direct', figure)}`
    return [
      {
        scenario,
        what,
        measured: absolute(from, yardstick, figure) + direct,
        target: '',
        verdict: 'for information',
        spread: `noise ±${percent(noiseOf(...base, figures[figure].metric))}`,
        value: median(base[0].map(figures[figure].metric)),
      },
    ]
  })
  const rows = series.flatMap((one): Row[] => {
    const bounds: Record<Figure, Bound> = {
      'calls/s': 'calls' in one ? { least: one.calls } : {},
      'CPU per call': 'cpu' in one ? { most: one.cpu } : {},
      p50: 'p50' in one ? { most: one.p50 } : {},
      p99: {},
    }
    return (Object.keys(bounds) as Figure[]).map((figure) => {
      const from = figure.startsWith('p') ? alone : many
      const what = `${one.name}: ${figure}, ${from.inFlight} in flight`
      const failure = from.failures.get(one.name)
      if (failure !== undefined) return without(scenario, what, 'failed', failure)
      const comparison = compare(samplesOf(from, one.name), yardsticksOf(from), figures[figure].metric)
      return compared(
        { scenario, what, absolute: absolute(from, one.name, figure) },
        comparison,
        bounds[figure],
        ' the proxy',
      )
    })
  })
  return [...bases, ...rows]
}
