import { once } from 'node:events'
import { type Connection, openConnection } from '../load/connection.ts'
import type { Listening } from '../targets/child.ts'
import { type Era, openSession } from '../targets/session.ts'
import { httpEcho, reads, type ServerEntry, startToolway, stdioEcho } from '../targets/toolway.ts'
import type { CounterOrder, FunctionCounts } from './orders.ts'

/** One kind of call whose work is counted. */
export interface WorkScenario {
  readonly name: string
  readonly era: Era
  /** Whether the answer comes from the gateway's cache. */
  readonly cached?: boolean
  readonly server: ServerEntry
}

export function workScenarios(httpServer: string): readonly WorkScenario[] {
  const [stdio, http] = [stdioEcho(), httpEcho(httpServer)]
  return [
    { name: 'stdio, session, read', era: 'legacy', server: reads(stdio) },
    { name: 'stdio, session, write', era: 'legacy', server: stdio },
    { name: 'stdio, 2026-07-28, read', era: 'modern', server: reads(stdio) },
    { name: 'http, session, read', era: 'legacy', server: reads(http) },
    { name: 'http, 2026-07-28, read', era: 'modern', server: reads(http) },
    { name: 'cache hit', era: 'legacy', server: reads(stdio), cached: true },
  ]
}

/** The work of one warm call. */
export interface Work {
  readonly files: number
  readonly functions: number
  readonly invocations: number
  readonly promises: number
  /** Bytes allocated in V8's heap. */
  readonly bytes: number
}

export interface CountedWork {
  readonly work: Work
  /** Each function and how often it ran. */
  readonly functions: ReadonlyMap<string, number>
  /** How many bytes each function allocated. */
  readonly bytes: ReadonlyMap<string, number>
}

const warmCalls = 3000
const allocatingCalls = 400
const coveredCalls = 40
const promiseCalls = 50
/** Larger than all that the measured calls allocate. */
const youngMiB = 256

/** Starts the real program with everything on, and counts what one warm call of this kind makes it do. */
export async function countWork({ era, cached, server }: WorkScenario, folder: string): Promise<CountedWork> {
  const cache = cached ? { enabled: true, ttl: '1h', tools: ['echo.*'] } : { enabled: false }
  const nodeArgs = [`--max-semi-space-size=${youngMiB}`, `--min-semi-space-size=${youngMiB}`]
  const counter = new URL('./counter.ts', import.meta.url).href
  await using gateway = await startToolway(
    { folder, servers: { echo: server }, more: { cache } },
    { ipc: true, nodeArgs: [...nodeArgs, '--import', counter] },
  )
  const session = await openSession({ ...gateway, era })
  const { port, requests } = session.calls('echo__echo')
  const connection = await openConnection(port, requests)
  try {
    await call(connection, warmCalls)
    const promises = await perCall(gateway, connection, promiseCalls, ['count promises', 'promises'])
    const bytes = await allocated(gateway, connection)
    const functions = await functionsPerCall(gateway, connection)
    const bytesOf = await bytesPerCall(gateway, connection)
    const files = new Set([...functions.keys()].map((name) => name.split(':', 1)[0]))
    const invocations = [...functions.values()].reduce((sum, count) => sum + count, 0)
    return {
      work: { files: files.size, functions: functions.size, invocations, promises, bytes },
      functions,
      bytes: bytesOf,
    }
  } finally {
    connection.close()
  }
}

async function call(connection: Connection, times: number): Promise<void> {
  for (let made = 0; made < times; made++) {
    const failure = await new Promise<string | undefined>((resolve) => connection.send(resolve))
    if (failure !== undefined) throw new Error(`the call failed: ${failure}`)
  }
}

async function order<T>({ child }: Listening, name: CounterOrder): Promise<T> {
  const answered = once(child, 'message')
  child.send(name)
  const [{ answer }] = (await answered) as [{ answer: T }]
  return answer
}

async function perCall(
  gateway: Listening,
  connection: Connection,
  calls: number,
  [begin, end]: readonly [CounterOrder, CounterOrder],
): Promise<number> {
  await order(gateway, begin)
  await call(connection, calls)
  return Math.round((await order<number>(gateway, end)) / calls)
}

/** The least of a few rounds: a timer that runs in one of them adds to it. */
async function allocated(gateway: Listening, connection: Connection): Promise<number> {
  const rounds: number[] = []
  for (let round = 0; round < 5; round++) {
    await order(gateway, 'count bytes')
    await call(connection, allocatingCalls)
    const { bytes, collections } = await order<{ bytes: number; collections: number }>(gateway, 'bytes')
    if (collections === 0) rounds.push(bytes / allocatingCalls)
  }
  if (rounds.length === 0) throw new Error('garbage was collected in each round: the young generation is too small')
  return Math.round(Math.min(...rounds))
}

async function bytesPerCall(gateway: Listening, connection: Connection): Promise<Map<string, number>> {
  await order(gateway, 'sample bytes')
  await call(connection, allocatingCalls)
  const sampled = await order<FunctionCounts>(gateway, 'bytes by function')
  return new Map(sampled.map(([name, bytes]) => [name, Math.round(bytes / allocatingCalls)]))
}

/** How often each function runs in every call: what only some calls do, such as timers, is left out. */
async function functionsPerCall(gateway: Listening, connection: Connection): Promise<Map<string, number>> {
  await order(gateway, 'count functions')
  await call(connection, 1)
  await order(gateway, 'functions that ran')
  let always: Map<string, number> | undefined
  for (let sample = 0; sample < coveredCalls; sample++) {
    await call(connection, 1)
    const ran = new Map(await order<FunctionCounts>(gateway, 'functions that ran'))
    const before = always ?? ran
    always = new Map(
      [...before].flatMap(([name, count]) => (ran.has(name) ? [[name, Math.min(count, ran.get(name) ?? 0)]] : [])),
    )
  }
  await order(gateway, 'stop counting functions')
  return always ?? new Map()
}
