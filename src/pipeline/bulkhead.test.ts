import { describe, expect, test } from 'vitest'
import { callOf, entryOf } from '../core/call.fixture.ts'
import { type Asked, bulkheadOf, settled } from './bulkhead.fixture.ts'

const fill = (bulkhead: ReturnType<typeof bulkheadOf>, count: number, asked: Asked = {}) =>
  Array.from({ length: count }, () => bulkhead.begin(asked))

const idle = { inFlight: 0, queued: 0 }

describe('slots', () => {
  test('B7: a full server lets its calls wait, and no other one', async () => {
    const bulkhead = bulkheadOf()
    const calls = fill(bulkhead, 4)
    expect(calls.map(({ sent }) => sent)).toEqual([true, true, false, false])
    expect(bulkhead.begin({ server: 'other' }).sent).toBe(true)
    expect(bulkhead.stats()).toMatchObject({ inFlight: 3, queued: 2, servers: { files: { inFlight: 2, queued: 2 } } })
    await calls[1]?.end()
    expect(calls.map(({ sent }) => sent)).toEqual([true, true, true, false])
    await calls[0]?.end(new Error('failed'))
    expect(calls[3]?.sent).toBe(true)
  })

  test('B7: the limit of an agent applies to its calls to all servers, and to no other agent', async () => {
    const bulkhead = bulkheadOf({ agentLimit: (agent) => (agent === 'a' ? 2 : undefined) })
    const calls = ['x', 'y', 'z'].map((server) => bulkhead.begin({ agent: 'a', server }))
    expect(calls.map(({ sent }) => sent)).toEqual([true, true, false])
    expect(bulkhead.begin({ agent: 'b', server: 'z' }).sent).toBe(true)
    await calls[0]?.end()
    expect(calls[2]?.sent).toBe(true)
    expect(bulkhead.stats().agents).toEqual({ a: { inFlight: 2, queued: 0, limit: 2 } })
  })

  test('W12: per client, a client that uses all of the calls of its agent leaves the others theirs', async () => {
    const bulkhead = bulkheadOf({ agentLimit: () => 1, perClient: () => true })
    const [one, waiting, other] = ['ann', 'ann', 'bob'].map((principal, server) =>
      bulkhead.begin({ agent: 'a', principal, server: `${server}` }),
    )
    expect([one?.sent, waiting?.sent, other?.sent]).toEqual([true, false, true])
    expect(bulkhead.stats().agents).toEqual({ a: { inFlight: 2, queued: 1, limit: 1 } })
    bulkhead.limitsChanged()
    await one?.end()
    expect(waiting?.sent).toBe(true)
    await Promise.all([waiting, other].map((call) => call?.end()))
    expect(bulkhead.stats().agents).toEqual({})
  })

  test('B7: the total is limited, and native tools count towards it', async () => {
    const bulkhead = bulkheadOf({ total: 2 })
    const [native] = fill(bulkhead, 1, { server: 'native' })
    bulkhead.begin({ server: 'x' })
    const third = bulkhead.begin({ server: 'y' })
    expect(third.sent).toBe(false)
    await native?.end()
    expect(third.sent).toBe(true)
    expect(bulkhead.stats().servers.native).toBeUndefined()
  })

  test('B7: a server that replaced another one of its name has free slots', async () => {
    const bulkhead = bulkheadOf()
    const [stuck, , waiting] = fill(bulkhead, 3)
    bulkhead.forget('files')
    expect(bulkhead.begin().sent).toBe(true)
    await stuck?.end()
    expect(waiting?.sent).toBe(true)
    expect(bulkhead.stats().servers.files).toMatchObject({ inFlight: 1, queued: 0 })
  })

  test('B7: a call that only carries others takes no slot', async () => {
    const bulkhead = bulkheadOf({ total: 1, queue: 0 })
    expect(fill(bulkhead, 5, { server: 'toolway', carries: true }).every(({ sent }) => sent)).toBe(true)
    expect(bulkhead.begin().sent).toBe(true)
    expect(bulkhead.stats()).toMatchObject({ inFlight: 1, queued: 0 })
  })

  test.each(['native', 'files'])(
    'B7: a call in %s that ignores its signal frees its slot when aborted',
    async (server) => {
      const { interceptor, stats } = bulkheadOf()
      const controller = new AbortController()
      const call = callOf({ entry: entryOf({ server }), signal: controller.signal })
      const answer = interceptor(call, () => new Promise(() => {}))
      expect(stats().inFlight).toBe(1)
      controller.abort(new Error('too late'))
      await expect(answer).rejects.toThrow('too late')
      expect(stats()).toMatchObject(idle)
    },
  )

  test('G8: changed limits apply at once, also to waiting calls', async () => {
    const bulkhead = bulkheadOf()
    const calls = fill(bulkhead, 6)
    bulkhead.options.serverLimit = () => 5
    bulkhead.limitsChanged()
    await settled()
    expect(calls.map(({ sent }) => sent)).toEqual([true, true, true, true, true, false])
    bulkhead.options.serverLimit = () => undefined
    bulkhead.limitsChanged()
    await settled()
    expect(calls[5]?.sent).toBe(true)
    expect(bulkhead.stats().servers).toEqual({})
    for (const call of calls) await call.end()
    expect(bulkhead.stats()).toMatchObject(idle)
  })
})

describe('turns', () => {
  test('B7: agents take turns at a server, each of them in the order in which it came', async () => {
    const bulkhead = bulkheadOf({ serverLimit: () => 1 })
    let current = bulkhead.begin({ agent: 'first' })
    const waiting = [...fill(bulkhead, 4, { agent: 'greedy' }), ...fill(bulkhead, 2, { agent: 'modest' })]
    for (let count = 0; count < 6; count++) {
      const before = waiting.map(({ sent }) => sent)
      await current.end()
      current = waiting.find(({ sent }, index) => sent && !before[index]) as typeof current
    }
    const turns = ['greedy', 'modest', 'greedy', 'modest', 'greedy', 'greedy']
    expect(bulkhead.order.slice(1)).toEqual(turns.map((agent) => `${agent} files`))
  })

  test('B7: servers take turns where the whole is full', async () => {
    const bulkhead = bulkheadOf({ total: 1 })
    let current = bulkhead.begin()
    const waiting = [...fill(bulkhead, 3, { server: 'busy' }), ...fill(bulkhead, 1, { server: 'quiet' })]
    await current.end()
    current = waiting[0] as typeof current
    await current.end()
    expect(bulkhead.order).toEqual(['default files', 'default busy', 'default quiet'])
  })

  test('B7: an agent whose call cannot be sent yet keeps its turn', async () => {
    const bulkhead = bulkheadOf({ total: 3, serverLimit: () => 1 })
    const [x, y] = [bulkhead.begin({ server: 'x' }), bulkhead.begin({ server: 'y' })]
    const first = bulkhead.begin({ server: 'x', agent: 'a' })
    const second = bulkhead.begin({ server: 'x', agent: 'b' })
    await y.end()
    expect([first.sent, second.sent]).toEqual([false, false])
    await x.end()
    expect([first.sent, second.sent]).toEqual([true, false])
  })
})

describe('refusals and evictions', () => {
  test('B7: a call that waits too long is refused with the limit and a retry time', async () => {
    const bulkhead = bulkheadOf()
    fill(bulkhead, 2)
    const late = bulkhead.begin()
    bulkhead.clock.advance(4_999)
    expect(bulkhead.stats().queued).toBe(1)
    bulkhead.clock.advance(1)
    await expect(late.answer).rejects.toMatchObject({
      code: 'OVERLOADED',
      message: expect.stringMatching(
        /files .*limit of 2 calls in flight.* 5 s \(a fixed limit\).*Nothing was sent.* in 1 second/,
      ),
      data: { code: 'OVERLOADED', server: 'files', retryAfterMs: 1_000 },
    })
    expect(bulkhead.clock.pending).toBe(0)
  })

  test('V2: to wait for a server that is starting is not load, until it has started', async () => {
    let starting = true
    const bulkhead = bulkheadOf({ isStarting: () => starting })
    const [first] = fill(bulkhead, 2)
    const [patient, late] = [bulkhead.begin(), bulkhead.begin()]
    bulkhead.clock.advance(20_000)
    expect(bulkhead.stats().queued).toBe(2)
    await first?.end()
    expect(patient.sent).toBe(true)
    starting = false
    bulkhead.clock.advance(500)
    await expect(late.answer).rejects.toMatchObject({ code: 'OVERLOADED' })
    expect(bulkhead.clock.pending).toBe(0)
  })

  test('B7: a call waits at most half of its timeout', async () => {
    const bulkhead = bulkheadOf()
    fill(bulkhead, 2)
    const hasty = bulkhead.begin({ timeoutMs: 300 })
    bulkhead.clock.advance(150)
    await expect(hasty.answer).rejects.toThrow("150 ms (half the call's timeout)")
  })

  test('B7: beyond what may wait, a call is refused at once', async () => {
    const bulkhead = bulkheadOf({ queue: 1, serverLimit: () => 1 })
    fill(bulkhead, 2)
    await expect(bulkhead.begin().answer).rejects.toThrow(/files .*limit of one call in flight.*queue is full/)
    expect(bulkhead.begin({ server: 'other' }).sent).toBe(true)
  })

  test('B7: if the queue is full, the newest calls of the agent with the most are evicted', async () => {
    const bulkhead = bulkheadOf({ queue: 4 })
    fill(bulkhead, 2)
    const greedy = fill(bulkhead, 4, { agent: 'greedy' })
    const modest = fill(bulkhead, 3, { agent: 'modest' })
    await expect(greedy[3]?.answer).rejects.toThrow('fewer calls')
    await expect(greedy[2]?.answer).rejects.toMatchObject({ code: 'OVERLOADED' })
    await expect(modest[2]?.answer).rejects.toThrow('queue is full')
    expect(bulkhead.stats().queued).toBe(4)
  })

  test('V6: a caller has three quarters of a server and of the whole, so that others always find a slot', async () => {
    const bulkhead = bulkheadOf({ serverLimit: () => 4, total: 8 })
    const flood = fill(bulkhead, 6, { principal: 'mallory' })
    expect(flood.filter(({ sent }) => sent)).toHaveLength(3)
    expect(bulkhead.begin({ principal: 'anna' }).sent).toBe(true)
    fill(bulkhead, 5, { principal: 'mallory', server: 'other' })
    expect(bulkhead.stats()).toMatchObject({ inFlight: 7, budgets: { calls: { limit: 8, perCaller: 6, largest: 6 } } })
    expect(bulkhead.begin({ principal: 'anna', server: 'third' }).sent).toBe(true)
    for (const call of flood) await call.end()
    expect(bulkhead.stats().budgets.calls.largest).toBeLessThanOrEqual(6)
  })

  test('V6: a caller has half of the queue, and the one with the most waiting calls loses one to others', async () => {
    const bulkhead = bulkheadOf({ serverLimit: () => 1, queue: 6 })
    bulkhead.begin({ principal: 'anna' })
    // Many agents and servers do not make a share larger.
    const flood = ['a', 'b', 'c', 'd'].map((agent) => bulkhead.begin({ principal: 'mallory', agent }))
    await bulkhead.clock.pass(500)
    await expect(flood[3]?.answer).rejects.toThrow('your share of the queue is full')
    fill(bulkhead, 3, { principal: 'bert' })
    expect(bulkhead.stats().queued).toBe(6)
    const fresh = bulkhead.begin({ principal: 'cleo' })
    await expect(flood[2]?.answer).rejects.toThrow('fewer calls')
    expect(bulkhead.stats().budgets.queued).toMatchObject({ used: 6, limit: 6, perCaller: 3, largest: 3, refused: 2 })
    await fresh.abort()
    expect(bulkhead.stats().queued).toBe(5)
  })

  test('V6: a call that is refused late does not make the share of its caller larger', async () => {
    const bulkhead = bulkheadOf({ serverLimit: () => 4, queue: 2 })
    const mallory = { principal: 'mallory' }
    const early = fill(bulkhead, 4, mallory)
    const late = bulkhead.begin(mallory)
    for (const call of early) await call.end()
    expect(fill(bulkhead, 3, mallory).every(({ sent }) => sent)).toBe(true)
    await bulkhead.clock.pass(500)
    await expect(late.answer).rejects.toThrow('your share of the queue is full')
    expect(bulkhead.begin(mallory).sent).toBe(false)
    expect(bulkhead.begin({ principal: 'anna' }).sent).toBe(true)
  })

  test('V6: the operator has no share: a gateway with a single user keeps no slot for others', () => {
    const bulkhead = bulkheadOf({ serverLimit: () => 4 })
    expect(fill(bulkhead, 4).every(({ sent }) => sent)).toBe(true)
  })

  test('B7: the hint follows how long calls take and how many wait', async () => {
    const bulkhead = bulkheadOf({ queue: 3, serverLimit: () => 2 })
    for (let count = 0; count < 30; count++) {
      const call = bulkhead.begin()
      bulkhead.clock.advance(3_000)
      await call.end()
    }
    fill(bulkhead, 5)
    const { details } = (await bulkhead.begin().answer.catch((error) => error)) as { details: object }
    // Four turns of three seconds, two at a time.
    expect(details).toMatchObject({ retryAfterMs: 6_000 })
  })

  test('B7: the error names the agent at its limit, or Toolway if the total is reached', async () => {
    const agents = bulkheadOf({ queue: 0, agentLimit: () => 1 })
    agents.begin({ agent: 'a' })
    await expect(agents.begin({ agent: 'a' }).answer).rejects.toThrow(
      'The agent a has reached its limit of one call in flight',
    )
    const all = bulkheadOf({ queue: 0, total: 1 })
    all.begin()
    await expect(all.begin().answer).rejects.toThrow('Toolway has reached its limit of one call in flight')
  })

  test('B7: a cancelled call leaves the queue at once and takes no turn', async () => {
    const bulkhead = bulkheadOf({ serverLimit: () => 1 })
    const running = bulkhead.begin()
    const [gone, next] = fill(bulkhead, 2)
    await gone?.abort()
    await expect(gone?.answer).rejects.toThrow('called off')
    expect(bulkhead.stats().queued).toBe(1)
    await running.end()
    expect([gone?.sent, next?.sent]).toEqual([false, true])
    await next?.end()
    expect(bulkhead.clock.pending).toBe(0)
    expect(bulkhead.stats()).toMatchObject(idle)
  })

  test('B7: a call that is cancelled just as its turn comes passes its slot on', async () => {
    const bulkhead = bulkheadOf({ serverLimit: () => 1 })
    const running = bulkhead.begin()
    const [gone, next] = fill(bulkhead, 2)
    const ended = running.end()
    // Its place is given back within the turns of promises that follow, before the loop goes on.
    while (bulkhead.stats().queued === 2) await Promise.resolve()
    await gone?.abort()
    await ended
    expect([gone?.sent, next?.sent]).toEqual([false, true])
    await expect(gone?.answer).rejects.toThrow('called off')
  })

  test('B7: a call that is already cancelled does not wait', async () => {
    const { interceptor, begin, stats } = bulkheadOf({ serverLimit: () => 1 })
    begin()
    const signal = AbortSignal.abort(new Error('gone'))
    await expect(interceptor(callOf({ signal }), () => new Promise(() => {}))).rejects.toThrow('gone')
    expect(stats()).toMatchObject({ inFlight: 1, queued: 0 })
  })
})
