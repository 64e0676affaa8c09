import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { p50 } from '../measure/comparison.ts'
import type { Scenario } from '../scenario.ts'
import { ask } from '../targets/ask.ts'
import { startChild } from '../targets/child.ts'
import { openSession } from '../targets/session.ts'
import { reads, startToolway, stdioEcho } from '../targets/toolway.ts'
import { answer } from './own-comparison.ts'
import { startYardstick, yardstick, yardstickAgain } from './yardstick.ts'

const scenario = 'list'
const name = 'Toolway'
const leastTools = 10_000

/** The whole list, against the proxy with the very same bytes behind it. */
export const list: Scenario = {
  name: scenario,
  title: 'tools/list of 10,000 tools',
  async run(bench) {
    await using open = new AsyncDisposableStack()
    // The meta-tools are listed too: together they must still fit one page.
    const servers = { echo: reads(stdioEcho(leastTools - 20)) }
    const target = open.use(await startToolway({ folder: await bench.folder(scenario), servers }))
    const session = await openSession(target)
    const { tools, nextCursor } = (await session.ask('tools/list')) as { tools: unknown[]; nextCursor?: string }
    if (nextCursor !== undefined) throw new Error(`the list comes in pages, the first of ${tools.length} tools`)

    const folder = await bench.folder('list-bytes')
    const asked = session.prepare('tools/list', {}, '"tools":')
    const said = await ask(target.url, { headers: headersOf(asked.head), body: asked.message })
    await writeFile(join(folder, 'list.json'), said.text)
    const echo = open.use(await startChild('./echo-http.ts', ['10', folder]))
    const proxies = await startYardstick(open, echo.url)
    const leastBytes = Buffer.byteLength(said.text)
    const aim = async (where: Parameters<typeof openSession>[0]) => {
      const session = await openSession(where)
      return session.aim(session.prepare('tools/list', {}, '"tools":', leastBytes))
    }
    const arms = [...(await proxies.arms(aim)), { name, aim: await aim(target), pids: [target.pid] }]
    const row = answer(await bench.series(scenario, arms, { inFlight: 1 }), {
      scenario,
      what: `${tools.length} tools, ${(leastBytes / 1024 / 1024).toFixed(1)} MiB: p50`,
      arm: name,
      against: [yardstick, yardstickAgain],
      metric: p50,
      unit: 'ms',
      bound: { most: 1.3 },
      of: ' the proxy',
    })
    return [row]
  },
}

const headersOf = (head: string): Record<string, string> =>
  Object.fromEntries(
    head
      .split('\r\n')
      .slice(1)
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  )
