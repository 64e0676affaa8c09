import { describe, expect, test } from 'vitest'
import { createKeptLog } from '../../tests/fixtures/log.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import type { Call } from '../core/call.ts'
import { type ErrorCode, errorKinds, ServerError, ToolwayError } from '../core/errors.ts'
import { resultOf } from '../core/result.ts'
import { Json } from '../json/json.ts'
import { breakersOf, down, failing, fine, usual } from './breaker.fixture.ts'
import { type BreakerConfig, breakerConfigs } from './breaker.ts'
import { attemptOf } from './pipeline.fixture.ts'
import { timeout } from './timeout.ts'

test('J3: after the configured number of failures in a row nothing is sent, and the error has the reason and a retry time', async () => {
  const breakers = breakersOf()
  await failing(breakers, 2)
  expect(breakers.state()).toMatchObject({ state: 'closed', failures: 2 })
  await failing(breakers, 1)
  expect(breakers.state()).toMatchObject({ state: 'open', failures: 3, retryAfterMs: 1_000 })
  breakers.clock.advance(400)
  const held = breakers.begin()
  expect(held.sent).toBe(false)
  await expect(held.answer).rejects.toMatchObject({
    code: 'CIRCUIT_OPEN',
    message: expect.stringMatching(/files.* 3 calls in a row .*Nothing was sent.* in 1 second/),
    data: { code: 'CIRCUIT_OPEN', server: 'files', retryAfterMs: 600 },
  })
})

test('J3: a step of the wall clock neither opens the way to a server that fails nor keeps it closed', async () => {
  const breakers = breakersOf()
  await failing(breakers, 3)
  for (const stepMs of [3_600_000, -7_200_000]) {
    breakers.clock.setWall(breakers.clock.now() + stepMs)
    expect(breakers.state()).toMatchObject({ state: 'open', retryAfterMs: 1_000 })
  }
  breakers.clock.advance(1_000)
  expect(breakers.state().state).toBe('half-open')
})

test('J3: a success resets the count', async () => {
  const breakers = breakersOf()
  await failing(breakers, 2)
  await breakers.run(fine)
  await failing(breakers, 2)
  expect(breakers.state()).toMatchObject({ state: 'closed', failures: 2 })
})

test('J3: it opens when too large a share of the calls in the window failed, given enough of them', async () => {
  const breakers = breakersOf({ failures: 100 })
  for (const how of [fine, down, fine, down, fine, down, fine, down, fine]) await breakers.run(how)
  expect(breakers.state().state).toBe('closed')
  await breakers.run(down)
  expect(breakers.state().state).toBe('open')
  await expect(breakers.begin().answer).rejects.toThrow('because 5 of its last 10 calls failed')
})

test('J3: failures older than the window do not count', async () => {
  const breakers = breakersOf({ failures: 100, minimumCalls: 4 })
  await failing(breakers, 3)
  breakers.clock.advance(11_000)
  await breakers.run(down)
  expect(breakers.state().state).toBe('closed')
})

describe('failures that count', () => {
  const serverError = new ServerError(Json.of({ code: -32603, message: 'Internal error' }))
  const faults: ErrorCode[] = ['SERVER_UNAVAILABLE', 'TIMEOUT', 'OUTCOME_UNKNOWN']
  const codes = Object.keys(errorKinds) as ErrorCode[]

  test.each(codes)('J3: %s counts if and only if it is a failure of the server', async (code) => {
    const breakers = breakersOf()
    await failing(breakers, 1)
    await breakers.run(new ToolwayError(code, 'No.'))
    expect(breakers.state().failures).toBe(faults.includes(code) ? 2 : 1)
  })

  test.each([
    ['a result', fine],
    ['a tool that reports failure', resultOf({ content: [], isError: true })],
    ["the server's own error", serverError],
  ])('J3: %s counts as a success', async (_, how) => {
    const breakers = breakersOf()
    await failing(breakers, 2)
    await breakers.run(how)
    expect(breakers.state().failures).toBe(0)
  })

  test('J3: a failure of one request, which its caller can cause, says nothing about the server', async () => {
    const breakers = breakersOf()
    const large = new ToolwayError('SERVER_UNAVAILABLE', 'Too large.', { requestOnly: true })
    for (let count = 0; count < 20; count++) await breakers.run(large)
    expect(breakers.state()).toMatchObject({ state: 'closed', failures: 0 })
    await failing(breakers, 3)
    breakers.clock.advance(1_000)
    // As a probe, it neither closes the breaker nor opens it again.
    await breakers.run(large)
    expect(breakers.state().state).toBe('half-open')
    await breakers.run(fine)
    expect(breakers.state().state).toBe('closed')
  })

  test('J3: a fault of ours says nothing about the server', async () => {
    const breakers = breakersOf()
    await failing(breakers, 2)
    await breakers.run(new TypeError('ours'))
    expect(breakers.state().failures).toBe(2)
  })

  const late = new ToolwayError('TIMEOUT', 'Too late.')
  const cancelled = new ToolwayError('CANCELLED', 'No more.')
  test.each([
    { title: 'all the time that the entry has', asked: undefined, tookMs: 30_000, reason: late, counts: true },
    { title: 'more time than the entry has', asked: 60_000, tookMs: 60_000, reason: late, counts: true },
    { title: 'less, because the caller asked for less', asked: 5_000, tookMs: 5_000, reason: late, counts: false },
    { title: 'less of a person, but long enough', asked: 5_000, tookMs: 65_000, reason: late, counts: false },
    { title: 'what an earlier attempt left', asked: undefined, tookMs: 9_000, reason: late, counts: false },
    { title: 'the time in two attempts', earlierMs: 15_000, tookMs: 15_000, reason: late, counts: true },
    { title: 'any time, and was cancelled', asked: undefined, tookMs: 30_000, reason: cancelled, counts: false },
  ])('J3, F10: a server that had $title: counts is $counts', async ({ asked, earlierMs, tookMs, reason, counts }) => {
    const breakers = breakersOf()
    const controller = new AbortController()
    const call = callOf({
      signal: controller.signal,
      ...(asked !== undefined && { timeoutMs: asked }),
      ...(earlierMs && { earlierMs }),
    })
    const running = breakers.begin(call)
    breakers.clock.advance(tookMs)
    controller.abort(reason)
    await running.end(reason)
    expect(breakers.state().failures).toBe(counts ? 1 : 0)
  })

  test('J3, F10: calls whose time ran out while this process was paused do not count, all others do', async () => {
    const breakers = breakersOf()
    const listening = ({ signal }: Call) =>
      new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    const slow = () => timeout(breakers.clock)(callOf(), (call) => attemptOf(breakers.step)(call, listening))
    const paused = [slow(), slow(), slow()].map((answer) => answer.catch((error) => error))
    breakers.clock.pause(3_600_000)
    for (const error of await Promise.all(paused))
      expect(error).toMatchObject({ code: 'TIMEOUT', details: { late: true } })
    expect(breakers.state()).toMatchObject({ state: 'closed', failures: 0 })
    const hung = slow().catch((error) => error)
    breakers.clock.advance(30_000)
    expect((await hung).details.late).toBeUndefined()
    expect(breakers.state().failures).toBe(1)
  })

  describe('a timeout', () => {
    const tooLate = new ToolwayError('TIMEOUT', 'Too late.')
    type Breakers = ReturnType<typeof breakersOf>

    /** A call that times out after 30 s. Meanwhile something else happens. */
    const timedOut = async (breakers: Breakers, meanwhile: (breakers: Breakers) => unknown = () => {}) => {
      const controller = new AbortController()
      const running = breakers.begin(callOf({ signal: controller.signal }))
      breakers.clock.advance(15_000)
      await meanwhile(breakers)
      breakers.clock.advance(15_000)
      controller.abort(tooLate)
      await running.end(tooLate)
    }

    test.each([
      { title: 'another call returned a result', meanwhile: ({ run }: Breakers) => run(fine) },
      { title: 'another call returned an error', meanwhile: ({ run }: Breakers) => run(serverError) },
    ])('J3, V6: does not count against the server if $title since the call began', async ({ meanwhile }) => {
      const breakers = breakersOf()
      for (let count = 0; count < 10; count++) await timedOut(breakers, meanwhile)
      expect(breakers.state()).toMatchObject({ state: 'closed', failures: 0 })
    })

    test('J3: counts if the server answered only before the call began, or another server answered', async () => {
      const breakers = breakersOf()
      await breakers.run(fine)
      const other = callOf({ entry: entryOf({ server: 'other' }) })
      for (let count = 0; count < 3; count++) await timedOut(breakers, ({ run }) => run(fine, other))
      expect(breakers.state()).toMatchObject({ state: 'open', failures: 3 })
    })

    test('J3: counts if other calls failed, were cancelled or timed out since the call began', async () => {
      const breakers = breakersOf({ failures: 100 })
      await timedOut(breakers, ({ run }) => run(down))
      await timedOut(breakers, ({ run }) => run(cancelled))
      await timedOut(breakers, (same) => timedOut(same))
      expect(breakers.state().failures).toBe(5)
    })

    test('J3: opens a half-open breaker again, whatever else the server answered', async () => {
      const breakers = breakersOf()
      const earlier = breakers.begin()
      await failing(breakers, 3)
      breakers.clock.advance(1_000)
      await timedOut(breakers, () => earlier.end(fine))
      expect(breakers.state().state).toBe('open')
      breakers.clock.advance(2_000)
      await breakers.run(fine)
      expect(breakers.state().state).toBe('closed')
    })
  })

  test('J3: calls inside this process never open a breaker', async () => {
    const breakers = breakersOf()
    const call = callOf({ entry: entryOf({ server: 'native' }) })
    for (let count = 0; count < 50; count++) expect(await breakers.run(down, call)).toBe(down)
    expect(breakers.stateOf('native').state).toBe('closed')
  })
})

describe('V6: one caller whose calls fail', () => {
  const by = (principal: string) => callOf({ caller: { ...callOf().caller, principal } })
  type Breakers = ReturnType<typeof breakersOf>
  const failingBy = async ({ run }: Breakers, principal: string, times: number) => {
    for (let count = 0; count < times; count++) await run(down, by(principal))
  }

  test('V6, J3: does not open the breaker while the server answers another caller', async () => {
    const breakers = breakersOf()
    for (let round = 0; round < 5; round++) {
      expect(await breakers.run(fine, by('other'))).toBe(fine)
      await failingBy(breakers, 'one', 20)
      breakers.clock.advance(5_000)
    }
    expect(breakers.state()).toMatchObject({ state: 'closed', failures: 0 })
  })

  test('V6, J3: is cut off if nobody else was answered lately, but another caller is let through and closes it', async () => {
    const breakers = breakersOf()
    await breakers.run(fine, by('other'))
    breakers.clock.advance(10_001)
    await failingBy(breakers, 'one', 3)
    expect(breakers.state().state).toBe('open')
    expect(await breakers.run(fine, by('one'))).toMatchObject({ code: 'CIRCUIT_OPEN' })
    expect(await breakers.run(fine, by('other'))).toBe(fine)
    expect(breakers.state()).toMatchObject({ state: 'closed', failures: 0 })
    // The timer of the open breaker is gone.
    breakers.clock.advance(1_000)
    expect(breakers.state().state).toBe('closed')
  })

  test('V6, J3: cannot keep it open for others by failing as a probe', async () => {
    const breakers = breakersOf()
    for (const principal of ['one', 'other', 'one']) await failingBy(breakers, principal, 1)
    expect(await breakers.run(fine, by('other'))).toMatchObject({ code: 'CIRCUIT_OPEN' })
    breakers.clock.advance(1_000)
    await failingBy(breakers, 'one', 1)
    expect(breakers.state().state).toBe('open')
    expect(await breakers.run(fine, by('other'))).toBe(fine)
  })

  test('J3: the breaker stays open for everybody once calls of two callers have failed', async () => {
    const breakers = breakersOf()
    await failingBy(breakers, 'one', 3)
    expect(await breakers.run(down, by('other'))).toBe(down)
    for (const principal of ['one', 'other', 'third']) {
      expect(await breakers.run(fine, by(principal))).toMatchObject({ code: 'CIRCUIT_OPEN' })
    }
  })

  test('J3: the failure of a call that takes longer than the breaker stays open shows that another one fails, too', async () => {
    const breakers = breakersOf()
    await failingBy(breakers, 'one', 3)
    const slow = breakers.begin(by('other'))
    expect(slow.sent).toBe(true)
    breakers.clock.advance(1_000)
    const probe = breakers.begin(by('one'))
    await slow.end(down)
    expect(await breakers.run(fine, by('third'))).toMatchObject({ code: 'CIRCUIT_OPEN' })
    await probe.end(fine)
    expect(breakers.state().state).toBe('closed')
  })

  test('J3: opens the breaker together with another one, whose last call failed after all the others', async () => {
    const breakers = breakersOf()
    for (const principal of ['one', 'other']) await breakers.run(fine, by(principal))
    for (const principal of ['one', 'other', 'one', 'other']) await failingBy(breakers, principal, 1)
    expect(breakers.state().state).toBe('open')
  })
})

describe('half-open', () => {
  const opened = async (config = {}, changes = {}) => {
    const breakers = breakersOf(config, changes)
    await failing(breakers, 3)
    breakers.clock.advance(1_000)
    expect(breakers.state().state).toBe('half-open')
    return breakers
  }

  test('J3: only a limited number of probes run at a time; other calls are refused', async () => {
    const breakers = await opened({ halfOpenCalls: 2 })
    expect([breakers.begin().sent, breakers.begin().sent]).toEqual([true, true])
    const third = breakers.begin()
    expect(third.sent).toBe(false)
    await expect(third.answer).rejects.toMatchObject({ code: 'CIRCUIT_OPEN', details: { retryAfterMs: 1_000 } })
    await expect(third.answer).rejects.toThrow('another call')
  })

  test('J3: a successful probe closes it and resets the count', async () => {
    const breakers = await opened()
    await breakers.run(fine)
    expect(breakers.state()).toMatchObject({ state: 'closed', failures: 0 })
    await failing(breakers, 2)
    expect(breakers.state().state).toBe('closed')
  })

  test('J3: each failed probe doubles the pause, up to a maximum', async () => {
    const breakers = await opened({ openFor: 1_000 })
    const pauses: (number | undefined)[] = []
    for (let count = 0; count < 9; count++) {
      await breakers.run(down)
      const { retryAfterMs = 0 } = breakers.state()
      pauses.push(retryAfterMs)
      breakers.clock.advance(retryAfterMs)
    }
    expect(pauses).toEqual([2, 4, 8, 16, 32, 64, 120, 120, 120].map((seconds) => seconds * 1_000))
    await breakers.run(fine)
    await failing(breakers, 3)
    expect(breakers.state().retryAfterMs).toBe(1_000)
  })

  test('J3: an openFor longer than the upper bound is kept after a failed probe', async () => {
    const breakers = breakersOf({ openFor: 600_000 })
    await failing(breakers, 3)
    breakers.clock.advance(600_000)
    await breakers.run(down)
    expect(breakers.state().retryAfterMs).toBe(600_000)
  })

  test('J3: pauses differ a little from gateway to gateway', async () => {
    const breakers = await opened({}, { random: () => 0.5 })
    await breakers.run(down)
    expect(breakers.state().retryAfterMs).toBe(1_800)
  })

  test.each(['CANCELLED', 'OVERLOADED', 'DENIED_BY_POLICY', 'SERVER_UNHEALTHY'] as const)(
    'J3: a probe that ends with %s frees its slot',
    async (code) => {
      const breakers = await opened()
      await breakers.run(new ToolwayError(code, 'No.'))
      expect(breakers.state().state).toBe('half-open')
      expect(breakers.begin().sent).toBe(true)
    },
  )
})

test('J3: calls that began before it opened do not count afterwards', async () => {
  const breakers = breakersOf()
  const [slow, slower, slowest] = [breakers.begin(), breakers.begin(), breakers.begin()]
  await failing(breakers, 3)
  await slow.end(fine)
  expect(breakers.state().state).toBe('open')
  breakers.clock.advance(1_000)
  const probe = breakers.begin()
  await slower.end(down)
  expect(breakers.state().state).toBe('half-open')
  expect(breakers.begin().sent).toBe(false)
  await probe.end(fine)
  await slowest.end(down)
  expect(breakers.state()).toMatchObject({ state: 'closed', failures: 0 })
})

test('J3: listeners get every change, and servers do not share a breaker', async () => {
  const breakers = breakersOf()
  const heard: string[] = []
  using _ = breakers.onChange((server, state) => heard.push(`${server} ${state}`))
  await failing(breakers, 3)
  expect(await breakers.run(fine, callOf({ entry: entryOf({ server: 'other' }) }))).toBe(fine)
  breakers.clock.advance(1_000)
  await breakers.run(fine)
  expect(heard).toEqual(['files open', 'files half-open', 'files closed'])
})

test('J3: each change is logged with its meaning', async () => {
  const log = createKeptLog()
  const breakers = breakersOf({}, { log })
  await failing(breakers, 3)
  breakers.clock.advance(1_000)
  await breakers.run(fine)
  expect(log.lines.map(({ level, message }) => `${level}: ${message}`)).toEqual([
    expect.stringMatching(/^warn: .*opened/),
    expect.stringMatching(/^info: .*half-open/),
    expect.stringMatching(/^info: .*closed/),
  ])
})

test('G8: changed settings apply from then on, and the last ones stay if there are none any more', async () => {
  let now: BreakerConfig | undefined = usual
  const breakers = breakersOf({}, { configOf: () => now })
  await failing(breakers, 2)
  now = { ...usual, failures: 5 }
  await failing(breakers, 2)
  expect(breakers.state()).toMatchObject({ state: 'closed', failures: 4 })
  now = undefined
  await failing(breakers, 1)
  expect(breakers.state()).toMatchObject({ state: 'open' })
})

test('G8: a forgotten server starts with a closed breaker, and leaves no timer or event behind', async () => {
  const breakers = breakersOf()
  const old = breakers.begin()
  await failing(breakers, 3)
  breakers.forget('files')
  expect(breakers.clock.pending).toBe(0)
  await failing(breakers, 2)
  await old.end(down)
  expect(breakers.state()).toMatchObject({ state: 'closed', failures: 2 })
  await failing(breakers, 1)
  breakers[Symbol.dispose]()
  expect(breakers.clock.pending).toBe(0)
})

test('J3: a server has its own numbers, and the common ones where it names none', () => {
  const configOf = breakerConfigs({ breaker: usual, mcpServers: { a: { breaker: { failures: 9 } }, b: {} } })
  expect(configOf('a')).toEqual({ ...usual, failures: 9 })
  expect(configOf('b')).toEqual(usual)
  expect(configOf('native')).toBeUndefined()
})
