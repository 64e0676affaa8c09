import { expect, test, vi } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import { type Call, compose, type Handler, type Interceptor, type TrailStep } from '../core/call.ts'
import { ToolwayError } from '../core/errors.ts'
import { silentLog } from '../core/log.ts'
import type { Observed } from '../core/observer.ts'
import { textResult } from '../core/result.ts'
import { Json } from '../json/json.ts'
import { approve } from './approve.ts'
import { type AttemptStep, attemptInSteps } from './attempt.ts'
import { bulkhead } from './bulkhead.ts'
import { openCache, readTool } from './cache/cache.fixture.ts'
import { approvalBy, interceptorOf, recordedBy } from './pipeline.fixture.ts'
import { retry } from './retry.ts'
import { timeout } from './timeout.ts'

const clock = createManualClock()
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** A row of layers under the eyes of an observer. */
function row(before: readonly Interceptor[], steps: readonly AttemptStep[], run: Handler) {
  const seen: Observed[] = []
  const watch = { observers: [{ ended: (one: Observed) => void seen.push(one) }], clock }
  return { seen, handle: recordedBy(watch, compose(before, attemptInSteps(watch, steps, run))) }
}

const brief = (observed: Observed | undefined) => observed?.trail.steps.map(({ name, error }) => [name, error ?? 'ok'])

test('F12, F16: every attempt leaves a step, the failed ones with their codes', async () => {
  let tries = 0
  const { handle, seen } = row(
    [retry({ attempts: 2, budget: 1, backoff: 0, onTimeout: false, clock, log: silentLog })],
    [],
    async () => {
      if (++tries < 3) throw new ToolwayError('SERVER_UNAVAILABLE', 'x', { server: 'files', unsent: true })
      return textResult('x')
    },
  )
  const answer = handle(callOf())
  await clock.pass(1_000)
  await answer
  expect(brief(seen[0])).toEqual([
    ['attempt', 'SERVER_UNAVAILABLE'],
    ['attempt', 'SERVER_UNAVAILABLE'],
    ['attempt', 'ok'],
  ])
})

test('B7, F16: waiting for a slot is a step within the attempt; a call that does not wait has none', async () => {
  const places = { serverLimit: () => 1, agentLimit: () => undefined, total: () => 10, queue: () => 10, clock }
  const first = Promise.withResolvers<void>()
  const { handle, seen } = row([], [bulkhead(places).step], async ({ id }) => {
    if (id === 'first') await first.promise
    return textResult(id)
  })
  const one = handle(callOf({ id: 'first' }))
  const two = handle(callOf({ id: 'second' }))
  await turn()
  first.resolve()
  await Promise.all([one, two])
  const steps = Object.fromEntries(seen.map((observed) => [observed.call.id, brief(observed)]))
  expect(steps).toEqual({
    first: [['attempt', 'ok']],
    second: [
      ['attempt', 'ok'],
      ['queue', 'ok'],
    ],
  })
  const { steps: [whole, wait] = [] } = (seen.find(({ call }) => call.id === 'second') as Observed).trail
  expect(wait?.start).toBeGreaterThanOrEqual((whole as TrailStep).start)
})

test('F16: asking a person is a step, also where they say no', async () => {
  const asking = (answer: object): Call => {
    const { caller, peer } = callOf()
    const capable = { ...caller, capabilities: { elicitation: {} } }
    return callOf({ caller: capable, peer: { ...peer, ask: async () => Json.of(answer) } })
  }
  const { handle, seen } = row([interceptorOf(approve(approvalBy('approve[0]'), clock))], [], async () =>
    textResult('x'),
  )
  await handle(asking({ action: 'accept', content: { approve: true } }))
  await expect(handle(asking({ action: 'decline' }))).rejects.toThrow('declined')
  expect(seen.map(brief)).toEqual([
    [
      ['approve', 'ok'],
      ['attempt', 'ok'],
    ],
    [['approve', 'DENIED_BY_POLICY']],
  ])
})

test('F13, F15: the trail contains how the cache handled a call', async () => {
  const { handle: cached } = openCache()
  const { handle, seen } = row([(call) => cached(call)], [], cached)
  const call = () => callOf({ entry: readTool() })
  await Promise.all([handle(call()), handle(call())])
  await handle(call())
  await handle(callOf({ entry: entryOf() }))
  expect(seen.map(({ trail }) => trail.cache).sort()).toEqual(['hit', 'joined', 'miss', undefined])
})

test('F15, G9: a person who answers, before the call or during it, is not latency, also not of the call outside', async () => {
  using time = vi.spyOn(performance, 'now').mockReturnValue(0)
  const pass = (ms: number) => time.mockReturnValue(performance.now() + ms)
  const { caller, peer } = callOf()
  const ask = async () => {
    await turn()
    pass(60_000)
    return Json.of({ action: 'accept', content: { approve: true } })
  }
  const call = callOf({ caller: { ...caller, capabilities: { elicitation: {} } }, peer: { ...peer, ask } })
  const inner = row([interceptorOf(approve(approvalBy('approve[0]'), clock)), timeout(clock)], [], async (running) => {
    pass(5)
    const questions = [1, 2].map(() => running.peer.ask('elicitation/create', Json.of({}), running.signal))
    await Promise.all(questions)
    return textResult('x')
  })
  const outer = row([], [], async ({ trail }) => {
    pass(2)
    return inner.handle({ ...call, trail })
  })
  await outer.handle(callOf({ id: 'outer' }))
  expect([inner.seen[0]?.ms, outer.seen[0]?.ms]).toEqual([5, 7])
  expect(inner.seen[0]).toMatchObject({ start: 2, end: 180_007 })
  expect(brief(inner.seen[0])?.map(([name]) => name)).toEqual(['approve', 'attempt', 'ask', 'ask'])
})
