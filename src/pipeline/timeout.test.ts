import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import type { Call, Handler } from '../core/call.ts'
import { textResult } from '../core/result.ts'
import { Json } from '../json/json.ts'
import { attemptOf } from './pipeline.fixture.ts'
import { timeout } from './timeout.ts'

/** Nothing listens to the signal: the attempt ends all the same. */
const deaf: Handler = (call) => attemptOf()(call, () => new Promise(() => {}))

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

test('F10: cancellation reaches the handler, with the reason of the caller', async () => {
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

/** An entry of a server whose calls may take 30 s, and ten minutes while it reports progress. */
const patientEntry = entryOf({
  traits: {
    readOnly: false,
    idempotent: false,
    timeoutMs: 30_000,
    timeoutKey: 'mcpServers.files.timeout',
    maxTimeout: { ms: 600_000, key: 'defaults.maxTimeout' },
  },
})

/** A call that never ends, and reports progress when the test says so. */
function running(call: Partial<Call> = {}) {
  const clock = createManualClock()
  let progressed: Call['progressed']
  const answer = timeout(clock)(callOf({ entry: patientEntry, ...call }), (running) => {
    progressed = running.progressed
    return deaf(running)
  })
  answer.catch(() => {})
  return { clock, answer, progress: () => progressed?.(), hasProgress: () => progressed !== undefined }
}

test('F10: while the caller is asked on behalf of one of several calls, the time of none runs, for ten minutes', async () => {
  const clock = createManualClock()
  const caller = { ...callOf().caller, capabilities: { elicitation: {} } }
  const outer = timeout(clock)(callOf({ caller }), (call) =>
    timeout(clock)(call, async (inner) => {
      const work = (until: AbortSignal) =>
        new Promise<void>((_, reject) => until.addEventListener('abort', () => reject(until.reason)))
      await inner.peer.paused?.(work, inner.signal).catch(() => {})
      return deaf(inner)
    }),
  )
  const caught = expect(outer).rejects.toMatchObject({ code: 'TIMEOUT' })
  await clock.pass(600_000)
  await clock.pass(29_999)
  expect(clock.pending).toBe(2)
  await clock.pass(1)
  await caught
  expect(clock.pending).toBe(0)
})

test('V4: progress starts the time again, and the error says what then stopped', async () => {
  const { clock, answer, progress } = running()
  for (let times = 0; times < 3; times++) {
    await clock.pass(29_000)
    progress()
  }
  await clock.pass(29_999)
  expect(clock.pending).toBe(1)
  await clock.pass(1)
  await expect(answer).rejects.toMatchObject({
    code: 'TIMEOUT',
    message: expect.stringMatching(/progress, then sent nothing for 30 s \(mcpServers\.files\.timeout\)/),
  })
  expect(clock.pending).toBe(0)
})

test('V4: however much progress there is, the maximum ends the call and is named', async () => {
  const { clock, answer, progress } = running()
  for (let seconds = 0; seconds < 600; seconds += 10) {
    expect(clock.pending).toBe(1)
    progress()
    await clock.pass(10_000)
  }
  await expect(answer).rejects.toMatchObject({
    code: 'TIMEOUT',
    message: expect.stringMatching(/within 600 s \(defaults\.maxTimeout\)/),
  })
})

test('V4: a limit that the caller names is hard, and the server is not asked for progress', async () => {
  const { clock, answer, hasProgress } = running({ timeoutMs: 2_000 })
  expect(hasProgress()).toBe(false)
  await clock.pass(2_000)
  await expect(answer).rejects.toThrow(/within 2 s \(timeout_ms\)/)
})

test('V4: the error names the limit as the caller set it, even if some of that time was spent before', async () => {
  const { clock, answer } = running({ timeoutMs: 1_999, wholeTimeoutMs: 2_000 })
  await clock.pass(1_999)
  await expect(answer).rejects.toThrow(/within 2 s \(timeout_ms\)/)
})

test("V4: a caller's limit is at most the operator's maximum", async () => {
  const clock = createManualClock()
  const call = callOf({ entry: patientEntry, timeoutMs: 3_600_000 })
  const caught = expect(timeout(clock)(call, deaf)).rejects.toMatchObject({
    code: 'TIMEOUT',
    message: expect.stringMatching(/within 600 s \(defaults\.maxTimeout\).* raise defaults\.maxTimeout/),
  })
  clock.advance(600_000)
  await caught
})

test('V4: the error of a call without progress names the setting and its value', async () => {
  const { clock, answer } = running()
  await clock.pass(30_000)
  await expect(answer).rejects.toThrow(/within 30 s \(mcpServers\.files\.timeout\).*raise mcpServers\.files\.timeout/)
})
