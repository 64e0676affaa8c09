import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { createKeptLog } from '../../tests/fixtures/log.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import { type Call, compose, type Handler } from '../core/call.ts'
import { type ErrorCode, type ErrorDetails, errorKinds, ServerError, ToolwayError } from '../core/errors.ts'
import { silentLog } from '../core/log.ts'
import { textResult } from '../core/result.ts'
import { Json } from '../json/json.ts'
import { attemptOf } from './pipeline.fixture.ts'
import { type RetryOptions, retry } from './retry.ts'
import { timeout } from './timeout.ts'

const plain = { readOnly: false, idempotent: false, timeoutMs: 30_000 }
const harmless = callOf({ entry: entryOf({ traits: { ...plain, idempotent: true } }) })
const error = (code: ErrorCode, details: ErrorDetails = { server: 'files' }) => new ToolwayError(code, 'No.', details)
const unsent = error('SERVER_UNAVAILABLE', { server: 'files', unsent: true })
const unknown = error('OUTCOME_UNKNOWN')

/** Runs a call whose attempts fail one after the other, until they are used up; without pauses of any length. */
function trying(options: Partial<RetryOptions> = {}) {
  const clock = createManualClock()
  const interceptor = retry({
    attempts: 2,
    budget: 0.2,
    backoff: 100,
    onTimeout: false,
    clock,
    log: silentLog,
    random: () => 0,
    ...options,
  })
  const run = async (failures: readonly Error[], call: Call = callOf()) => {
    const at: number[] = []
    const answer = interceptor(call, async () => {
      at.push(clock.now())
      const failure = failures[at.length - 1]
      if (failure) throw failure
      return textResult('done')
    }).catch((thrown: Error) => thrown)
    await clock.pass(100_000)
    const outcome = await answer
    return { tries: at.length, at, outcome, code: outcome instanceof ToolwayError ? outcome.code : undefined }
  }
  return { run, clock, interceptor }
}

describe('which failures are retried', () => {
  test('F12: calls that were not sent, for any tool', async () => {
    const { tries, outcome } = await trying().run([unsent])
    expect(tries).toBe(2)
    expect(outcome).toEqual(textResult('done'))
  })

  test.each(['SERVER_UNAVAILABLE', 'OUTCOME_UNKNOWN'] as const)(
    'F12: %s only where the operator says that twice does no harm',
    async (code) => {
      expect((await trying().run([error(code)])).tries).toBe(1)
      expect((await trying().run([error(code)], harmless)).tries).toBe(2)
      const reads = callOf({ entry: entryOf({ traits: { ...plain, readOnly: true } }) })
      expect((await trying().run([error(code)], reads)).tries).toBe(2)
    },
  )

  const others = (Object.keys(errorKinds) as ErrorCode[]).filter(
    (code) => code !== 'SERVER_UNAVAILABLE' && code !== 'OUTCOME_UNKNOWN',
  )
  test.each(others)('F12: %s never', async (code) => {
    expect((await trying().run([error(code)], harmless)).tries).toBe(1)
  })

  test.each(['TIMEOUT', 'CANCELLED', 'CIRCUIT_OPEN', 'OVERLOADED'] as const)(
    'F12: %s never, even if unsent',
    async (code) => {
      const { tries } = await trying().run([error(code, { server: 'files', unsent: true })], harmless)
      expect(tries).toBe(1)
    },
  )

  test('F12, J3: a failure because of the request itself never, because it would fail again', async () => {
    const refusal = error('SERVER_UNAVAILABLE', { server: 'files', requestOnly: true })
    expect((await trying().run([refusal], harmless)).tries).toBe(1)
  })

  test("T2: neither a server's own error nor a fault of ours, and both reach the caller as they are", async () => {
    const own = new ServerError(Json.of({ code: -32000, message: 'busy' }))
    const ours = new TypeError('ours')
    expect(await trying().run([own], harmless)).toMatchObject({ tries: 1, outcome: own })
    expect((await trying().run([unsent, ours], harmless)).outcome).toBe(ours)
  })

  test('F12: a nested call is retried where it runs, not again around it', async () => {
    const carrier = callOf({
      entry: entryOf({ server: 'toolway', traits: { ...plain, idempotent: true, carries: true } }),
    })
    expect((await trying().run([unsent], carrier)).tries).toBe(1)
    const sink = callOf({ entry: entryOf({ server: 'sink', traits: { ...plain, idempotent: true } }) })
    expect((await trying().run([unsent], sink)).tries).toBe(1)
  })

  test('F12: nothing once the caller has gone, and nothing is begun after a pause either', async () => {
    const { interceptor, clock } = trying({ random: () => 1 })
    const controller = new AbortController()
    let tries = 0
    const answer = interceptor({ ...callOf(), signal: controller.signal }, async () => {
      tries++
      throw unsent
    })
    const caught = expect(answer).rejects.toThrow('changed my mind')
    await clock.pass(50)
    controller.abort(new Error('changed my mind'))
    await caught
    await clock.pass(1_000)
    expect(tries).toBe(1)
    expect(clock.pending).toBe(0)
  })
})

describe('how often and when', () => {
  test('F12: as many attempts after the first as configured, then the last failure, with their number', async () => {
    const { tries, outcome } = await trying().run([unsent, unsent, unsent])
    expect(tries).toBe(3)
    expect(outcome).toMatchObject({
      message: expect.stringContaining('3 attempts'),
      details: { server: 'files', unsent: true },
    })
    const once = await trying({ attempts: 0 }).run([unsent])
    expect(once).toMatchObject({ tries: 1, outcome: unsent })
  })

  test('G6: the error for a tool that the policy hides does not mention attempts', async () => {
    const hidden = error('TOOL_NOT_FOUND', { concealed: error('DENIED_BY_POLICY') })
    const { tries, outcome } = await trying().run([unsent, hidden])
    expect(tries).toBe(2)
    expect(outcome).toBe(hidden)
  })

  test('F12: the error says that an attempt may have run, even if a later one was not sent', async () => {
    const { outcome } = await trying().run([unknown, unsent, error('CIRCUIT_OPEN')], harmless)
    expect(outcome).toMatchObject({
      code: 'CIRCUIT_OPEN',
      message: expect.stringMatching(/3 attempts.*may have run/),
    })
    const last = (await trying({ attempts: 1 }).run([unknown, unsent], harmless)).outcome as ToolwayError
    expect(last.details.unsent).toBeUndefined()
  })

  test.each(['resource', 'template', 'prompt', 'tool'] as const)(
    'F12: no attempt to read a %s may have had an effect',
    async (kind) => {
      const call = callOf({ entry: entryOf({ kind, traits: { ...plain, readOnly: true } }) })
      const { outcome } = await trying().run(Array(3).fill(error('SERVER_UNAVAILABLE')), call)
      expect(outcome).toMatchObject({ message: expect.stringMatching(/3 attempts\.$/) })
    },
  )

  test('F12: pauses are a random part of one that doubles each time, up to a bound', async () => {
    const failures = Array.from({ length: 11 }, () => unsent)
    const times = async (random: number) => {
      const options = { attempts: 10, budget: 1, random: () => random }
      const { run, interceptor } = trying(options)
      for (let count = 0; count < 10; count++) await interceptor(callOf(), async () => textResult('done'))
      const { at } = await run(failures, callOf({ timeoutMs: 1_000_000 }))
      return at.slice(1).map((time, index) => time - (at[index] as number))
    }
    expect(await times(1)).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000])
    expect((await times(0.5)).slice(0, 3)).toEqual([50, 100, 200])
  })

  test('F10, F12: a retry that would come too late is not waited for: the caller gets the error', async () => {
    const { tries, outcome, at } = await trying({ random: () => 1 }).run([unsent, unsent], callOf({ timeoutMs: 250 }))
    expect({ tries, took: (at[1] as number) - (at[0] as number) }).toEqual({ tries: 2, took: 100 })
    expect(outcome).toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  })

  test('F12: a retry time is respected, or left to the caller if it is too long', async () => {
    const unhealthy = (retryAfterMs: number) =>
      error('SERVER_UNHEALTHY', { server: 'files', unsent: true, retryAfterMs })
    const { at } = await trying().run([unhealthy(80)])
    expect((at[1] as number) - (at[0] as number)).toBe(80)
    expect((await trying().run([unhealthy(101)])).tries).toBe(1)
  })

  test('F12: in an outage retries are a fifth of the calls, and each server has its own budget', async () => {
    const { run, interceptor, clock } = trying()
    let tries = 0
    const fails = async () => {
      tries++
      throw unsent
    }
    const calls = Array.from({ length: 100 }, () => interceptor(callOf(), fails).catch(() => {}))
    await clock.pass(1_000)
    await Promise.all(calls)
    expect(tries).toBe(120)
    const other = callOf({ entry: entryOf({ server: 'other' }) })
    expect((await run([error('SERVER_UNAVAILABLE', { server: 'other', unsent: true })], other)).tries).toBe(2)
  })
})

describe('retry.onTimeout', () => {
  /** Runs a call within its timeout of 30 s; its attempts do what the handlers do, one after the other. */
  async function timing(handlers: readonly Handler[], call: Call = harmless, options: Partial<RetryOptions> = {}) {
    const { interceptor, clock } = trying({ onTimeout: true, ...options })
    const at: number[] = []
    const start = clock.now()
    const answer = compose([timeout(clock), interceptor, attemptOf()], (attempt) => {
      at.push(clock.now() - start)
      attempt.starting?.()
      return (handlers[at.length - 1] as Handler)(attempt)
    })(call).then(
      () => clock.now() - start,
      (thrown: ToolwayError) => `${thrown.code} after ${clock.now() - start}`,
    )
    await clock.pass(100_000)
    expect(clock.pending).toBe(0)
    return { at, outcome: await answer }
  }
  const hanging: Handler = () => new Promise(() => {})
  const answering: Handler = async () => textResult('done')

  test('F12: a safe call that times out is repeated once, each attempt with half of its time', async () => {
    expect(await timing([hanging, answering])).toEqual({ at: [0, 15_000], outcome: 15_000 })
    expect(await timing([hanging, hanging])).toEqual({ at: [0, 15_000], outcome: 'TIMEOUT after 30000' })
  })

  test('F12: each retry is logged as a warning with the error that caused it', async () => {
    const log = createKeptLog()
    await timing([hanging, answering], harmless, { log })
    await trying({ log }).run([unsent])
    expect(log.lines).toMatchObject([
      { level: 'warn', facts: { server: 'files', error: 'TIMEOUT' } },
      { level: 'warn', facts: { server: 'files', error: 'SERVER_UNAVAILABLE' } },
    ])
  })

  test('F12: the caller’s own limit is the whole time', async () => {
    const { at, outcome } = await timing([hanging, hanging], { ...harmless, timeoutMs: 4_000 })
    expect({ at, outcome }).toEqual({ at: [0, 2_000], outcome: 'TIMEOUT after 4000' })
  })

  test('F12: a write that times out is never repeated and keeps the whole time', async () => {
    expect(await timing([hanging], callOf())).toEqual({ at: [0], outcome: 'TIMEOUT after 30000' })
  })

  test('F12: without onTimeout, with no attempts, or without budget, the first attempt keeps the whole time', async () => {
    for (const options of [{ onTimeout: false }, { attempts: 0 }, { budget: 0 }])
      expect(await timing([hanging], harmless, options)).toEqual({ at: [0], outcome: 'TIMEOUT after 30000' })
  })

  test('F12: a server that reports progress or asks the caller something keeps the whole time', async () => {
    const reporting: Handler = (call) => {
      call.progressed?.()
      return hanging(call)
    }
    expect(await timing([reporting])).toEqual({ at: [0], outcome: 'TIMEOUT after 30000' })
    const asking: Handler = async (call) => {
      await call.peer.ask('elicitation/create', Json.of({}), call.signal).catch(() => {})
      return hanging(call)
    }
    expect(await timing([asking])).toEqual({ at: [0], outcome: 'TIMEOUT after 30000' })
  })

  test('F12: the time in a queue does not count as the time of the first attempt', async () => {
    const { interceptor, clock } = trying({ onTimeout: true })
    const signals: AbortSignal[] = []
    const answer = compose([timeout(clock), interceptor, attemptOf()], async (call) => {
      signals.push(call.signal)
      return hanging(call)
    })(harmless).catch((thrown: ToolwayError) => thrown.code)
    await clock.pass(40_000)
    expect({ tries: signals.length, code: await answer }).toEqual({ tries: 1, code: 'TIMEOUT' })
  })

  test('J3: the second attempt says how much time the server had in the first', async () => {
    const had: unknown[] = []
    const note: Handler = (call) => {
      had.push(call.earlierMs)
      return hanging(call)
    }
    await timing([note, note])
    expect(had).toEqual([undefined, 15_000])
  })

  test('F10: cancellation by the caller reaches an attempt that reported progress', async () => {
    const { interceptor, clock } = trying({ onTimeout: true })
    const caller = new AbortController()
    const seen: AbortSignal[] = []
    const answer = compose([timeout(clock), interceptor, attemptOf()], (call) => {
      seen.push(call.signal)
      call.starting?.()
      call.progressed?.()
      return hanging(call)
    })({ ...harmless, signal: caller.signal })
    caller.abort(new Error('changed my mind'))
    await expect(answer).rejects.toThrow('changed my mind')
    expect(seen.map(({ aborted }) => aborted)).toEqual([true])
  })
})

test('F12: in any order of failures, a call that may have run is never sent twice unless that is harmless', async () => {
  const failure = fc.constantFrom(unsent, unknown, error('SERVER_UNAVAILABLE'), error('TIMEOUT'), error('INTERNAL'))
  await fc.assert(
    fc.asyncProperty(fc.array(failure, { maxLength: 5 }), fc.boolean(), async (failures, idempotent) => {
      const { tries } = await trying({ attempts: 3 }).run(failures, idempotent ? harmless : callOf())
      const repeated = failures.slice(0, tries - 1)
      expect(tries).toBeLessThanOrEqual(4)
      if (!idempotent) expect(repeated.every((one) => one === unsent)).toBe(true)
      expect(repeated.some((one) => ['TIMEOUT', 'INTERNAL'].includes(one.code))).toBe(false)
    }),
  )
})
