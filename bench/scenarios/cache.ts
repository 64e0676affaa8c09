import { callsPerSecond, cpuMicrosPerCall, p50 } from '../measure/comparison.ts'
import type { Row } from '../measure/verdict.ts'
import type { Scenario } from '../scenario.ts'
import { ask } from '../targets/ask.ts'
import { startChild } from '../targets/child.ts'
import { openSession } from '../targets/session.ts'
import { httpEcho, reads, startToolway } from '../targets/toolway.ts'
import { answer } from './own-comparison.ts'
import { startYardstick, yardstick, yardstickAgain } from './yardstick.ts'

const scenario = 'cache'
const name = 'cache hit'

/** The same call again, answered without the server. */
export const cache: Scenario = {
  name: scenario,
  title: 'a repeated call that the result cache answers',
  async run(bench) {
    await using open = new AsyncDisposableStack()
    const echo = open.use(await startChild('./echo-http.ts', []))
    const more = { cache: { enabled: true, ttl: '10m', tools: ['echo.*'] } }
    const options = { folder: await bench.folder(scenario), servers: { echo: reads(httpEcho(echo.url)) }, more }
    const gateway = open.use(await startToolway(options))
    const other = open.use(await startChild('./echo-http.ts', []))
    const proxies = await startYardstick(open, other.url)
    const arms = [
      ...(await proxies.arms(async (proxy) => (await openSession(proxy)).calls('echo'))),
      { name, aim: (await openSession(gateway)).calls('echo__echo'), pids: [gateway.pid] },
    ]
    const many = await bench.series(scenario, arms, { inFlight: 16 })
    const alone = await bench.series(scenario, arms, { inFlight: 1 })
    const shared = { scenario, arm: name, against: [yardstick, yardstickAgain] as const, of: ' the proxy' }
    const calls = [many, alone]
      .flatMap(({ samples }) => samples.get(name) ?? [])
      .reduce((sum, one) => sum + one.calls, 0)
    const arrived = Number((await ask(new URL('/calls', echo.url).href, {})).text)
    return [
      answer(many, {
        ...shared,
        what: 'calls/s, 16 in flight',
        metric: callsPerSecond,
        unit: 'calls/s',
        digits: 0,
        bound: { least: 1.5 },
      }),
      answer(many, {
        ...shared,
        what: 'CPU per call, 16 in flight',
        metric: cpuMicrosPerCall,
        unit: 'µs',
        digits: 0,
        bound: {},
      }),
      answer(alone, { ...shared, what: 'p50, 1 in flight', metric: p50, unit: 'ms', digits: 3, bound: {} }),
      hitRate(calls, arrived),
    ]
  },
}

/** What the server has seen is counted by the server itself: nobody can flatter that figure. */
function hitRate(calls: number, arrived: number): Row {
  const rate = 1 - arrived / Math.max(1, calls)
  return {
    scenario,
    what: 'hit rate of a repeated call',
    measured: `${(rate * 100).toFixed(2)}% (${arrived} of ${calls} calls reached the server)`,
    target: '> 95%',
    verdict: rate > 0.95 ? 'met' : 'missed',
    spread: '',
    value: rate,
  }
}
