import { firstId } from '../load/orders.ts'
import { compare, type Metric } from '../measure/comparison.ts'
import type { Arm, Series } from '../measure/rounds.ts'
import { median } from '../measure/statistics.ts'
import { judge, percent, type Row, without } from '../measure/verdict.ts'
import type { Scenario } from '../scenario.ts'
import { openSession, type Session } from '../targets/session.ts'
import { reads, startToolway, stdioEcho } from '../targets/toolway.ts'
import { samplesOf } from './yardstick.ts'

const scenario = 'batch'
const size = 10
/** The time that a batch takes, as a part of ten calls one after the other. */
const most = 0.2

/** Ten calls at once against ten one after the other, by the same single client. */
export const batch: Scenario = {
  name: scenario,
  title: 'ten calls in one batch against ten one by one',
  async run(bench) {
    await using open = new AsyncDisposableStack()
    const servers = { echo: reads(stdioEcho()) }
    const target = open.use(await startToolway({ folder: await bench.folder(scenario), servers }))
    const session = await openSession(target)
    const older = await openSession({ ...target, revision: '2025-03-26' })
    const pids = [target.pid]
    const arms: Arm[] = (['slow', 'echo'] as const).flatMap((tool) => [
      { name: `${tool}: one by one`, aim: session.calls(`echo__${tool}`), pids },
      { name: `${tool}: one by one again`, aim: session.calls(`echo__${tool}`), pids },
      { name: `${tool}: execute_tools`, aim: executeTools(session, tool), pids },
      { name: `${tool}: JSON-RPC batch of 2025-03-26`, aim: rpcBatch(older, tool), pids },
    ])
    const series = await bench.series(scenario, arms, { inFlight: 1 })
    return [
      rowOf(series, 'slow', 'execute_tools', 'a tool that takes 10 ms', true),
      rowOf(series, 'slow', 'JSON-RPC batch of 2025-03-26', 'a tool that takes 10 ms', true),
      rowOf(series, 'echo', 'execute_tools', 'a tool that answers at once', false),
      rowOf(series, 'echo', 'JSON-RPC batch of 2025-03-26', 'a tool that answers at once', false),
    ]
  },
}

const executeTools = (session: Session, tool: string) => {
  const calls = Array.from({ length: size }, () => ({ server: 'echo', tool, args: { message: 'hello' } }))
  const params = { name: 'execute_tools', arguments: { calls } }
  return session.aim(session.prepare('tools/call', params, '"ok":true'))
}

/** The first one gets an id of its own each time, the others are the same in every batch: it is over before the next. */
const rpcBatch = (session: Session, tool: string) => {
  const params = { name: `echo__${tool}`, arguments: { message: 'hello' } }
  const messages = Array.from({ length: size }, (_, at) => ({
    jsonrpc: '2.0',
    id: at === 0 ? firstId : at,
    method: 'tools/call',
    params,
  }))
  return session.aim(session.prepareMessage(JSON.stringify(messages), 'Echo: '))
}

const perTen =
  (calls: number): Metric =>
  ({ p50 }) =>
    p50 * calls

function rowOf(series: Series, tool: string, how: string, which: string, judged: boolean): Row {
  const arm = `${tool}: ${how}`
  const what = `${how}, ${which}`
  const failure = series.failures.get(arm)
  if (failure !== undefined) return without(scenario, what, 'failed', failure, judged ? '≥ 80% faster' : '')
  const single = samplesOf(series, `${tool}: one by one`)
  const again = samplesOf(series, `${tool}: one by one again`)
  const comparison = compare(samplesOf(series, arm), [single, again], perTen(1))
  const { ratio, low, high, noise } = comparison
  const part = ratio / size
  const took = median(samplesOf(series, arm).map(perTen(1)))
  const tenTook = median(single.map(perTen(size)))
  return {
    scenario,
    what,
    measured: `${percent(1 - part)} faster (${took.toFixed(2)} ms instead of ${tenTook.toFixed(2)} ms)`,
    target: judged ? '≥ 80% faster' : '',
    verdict: judged ? judge(comparison, { most: most * size }) : 'for information',
    spread: `${percent(1 - high / size)}–${percent(1 - low / size)}, noise ±${percent(noise)}`,
    value: 1 - part,
  }
}
