import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { callOf } from '../core/call.fixture.ts'
import type { Handler } from '../core/call.ts'
import { Json } from '../core/json.ts'
import { textResult } from '../core/result.ts'
import { timeout } from './timeout.ts'

const deaf: Handler = () => new Promise(() => {})

test('F10: a call ends at the deadline of its entry, even if nothing listens to the signal', async () => {
  const clock = createManualClock()
  const answer = timeout(clock)(callOf(), deaf)
  const caught = expect(answer).rejects.toMatchObject({ code: 'TIMEOUT', details: { server: 'files' } })
  clock.advance(30_000)
  await caught
  expect(clock.pending).toBe(0)
})

test('F10: the caller may ask for another deadline', async () => {
  const clock = createManualClock()
  const caught = expect(timeout(clock)(callOf({ timeoutMs: 5 }), deaf)).rejects.toThrow('within 5 ms')
  clock.advance(5)
  await caught
})

test('F10: cancellation reaches whatever runs, with the reason of the caller', async () => {
  const caller = new AbortController()
  let seen: AbortSignal | undefined
  const answer = timeout(createManualClock())(callOf({ signal: caller.signal }), (call) => {
    seen = call.signal
    return deaf(call)
  })
  caller.abort(new Error('changed my mind'))
  await expect(answer).rejects.toThrow('changed my mind')
  expect(seen?.aborted).toBe(true)
})

test('a call that answers leaves no timer behind', async () => {
  const clock = createManualClock()
  await timeout(clock)(callOf(), async () => textResult('done'))
  expect(clock.pending).toBe(0)
})

test('F10: while the caller is asked something, the time does not run', async () => {
  const clock = createManualClock()
  const question = Promise.withResolvers<Json>()
  const caller = { ...callOf().caller, capabilities: { elicitation: {} } }
  const peer = { ...callOf().peer, ask: () => question.promise }
  const answer = timeout(clock)(callOf({ caller, peer }), async (call) => {
    await call.peer.ask('elicitation/create', Json.of({}), call.signal)
    return deaf(call)
  })
  await clock.pass(29_000)
  await clock.pass(600_000)
  question.resolve(Json.of({}))
  const caught = expect(answer).rejects.toMatchObject({ code: 'TIMEOUT' })
  await clock.pass(29_999)
  expect(clock.pending).toBe(1)
  await clock.pass(1)
  await caught
})
