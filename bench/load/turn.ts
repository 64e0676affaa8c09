import { cpuMsOf } from '../measure/process.ts'
import { type Connection, openConnection } from './connection.ts'
import type { Order, Sample } from './orders.ts'

type Run = Extract<Order, { kind: 'run' }>

/** How long the last answers may take before they count as failures. */
const timeoutMs = 35_000

/** One turn of load: opens the connections, warms up, counts, closes. */
export async function runTurn({ aim, inFlight, warmUpMs, ms, most, rate, tolerated = [], pids }: Run): Promise<Sample> {
  const connections = await Promise.all(Array.from({ length: inFlight }, () => openConnection(aim.port, aim.requests)))
  const times: number[] = []
  let refused = 0
  let failures = 0
  let failure: string | undefined
  let counting = false
  let over = false
  const cpu = () => pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0)
  const { promise: enough, resolve: stop } = Promise.withResolvers<void>()
  const pauseMs = rate === undefined ? 0 : (1000 * inFlight) / rate

  const work = (connection: Connection, done: () => void) => {
    const next = () => {
      if (over) return done()
      const start = performance.now()
      connection.send((wrong) => {
        if (wrong !== undefined && tolerated.some((code) => wrong.includes(code))) refused += 1
        else if (wrong !== undefined) {
          failure ??= wrong
          failures += 1
          // A connection that is lost stays lost.
          return done()
        }
        if (counting && !over && wrong === undefined) {
          const took = performance.now() - start
          times.push(took)
          if (times.length === most) stop()
        }
        if (pauseMs > 0) setTimeout(next, Math.max(0, pauseMs - (performance.now() - start)))
        else next()
      })
    }
    next()
  }
  const workers = Promise.all(connections.map((one) => new Promise<void>((done) => work(one, done))))

  await Promise.race([workers, after(warmUpMs)])
  counting = true
  const [cpuBefore, ownBefore, start] = [cpu(), process.cpuUsage(), performance.now()]
  await Promise.race([workers, enough, after(ms)])
  over = true
  const took = performance.now() - start
  const own = process.cpuUsage(ownBefore)
  const cpuMs = cpu() - cpuBefore
  await Promise.race([workers, after(timeoutMs)])
  for (const connection of connections) connection.close()

  const sorted = Float64Array.from(times).sort()
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return {
    calls: times.length,
    ms: took,
    p50: at(0.5),
    p95: at(0.95),
    p99: at(0.99),
    worst: at(1),
    cpuMs,
    ownCpuMs: (own.user + own.system) / 1000,
    refused,
    failures,
    ...(failure !== undefined && { failure }),
  }
}

const after = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms).unref())
