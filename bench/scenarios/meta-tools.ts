import { p95 } from '../measure/comparison.ts'
import type { Series } from '../measure/rounds.ts'
import { median } from '../measure/statistics.ts'
import { judgeMedian, type Row, without } from '../measure/verdict.ts'
import type { Scenario } from '../scenario.ts'
import { openSession } from '../targets/session.ts'
import { reads, startToolway, stdioEcho } from '../targets/toolway.ts'
import { samplesOf } from './yardstick.ts'

const scenario = 'meta-tools'
const servers = Array.from({ length: 20 }, (_, number) => `echo${number}`)
const toolsEach = 500

/** What an agent asks first, over 20 servers and 10,000 tools. */
export const metaTools: Scenario = {
  name: scenario,
  title: 'list_servers and get_server_tools over 20 servers with 10,000 tools',
  async run(bench) {
    await using open = new AsyncDisposableStack()
    const behind = Object.fromEntries(servers.map((name) => [name, reads(stdioEcho(toolsEach))]))
    const target = open.use(await startToolway({ folder: await bench.folder(scenario), servers: behind }))
    const session = await openSession(target)
    await session.ask('tools/list')
    const asks = {
      list_servers: { asked: { include_metadata: true }, mostMs: 50, expected: 'echo0' },
      get_server_tools: { asked: { server: 'echo7' }, mostMs: 300, expected: 'lookup_' },
    }
    const arms = Object.entries(asks).map(([name, { asked, expected }]) => ({
      name,
      aim: session.aim(session.prepare('tools/call', { name, arguments: asked }, expected)),
      pids: [target.pid],
    }))
    const series = await bench.series(scenario, arms, { inFlight: 1 })
    return Object.entries(asks).map(([name, { mostMs }]) => rowOf(series, name, mostMs))
  },
}

function rowOf(series: Series, name: string, mostMs: number): Row {
  const what = `${name}: p95, 1 in flight`
  const target = `< ${mostMs} ms`
  const failure = series.failures.get(name)
  if (failure !== undefined) return without(scenario, what, 'failed', failure, target)
  const measured = samplesOf(series, name).map(p95)
  const middle = median(measured)
  return {
    scenario,
    what,
    measured: `${middle.toFixed(2)} ms`,
    target,
    verdict: judgeMedian(measured, mostMs),
    spread: `${Math.min(...measured).toFixed(2)}–${Math.max(...measured).toFixed(2)} ms`,
    value: middle,
  }
}
