import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import { type Call, compose, type Handler } from '../core/call.ts'
import { ToolwayError } from '../core/errors.ts'
import { silentLog } from '../core/log.ts'
import { textResult } from '../core/result.ts'
import { Json } from '../json/json.ts'
import { createBreakers } from './breaker.ts'
import { bulkhead } from './bulkhead.ts'
import { attemptOf } from './pipeline.fixture.ts'
import { retry } from './retry.ts'
import { timeout } from './timeout.ts'

const config = { failures: 3, rate: 1, minimumCalls: 20, window: 30_000, openFor: 15_000, halfOpenCalls: 1 }

/** The layers in the order in which the pipeline has them, before a server that does what it is told. */
function row(run: Handler, { attempts = 2, concurrency = 1, isStarting = (): boolean => false } = {}) {
  const clock = createManualClock()
  const breakers = createBreakers({ configOf: () => config, clock, log: silentLog })
  const places = bulkhead({
    serverLimit: () => concurrency,
    agentLimit: () => undefined,
    total: () => 10,
    queue: () => 10,
    isStarting,
    clock,
  })
  const again = retry({ attempts, budget: 1, backoff: 100, onTimeout: false, clock, log: silentLog, random: () => 1 })
  const handle = compose([timeout(clock), again, attemptOf(breakers.step, places.step)], run)
  return { handle, clock, stats: places.stats, state: () => breakers.stateOf('files') }
}

/** A server that never answers, and nothing that listens to the signal. */
const hangs: Handler = () => new Promise(() => {})

const failed = (code: 'SERVER_UNAVAILABLE' | 'OUTCOME_UNKNOWN', unsent?: true) =>
  new ToolwayError(code, 'No.', { server: 'files', ...(unsent && { unsent }) })

test('F10: the time of a call runs over waiting, pauses and all attempts together', async () => {
  let tries = 0
  const { handle, clock, stats, state } = row((call) => {
    if (tries++ === 0) return Promise.reject(failed('SERVER_UNAVAILABLE', true))
    return hangs(call)
  })
  const caught = expect(handle(callOf())).rejects.toMatchObject({ code: 'TIMEOUT', message: /within 30 s/ })
  await clock.pass(29_999)
  expect({ tries, pending: clock.pending }).toEqual({ tries: 2, pending: 1 })
  await clock.pass(1)
  await caught
  expect(stats()).toMatchObject({ inFlight: 0, queued: 0 })
  expect(clock.pending).toBe(0)
  expect(tries).toBe(2)
  // The first attempt and the second, which had nearly all of the time.
  expect(state().failures).toBe(2)
})

test('F10, J3: time that ran out elsewhere is not held against the server', async () => {
  let tries = 0
  const { handle, clock, state } = row((call) => (tries++ === 0 ? slowly(call) : hangs(call)))
  const slowly = (_: Call) =>
    new Promise<never>((_, reject) => clock.after(20_000, () => reject(failed('SERVER_UNAVAILABLE', true))))
  const caught = expect(handle(callOf())).rejects.toMatchObject({ code: 'TIMEOUT' })
  await clock.pass(30_000)
  await caught
  expect(state().failures).toBe(1)
})

test('F10: the timeout of a call is paused while a person is asked', async () => {
  const question = Promise.withResolvers<Json>()
  const caller = { ...callOf().caller, capabilities: { elicitation: {} } }
  const peer = { ...callOf().peer, ask: () => question.promise }
  const { handle, clock } = row(async (call) => {
    await call.peer.ask('elicitation/create', Json.of({}), call.signal)
    return textResult('done')
  })
  const answer = handle(callOf({ caller, peer }))
  await clock.pass(300_000)
  question.resolve(Json.of({}))
  await expect(answer).resolves.toMatchObject({ isError: false })
  expect(clock.pending).toBe(0)
})

test('J3, F12: attempts count one by one, and what the breaker holds back is not tried any more', async () => {
  let tries = 0
  const down: Handler = () => {
    tries++
    return Promise.reject(failed('OUTCOME_UNKNOWN'))
  }
  const { handle, clock, state } = row(down, { attempts: 10 })
  const traits = { readOnly: false, idempotent: true, timeoutMs: 30_000 }
  const caught = expect(handle(callOf({ entry: entryOf({ traits }) }))).rejects.toMatchObject({
    code: 'CIRCUIT_OPEN',
    message: /Nothing was sent: .* Toolway made 4 attempts, and an earlier one may have run\.$/,
  })
  await clock.pass(30_000)
  await caught
  expect(tries).toBe(3)
  expect(state().state).toBe('half-open')
})

test('B7, J3: a server that hangs fills only its own slots, and its breaker opens when they time out', async () => {
  const { handle, clock, stats, state } = row((call) => (call.entry.server === 'files' ? hangs(call) : ok()), {
    concurrency: 3,
  })
  const ok = async () => textResult('fine')
  const operator = { ...callOf().caller, admin: true }
  const calls = Array.from({ length: 6 }, () => handle(callOf({ caller: operator })).catch(({ code }) => code))
  const bystander = callOf({ entry: entryOf({ server: 'other' }) })
  await expect(handle(bystander)).resolves.toMatchObject({ isError: false })
  await clock.pass(30_000)
  expect(await Promise.all(calls)).toEqual([...Array(3).fill('TIMEOUT'), ...Array(3).fill('OVERLOADED')])
  expect(state().state).toBe('open')
  await expect(handle(bystander)).resolves.toMatchObject({ isError: false })
  expect(stats()).toMatchObject({ inFlight: 0, queued: 0 })
})

test('J3, V2: calls that only waited for a slot while the server was starting do not open its breaker', async () => {
  const { handle, clock, state, stats } = row(hangs, { isStarting: () => true })
  const calls = Array.from({ length: 5 }, () => handle(callOf()))
  const caught = Promise.allSettled(calls)
  await clock.pass(30_000)
  await caught
  // Only the first call had the slot.
  expect(state()).toMatchObject({ state: 'closed', failures: 1 })
  expect(stats()).toMatchObject({ inFlight: 0, queued: 0 })
})
