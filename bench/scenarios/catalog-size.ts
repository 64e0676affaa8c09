import { callsPerSecond, p50 } from '../measure/comparison.ts'
import type { Scenario } from '../scenario.ts'
import { openSession } from '../targets/session.ts'
import { reads, startToolway, stdioEcho } from '../targets/toolway.ts'
import { answer } from './own-comparison.ts'

const scenario = 'catalog-size'
const few = '10 tools'
const fewAgain = '10 tools again'
const many = '10,000 tools'

/** What a call costs must not grow with what there is to be called. */
export const catalogSize: Scenario = {
  name: scenario,
  title: 'the same call with 10 tools and with 10,000',
  async run(bench) {
    await using open = new AsyncDisposableStack()
    const arm = async (name: string, tools: number) => {
      const servers = { echo: reads(stdioEcho(tools)) }
      const target = open.use(await startToolway({ folder: await bench.folder(scenario), servers }))
      const session = await openSession(target)
      // Everything is known before the first turn.
      await session.ask('tools/list')
      return { name, aim: session.calls('echo__echo'), pids: [target.pid] }
    }
    const arms = [await arm(few, 10), await arm(fewAgain, 10), await arm(many, 10_000)]
    const shared = { scenario, arm: many, against: [few, fewAgain] as const, of: ' with 10 tools' }
    return [
      answer(await bench.series(scenario, arms, { inFlight: 16 }), {
        ...shared,
        what: 'calls/s, 16 in flight',
        metric: callsPerSecond,
        unit: 'calls/s',
        digits: 0,
        bound: { least: 0.9 },
      }),
      answer(await bench.series(scenario, arms, { inFlight: 1 }), {
        ...shared,
        what: 'p50, 1 in flight',
        metric: p50,
        unit: 'ms',
        digits: 3,
        bound: { most: 1.1 },
      }),
    ]
  },
}
