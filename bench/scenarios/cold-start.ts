import { median } from '../measure/statistics.ts'
import { judgeMedian, type Row, without } from '../measure/verdict.ts'
import type { Scenario } from '../scenario.ts'
import { buildProgram } from '../targets/build.ts'
import { type Listening, startChild } from '../targets/child.ts'
import { openSession } from '../targets/session.ts'
import { reads, startToolway, stdioEcho } from '../targets/toolway.ts'

const scenario = 'cold-start'
const mostMs = 350

/** From the start of the process to the first answered call, which starts the server behind it too. */
export const coldStart: Scenario = {
  name: scenario,
  title: 'from the start of the process to the first answered call, with a cached catalog',
  async run(bench) {
    await using echo = await startChild('./echo-http.ts', [])
    const folder = await bench.folder(scenario)
    const options = { folder, servers: { echo: reads(stdioEcho()) } }
    const built = await buildProgram(await bench.folder('build')).catch(String)
    const from: Record<string, { start(): Promise<Listening>; tool: string }> = {
      'bare proxy': { start: () => startChild('./bare-proxy.ts', [echo.url]), tool: 'echo' },
      'Toolway from source': { start: () => startToolway(options), tool: 'echo__echo' },
      ...(built instanceof URL && {
        'Toolway as published': { start: () => startToolway(options, { program: built }), tool: 'echo__echo' },
      }),
    }
    const times: Record<string, number[]> = {}
    // The first round fills the catalog's memory and the disk's cache, and does not count.
    for (let round = 0; round <= bench.rounds; round++) {
      for (const [name, one] of Object.entries(from)) {
        const took = await timeOf(one)
        if (round > 0) times[name] = [...(times[name] ?? []), took]
      }
    }
    const rows = Object.entries(times).map(([name, measured]) => rowOf(name, measured))
    return built instanceof URL ? rows : [...rows, without(scenario, 'Toolway as published', 'failed', built)]
  },
}

async function timeOf({ start, tool }: { start(): Promise<Listening>; tool: string }): Promise<number> {
  const begin = performance.now()
  await using target = await start()
  const session = await openSession(target)
  await session.ask('tools/call', { name: tool, arguments: { message: 'first' } })
  return performance.now() - begin
}

function rowOf(name: string, measured: readonly number[]): Row {
  const middle = median(measured)
  const judged = name === 'Toolway as published'
  return {
    scenario,
    what: name,
    measured: `${middle.toFixed(0)} ms`,
    target: judged ? `< ${mostMs} ms` : '',
    verdict: judged ? judgeMedian(measured, mostMs) : 'for information',
    spread: `${Math.min(...measured).toFixed(0)}–${Math.max(...measured).toFixed(0)} ms`,
    value: middle,
  }
}
