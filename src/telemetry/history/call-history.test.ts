import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { callOf, entryOf } from '../../core/call.fixture.ts'
import type { HistoryBatch, HistoryStore, StoredCall } from '../../core/history.ts'
import { createRecentCalls } from '../calls/call-records.ts'
import { observedOf, type Told } from '../metrics/observed.fixture.ts'
import { noCounts } from '../stats/stats.ts'
import { createCallHistory } from './call-history.ts'
import { HistoryRecorder, type HistoryRecorderOptions } from './history-recorder.ts'

/** A recorder that writes to a list. `answer` says whether a batch is taken. */
function recording(options: Partial<HistoryRecorderOptions> = {}) {
  const clock = createManualClock()
  const batches: HistoryBatch[] = []
  const answer = { write: async () => true }
  const store = {
    async write(batch: HistoryBatch) {
      batches.push(batch)
      return answer.write()
    },
  }
  const redact = (text: string) => text.replaceAll('s3cret', '***')
  const recorder = new HistoryRecorder({ store, clock, redact, ...options })
  const calls = createRecentCalls({ clock, redact, onEnded: (call) => recorder.add(call) })
  const { entry } = callOf()
  const tell = (...all: Told[]) => {
    for (const told of all) {
      const observed = observedOf({ at: clock.now(), ...told, call: { id: `c${Math.random()}`, entry, ...told.call } })
      recorder.observer.ended(observed)
      calls.observer.ended(observed)
    }
  }
  return { clock, batches, answer, recorder, calls, tell, redact }
}

test('V12: calls within two seconds are written in one batch, and without calls no timer runs', async () => {
  const { clock, batches, tell } = recording()
  expect(clock.pending).toBe(0)
  tell({ ms: 1 }, { ms: 2, outcome: { kind: 'tool_error' } }, { outcome: { kind: 'denied' } })
  tell({ trail: { cache: 'hit', steps: [] }, ms: 0.5 })
  await clock.pass(2_000)
  expect(batches).toHaveLength(1)
  expect(batches[0]?.tallies).toMatchObject([
    { counts: { calls: 4, errors: 1, toolErrors: 1, denials: 1, cacheHits: 1, sumMs: 3, hitMs: 0.5 } },
  ])
  expect(batches[0]?.calls).toHaveLength(4)
  expect(clock.pending).toBe(0)
  await clock.pass(5_000)
  expect(batches).toHaveLength(1)
})

test('V12: names are stored without secrets; the steps of a call with their durations', async () => {
  const { batches, recorder, tell } = recording()
  const steps = [{ name: 'attempt' as const, start: 1_002, end: 1_010, error: 'no s3cret' }]
  tell({ agent: 's3cret', outcome: { kind: 'failed', code: 's3cret' }, trail: { steps } })
  await recorder.flush()
  expect(JSON.stringify(batches)).not.toContain('s3cret')
  expect(batches[0]?.calls[0]?.steps).toEqual([['attempt', 2, 8, 'no ***']])
})

test('G9: tallies name meta-tools as operations of their own, apart from the tools that they call', async () => {
  const { batches, recorder, tell } = recording()
  const executeTool = entryOf({ server: 'toolway', name: 'execute_tool' })
  tell({ agent: 'dev', call: { entry: executeTool } }, { agent: 'dev' })
  await recorder.flush()
  const named = batches[0]?.tallies.map(({ agent, operation, server, name }) => [agent, operation, server, name])
  expect(named).toEqual([
    ['dev', 'execute_tool', 'toolway', 'execute_tool'],
    ['dev', 'call_tool', 'files', 'read'],
  ])
})

test('V6: calls that wait to be written are bounded per agent and in all; every call is counted', async () => {
  const { batches, recorder, tell } = recording({ maxCalls: 10, maxCallsPerAgent: 6, maxTallies: 3 })
  tell(...Array.from({ length: 100 }, () => ({ agent: 'flood' })))
  tell(...Array.from({ length: 8 }, (_, n) => ({ agent: `a${n}` })))
  expect(recorder.use()).toEqual({ used: 10, limit: 10, perCaller: 6, largest: 6, refused: 98 })
  await recorder.flush()
  const [{ tallies = [], calls = [] } = {}] = batches
  expect(calls).toHaveLength(10)
  expect(tallies.map(({ agent, counts }) => [agent, counts.calls])).toEqual([
    ['flood', 100],
    ['a0', 1],
    ['a1', 1],
    ['other', 6],
  ])
})

test('V12: while the store is slow only one batch is in flight, and lost calls are counted', async () => {
  const { clock, batches, answer, recorder, tell } = recording()
  const slow = Promise.withResolvers<boolean>()
  answer.write = () => slow.promise
  tell({})
  await clock.pass(2_000)
  tell({}, {})
  await clock.pass(60_000)
  expect(batches).toHaveLength(1)
  slow.resolve(false)
  await recorder.flush()
  expect(batches.map(({ calls }) => calls.length)).toEqual([1, 2])
  expect(recorder.use().refused).toBe(1 + 2)
})

test('V12: restored calls come with their timeline, after those of this process', async () => {
  const { clock, calls, recorder, redact, tell } = recording()
  const stored = Array.from(
    { length: 2_500 },
    (_, n): StoredCall => ({
      ...{ id: `old${n}`, parent: null, at: clock.now() - n - 1, ms: 1, agent: 'dev', principal: 'p' },
      ...{ operation: 'call_tool', server: 'files', name: 'read', outcome: 'answered', code: null, cache: null },
      steps: [['attempt', 1, 2, null]],
    }),
  )
  const store = {
    calls: async ({ limit }: { limit: number }) => ({ calls: stored.slice(0, limit), total: stored.length }),
  } as Partial<HistoryStore> as HistoryStore
  const history = createCallHistory({ store, recorder, clock, redact })
  calls.restore(await history.latest(2_000))
  tell({ call: callOf({ id: 'new' }) })
  expect(calls.list({}, 3).map(({ id }) => id)).toEqual(['new', 'old0', 'old1'])
  expect(calls.list({}, 5_000)).toHaveLength(2_000)
  expect(calls.find('old7')?.steps).toEqual([{ name: 'attempt', startMs: 1, ms: 2, error: null }])
})

test('G10: steps in which no process ran are gaps, not zeros', async () => {
  const { clock, recorder, redact } = recording()
  const stepMs = 60_000
  const from = Math.floor(clock.now() / stepMs) * stepMs
  clock.advance(from + 10 * stepMs - clock.now())
  const counts = { ...noCounts(), calls: 1 }
  const sums = [{ group: '', at: from + stepMs, counts, latencies: new Uint32Array() }]
  const runs = [[from + 3 * stepMs + 1, from + 4 * stepMs]] as const
  const store = { sums: async () => ({ since: from, stepMs, sums, runs }) } as Partial<HistoryStore> as HistoryStore
  const { series } = createCallHistory({ store, recorder, clock, redact })
  clock.advance(stepMs)
  const { points = [] } = (await series({ from, to: from + 13 * stepMs })) ?? {}
  expect(points.map(({ calls, gap }) => (gap ? 'gap' : calls))).toEqual([
    ...['gap', 1, 'gap', 0, 0, 'gap', 'gap', 'gap', 'gap', 'gap'],
    // This process has started, and its present ends.
    ...[0, 0, 'gap'],
  ])
})
