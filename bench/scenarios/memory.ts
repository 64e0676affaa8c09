import { setTimeout as wait } from 'node:timers/promises'
import { residentBytesOf } from '../measure/process.ts'
import { judgeMedian } from '../measure/verdict.ts'
import type { Scenario } from '../scenario.ts'
import { startChild } from '../targets/child.ts'
import { openSession } from '../targets/session.ts'
import { reads, startToolway, stdioEcho } from '../targets/toolway.ts'

const scenario = 'memory'
const most = 90
const restMs = 5000
const servers = Array.from({ length: 10 }, (_, number) => `echo${number}`)
const megabytes = (bytes: number) => bytes / 1_000_000

/** What is left in memory once ten servers have been used and nobody asks for anything. */
export const memory: Scenario = {
  name: scenario,
  title: 'idle memory with 10 servers used once',
  async run(bench) {
    const measured: number[] = []
    for (let round = 0; round < 3; round++) {
      await using target = await startToolway({
        folder: await bench.folder(scenario),
        servers: Object.fromEntries(servers.map((name) => [name, reads(stdioEcho())])),
      })
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
        what: 'resident memory of the process',
        measured: `${middle.toFixed(0)} MB (the bare proxy ${bare.toFixed(0)} MB)`,
        target: `< ${most} MB`,
        verdict: judgeMedian(measured, most),
        spread: `${least.toFixed(0)}–${worst.toFixed(0)} MB`,
        value: middle,
      },
    ]
  },
}
