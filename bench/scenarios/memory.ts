import { setTimeout as wait } from 'node:timers/promises'
import { residentBytesOf } from '../measure/process.ts'
import { judgeMedian } from '../measure/verdict.ts'
import type { Scenario } from '../scenario.ts'
import { buildProgram } from '../targets/build.ts'
import { startChild } from '../targets/child.ts'
import { openSession } from '../targets/session.ts'
import { reads, startToolway, stdioEcho } from '../targets/toolway.ts'

const scenario = 'memory'
const most = 90
const restMs = 25_000
const servers = Array.from({ length: 10 }, (_, number) => `echo${number}`)
const megabytes = (bytes: number) => bytes / 1_000_000

/** What is left in memory once ten servers have been used and nobody asks for anything. */
export const memory: Scenario = {
  name: scenario,
  title: 'idle memory with 10 servers used once',
  async run(bench) {
    const program = await buildProgram(await bench.folder('build'))
    const measured: number[] = []
    for (let round = 0; round < 3; round++) {
      const folder = await bench.folder(scenario)
      const behind = Object.fromEntries(servers.map((name) => [name, reads(stdioEcho())]))
      await using target = await startToolway({ folder, servers: behind }, { program })
      const session = await openSession(target)
      for (const name of servers)
        await session.ask('tools/call', { name: `${name}__echo`, arguments: { message: 'once' } })
      await wait(restMs)
      measured.push(megabytes(residentBytesOf(target.pid)))
    }
    await using echo = await startChild('./echo-http.ts', [])
    await using proxy = await startChild('./bare-proxy.ts', [echo.url])
    const session = await openSession(proxy)
    for (const _ of servers) await session.ask('tools/call', { name: 'echo', arguments: { message: 'once' } })
    await wait(restMs)
    const bare = megabytes(residentBytesOf(proxy.pid))
    measured.sort((a, b) => a - b)
    const [least, middle, worst] = measured as [number, number, number]
    return [
      {
        scenario,
        what: 'resident memory of the process, as published',
        measured: `${middle.toFixed(0)} MB (the bare proxy ${bare.toFixed(0)} MB)`,
        target: `< ${most} MB`,
        verdict: judgeMedian(measured, most),
        spread: `${least.toFixed(0)}–${worst.toFixed(0)} MB`,
        value: middle,
      },
    ]
  },
}
