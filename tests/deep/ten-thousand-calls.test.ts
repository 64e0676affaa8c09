import { watch } from 'node:fs'
import { Agent, fetch as undiciFetch } from 'undici'
import { expect, test } from 'vitest'
import { connect, type Fetch, type TestClient } from '../fixtures/clients.ts'
import { settledHeap } from '../fixtures/memory.ts'
import { descriptors, parentOf, zombiesOf } from '../fixtures/processes.ts'
import { stdioServers } from '../fixtures/servers.ts'
import { type Endpoint, startToolway } from '../fixtures/toolway.ts'
import { until } from '../fixtures/until.ts'

const total = 10_000
const inFlight = 16
const crashEvery = 50
const warmUp = 1_000
const mebibyte = 1024 * 1024

/** The same sequence in every run: a failure can be looked at again. */
function createDice(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** A client whose connections are its own and end with it, so that whatever is still open afterwards is Toolway's. */
async function connectAlone(endpoint: Endpoint): Promise<TestClient> {
  const agent = new Agent()
  const fetch = ((url: string, init?: RequestInit) =>
    undiciFetch(url, { ...(init as object), dispatcher: agent })) as unknown as Fetch
  const client = await connect('v1', { endpoint, fetch })
  return {
    ...client,
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]()
      await agent.destroy()
    },
  }
}

test('F14, F12, F10: 10,000 calls with cancellations and a crash in every 50 leave nothing behind', async () => {
  // Once it has watched a folder, the event loop keeps what it did that with.
  watch(import.meta.dirname).close()
  const outside = descriptors()
  const restarts = { max: total, window: '1s' }
  // A breaker would spare the server most of the calls.
  const breaker = { failures: total, minimumCalls: 10 * total }
  {
    await using toolway = await startToolway({
      history: {},
      mcpServers: { probe: { ...stdioServers.probe(), restarts, idempotentTools: ['echo'] } },
      breaker,
    })
    const state = () => ({ ...descriptors(), servers: toolway.servers().length })
    // Also starts what starts with the first calls, such as the thread that writes the history.
    await callAll(toolway, warmUp)
    // The listening socket, and the three ends of the server's input and output.
    const idle = await until(() => (descriptors().sockets === outside.sockets + 4 ? state() : undefined), {
      what: 'nothing to be open but the listening socket and the server',
    })
    const before = { heap: await settledHeap(), rss: process.memoryUsage().rss }
    const start = performance.now()
    const outcomes = await callAll(toolway, total)
    const seconds = (performance.now() - start) / 1000
    const grown = { heap: (await settledHeap()) - before.heap, rss: process.memoryUsage().rss - before.rss }
    const inMebibytes = Object.entries(grown).map(([what, bytes]) => `${what} ${(bytes / mebibyte).toFixed(1)} MiB`)
    console.info('outcomes:', outcomes, `in ${seconds.toFixed(0)} s; grown by ${inMebibytes.join(', ')}`)
    expect(grown.heap).toBeLessThan(8 * mebibyte)
    expect(zombiesOf(process.pid)).toEqual([])
    expect(toolway.servers().map(parentOf)).toEqual([process.pid])

    // A crash takes the calls beside it with it, and some come before the next start; but none is lost.
    const { answered = 0, cancelled = 0, ...errors } = outcomes
    expect(Object.values(outcomes).reduce((sum, count) => sum + count)).toBe(total)
    expect(answered).toBeGreaterThan(total * 0.6)
    expect(cancelled).toBeGreaterThan(total * 0.05)
    expect(errors.OUTCOME_UNKNOWN).toBeGreaterThanOrEqual(total / crashEvery)
    for (const code of Object.keys(errors))
      expect(code).toMatch(/^(OUTCOME_UNKNOWN|SERVER_UNAVAILABLE|SERVER_UNHEALTHY)$/)
    await until(() => JSON.stringify(state()) === JSON.stringify(idle), {
      what: `descriptors and processes to go back to ${JSON.stringify(idle)} from ${JSON.stringify(state())}`,
    })
  }
  await until(() => descriptors().all <= outside.all, {
    what: `every descriptor to be closed: ${JSON.stringify(outside)} before, ${JSON.stringify(descriptors())} now`,
  })
})

/** How many calls ended how. */
async function callAll(toolway: Endpoint, total: number): Promise<Record<string, number>> {
  await using client = await connectAlone(toolway)
  const call = (tool: string, args = {}, signal?: AbortSignal) =>
    client.callTool(`probe.${tool}`, args, signal && { signal })
  const dice = createDice(20_261)
  const outcomes: Record<string, number> = {}
  let started = 0

  const one = async (number: number): Promise<string> => {
    if (number % crashEvery === 0) return codeOf(await call('die'))
    if (dice() < 0.1) {
      const abort = new AbortController()
      setTimeout(() => abort.abort(), dice() * 5)
      return call('wait', {}, abort.signal).then(codeOf, () => 'cancelled')
    }
    const result = await call('echo', { message: number })
    if (!result.isError) expect(result.content).toEqual([{ type: 'text', text: `Echo: ${number}` }])
    return codeOf(result)
  }
  const worker = async () => {
    while (started < total) {
      const outcome = await one(++started)
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: inFlight }, worker))

  await until(async () => !(await call('echo', { message: 'after' })).isError, { what: 'the server to come back' })
  const waiting = async () => (await call('state')).structuredContent?.waiting
  await until(async () => (await waiting()) === 0, { what: 'the server to have heard of every cancellation' })
  return outcomes
}

const codeOf = (result: { isError?: boolean; _meta?: Record<string, unknown> }): string =>
  result.isError ? String((result._meta?.['dev.toolway/error'] as { code: string } | undefined)?.code) : 'answered'
