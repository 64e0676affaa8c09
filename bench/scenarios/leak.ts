import { setTimeout as wait } from 'node:timers/promises'
import { type Held, startObserved } from '../measure/observed.ts'
import type { Row } from '../measure/verdict.ts'
import type { Scenario } from '../scenario.ts'
import { startChild } from '../targets/child.ts'
import { openSession } from '../targets/session.ts'
import { httpEcho, reads, stdioEcho } from '../targets/toolway.ts'

const scenario = 'leak'
const operations = 10_000
/** What a collector leaves behind after so many operations varies by about as much. */
const most = { heap: 2_000_000, descriptors: 2, timers: 2 }

/** Nothing is left of ten thousand operations: calls in both eras, lists, meta-tools, on servers of both kinds. */
export const leak: Scenario = {
  name: scenario,
  title: '10,000 operations without leak',
  async run(bench) {
    await using open = new AsyncDisposableStack()
    const echo = open.use(await startChild('./echo-http.ts', []))
    const servers = { pipe: stdioEcho(), web: reads(httpEcho(echo.url)) }
    const target = open.use(await startObserved({ folder: await bench.folder(scenario), servers }))
    const legacy = await openSession(target)
    const modern = await openSession({ ...target, era: 'modern' })
    const call = (name: string, given: object = { message: 'hello' }) => ({ name, arguments: given })
    const aim = legacy.aim(
      legacy.prepare('tools/call', call('pipe__echo'), 'Echo: '),
      legacy.prepare('tools/call', call('web__echo'), 'Echo: '),
      modern.prepare('tools/call', call('pipe__echo'), 'Echo: '),
      modern.prepare('tools/call', call('web__echo'), 'Echo: '),
      legacy.prepare('tools/list', {}, '"tools":'),
      legacy.prepare('tools/call', call('list_servers', {}), 'pipe'),
    )
    const load = async (most: number) => {
      const order = { aim, inFlight: 16, warmUpMs: 0, ms: 300_000, most, pids: [target.pid] }
      const { calls, failures, failure } = await bench.generator.run(order)
      if (failures > 0 || calls < most) throw new Error(`${calls} of ${most} answered: ${failure}`)
      // Connections that were closed are noticed, records are written.
      await wait(2000)
      return target.observe({ collect: true })
    }
    // Twice as many beforehand: what is built once and kept is built by then.
    await load(2 * operations)
    const before = await load(1000)
    const after = await load(operations)
    return (['heap', 'descriptors', 'timers'] as const).map((what) => rowOf(what, before, after))
  },
}

function rowOf(what: keyof typeof most, before: Held, after: Held): Row {
  const grown = after[what] - before[what]
  const show = (value: number) => (what === 'heap' ? `${(value / 1_000_000).toFixed(2)} MB` : String(value))
  return {
    scenario,
    what: `${what} after ${operations} operations`,
    measured: `${grown >= 0 ? '+' : '−'}${show(Math.abs(grown))} (${show(before[what])} before)`,
    target: `≤ +${show(most[what])}`,
    verdict: grown <= most[what] ? 'met' : 'missed',
    spread: '',
    value: grown,
  }
}
