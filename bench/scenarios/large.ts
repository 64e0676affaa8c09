import { p50 } from '../measure/comparison.ts'
import type { Scenario } from '../scenario.ts'
import { startChild } from '../targets/child.ts'
import { largeBytes } from '../targets/echo-tools.ts'
import { openSession } from '../targets/session.ts'
import { httpEcho, reads, startToolway, stdioEcho } from '../targets/toolway.ts'
import { answer } from './own-comparison.ts'
import { startYardstick, yardstick, yardstickAgain } from './yardstick.ts'

const scenario = 'large'

/** A mebibyte passes through: bytes are carried, not read and written anew. */
export const large: Scenario = {
  name: scenario,
  title: 'a result of 1 MiB',
  async run(bench) {
    await using open = new AsyncDisposableStack()
    const echo = open.use(await startChild('./echo-http.ts', []))
    const proxies = await startYardstick(open, echo.url)
    const servers = { 'stdio server': reads(stdioEcho()), 'HTTP server': reads(httpEcho(echo.url)) }
    const ours = await Promise.all(
      Object.entries(servers).map(async ([name, server]) => {
        const target = open.use(await startToolway({ folder: await bench.folder('large'), servers: { echo: server } }))
        const aim = (await openSession(target)).calls('echo__large', 'Echo: ', largeBytes)
        return { name, aim, pids: [target.pid] }
      }),
    )
    const arms = [
      ...(await proxies.arms(async (proxy) => (await openSession(proxy)).calls('large', 'Echo: ', largeBytes))),
      ...ours,
    ]
    const series = await bench.series(scenario, arms, { inFlight: 1 })
    return ours.map(({ name }) =>
      answer(series, {
        scenario,
        what: `${name}: p50, 1 in flight`,
        arm: name,
        against: [yardstick, yardstickAgain],
        metric: p50,
        unit: 'ms',
        bound: { most: 1.3 },
        of: ' the proxy',
      }),
    )
  },
}
