import { p50, p99 } from '../measure/comparison.ts'
import type { Scenario } from '../scenario.ts'
import { openSession } from '../targets/session.ts'
import { reads, startToolway, stdioEcho } from '../targets/toolway.ts'
import { answer } from './own-comparison.ts'

const scenario = 'hanging'
const quiet = 'quiet'
const quietAgain = 'quiet again'
const beside = '16 hang beside it'

/** One server that does not answer must not be felt by those who use another. */
export const hanging: Scenario = {
  name: scenario,
  title: 'a call while 16 others hang in another server',
  async run(bench) {
    await using open = new AsyncDisposableStack()
    const servers = { echo: reads(stdioEcho()), stuck: { ...reads(stdioEcho()), timeout: '10m', concurrency: 16 } }
    const target = open.use(await startToolway({ folder: await bench.folder(scenario), servers }))
    const session = await openSession(target)
    await session.ask('tools/call', { name: 'stuck__echo', arguments: { message: 'up' } })
    const shared = { aim: session.calls('echo__echo'), pids: [target.pid] }
    const arms = [
      { name: quiet, ...shared },
      {
        name: beside,
        ...shared,
        before: () => bench.generator.hold(session.calls('stuck__hang'), 16),
        after: () => bench.generator.release(),
      },
      { name: quietAgain, ...shared },
    ]
    const series = await bench.series(scenario, arms, { inFlight: 1 })
    const question = {
      scenario,
      arm: beside,
      against: [quiet, quietAgain] as const,
      unit: 'ms',
      digits: 3,
      of: ' without it',
    }
    return [
      answer(series, { ...question, what: 'p99, 1 in flight', metric: p99, bound: { most: 1.5 } }),
      answer(series, { ...question, what: 'p50, 1 in flight', metric: p50, bound: {} }),
    ]
  },
}
