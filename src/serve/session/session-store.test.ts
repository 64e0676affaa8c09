import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import type { Membership } from '../../core/cluster.ts'
import { Budget, createBudgets } from '../../core/limits/budget.ts'
import { silentLog } from '../../core/log.ts'
import { Json } from '../../json/json.ts'
import { createTestAccess } from '../access.fixture.ts'
import { createTestConnection } from './connection.fixture.ts'
import { parseSessionRecord, serializeSession } from './session.ts'
import { SessionStore } from './session-store.ts'

const anna = { agent: 'default', principal: 'anna', authenticated: true, admin: false, agents: [] }
const client = { revision: '2025-11-25', capabilities: {} }
const hour = 3_600_000

function setUp(limit = 100, perCaller = limit) {
  const budgets = { ...createBudgets(), sessions: new Budget('sessions', { what: 'sessions', limit, perCaller }) }
  const clock = createManualClock()
  const access = createTestAccess()
  const sessions = new SessionStore({ access, budgets, clock, log: silentLog })
  const openAs = (principal: string) => sessions.open({ ...anna, principal }, client, '192.0.2.1')
  return { clock, access, sessions, openAs, open: () => openAs('anna') }
}

describe('G3: sessions', () => {
  test('have unguessable ids of 128 bits and belong to one principal', () => {
    const { sessions, open } = setUp()
    const ids = Array.from({ length: 100 }, () => open().id)
    expect(new Set(ids).size).toBe(100)
    for (const id of ids) expect(Buffer.from(id, 'base64url')).toHaveLength(16)
    const [id = ''] = ids
    const { capabilities } = client
    const caller = { ...anna, session: id, capabilities, address: '192.0.2.1' }
    expect(sessions.find(id, 'anna')?.caller).toMatchObject(caller)
    expect(sessions.find(id, 'bert')).toBeUndefined()
    expect(sessions.find(id, 'Anna')).toBeUndefined()
  })

  test('end after an hour without use, and not before', () => {
    const { clock, sessions, open } = setUp()
    const { id } = open()
    clock.advance(hour - 60_000)
    expect(sessions.find(id, 'anna')).toBeDefined()
    clock.advance(hour - 60_000)
    expect(sessions.find(id, 'anna')).toBeDefined()
    clock.advance(hour + 60_000)
    expect(sessions.find(id, 'anna')).toBeUndefined()
  })

  test('with an open stream or a call in flight are not idle', () => {
    const { clock, sessions, open } = setUp()
    const listening = open()
    const calling = open()
    const idle = open()
    listening.streams.listen(createTestConnection())
    calling.requests.set(1, { cancel() {} })
    clock.advance(2 * hour)
    expect(sessions.find(listening.id, 'anna')).toBe(listening)
    expect(sessions.find(calling.id, 'anna')).toBe(calling)
    expect(sessions.find(idle.id, 'anna')).toBeUndefined()
  })

  test('are idle only from the moment their last stream closes', () => {
    const { clock, sessions, open } = setUp()
    const listening = open()
    const listener = createTestConnection()
    listening.streams.listen(listener)
    clock.advance(2 * hour)
    listener.cut()
    sessions.touch(listening)
    clock.advance(hour - 60_000)
    expect(sessions.find(listening.id, 'anna')).toBe(listening)
  })

  test('are bounded: the longest idle one is evicted, never one in use', () => {
    const { clock, sessions, open } = setUp(3)
    const listening = open()
    listening.streams.listen(createTestConnection())
    const used = open()
    const idle = open()
    clock.advance(1_000)
    sessions.find(used.id, 'anna')
    const fresh = open()
    expect(sessions.find(idle.id, 'anna')).toBeUndefined()
    for (const kept of [listening, used, fresh]) expect(sessions.find(kept.id, 'anna')).toBe(kept)
  })

  test('B7: are evicted from the caller that has the most', () => {
    const { clock, sessions, openAs } = setUp(4)
    const quiet = openAs('bert')
    clock.advance(1_000)
    const flood = Array.from({ length: 50 }, () => openAs('anna'))
    expect(sessions.find(quiet.id, 'bert')).toBe(quiet)
    expect(flood.filter(({ id }) => sessions.find(id, 'anna')).length).toBe(3)
    // Another comes in all the same, at the cost of the longest idle of the flood.
    const newcomer = openAs('cleo')
    expect(sessions.find(newcomer.id, 'cleo')).toBe(newcomer)
    expect(sessions.find(quiet.id, 'bert')).toBe(quiet)
    expect(flood.slice(-3).map(({ id }) => sessions.find(id, 'anna') !== undefined)).toEqual([false, true, true])
  })

  test('B7: if callers have equally many, the one that opens another loses one, or else the longest idle is evicted', () => {
    const { clock, sessions, openAs } = setUp(4)
    const held = ['anna', 'bert', 'anna', 'bert'].map((principal) => {
      clock.advance(1_000)
      return openAs(principal)
    })
    openAs('bert')
    const left = () => held.map(({ id, caller }) => sessions.find(id, caller.principal) !== undefined)
    expect(left()).toEqual([true, false, true, true])
    const { sessions: others, clock: time, openAs: openOther } = setUp(2)
    const first = openOther('anna')
    time.advance(1_000)
    const second = openOther('bert')
    time.advance(1_000)
    others.find(first.id, 'anna')
    openOther('cleo')
    expect([others.find(first.id, 'anna'), others.find(second.id, 'bert')]).toEqual([first, undefined])
  })

  test('B7: if the caller with the most uses all of its sessions, no other caller loses one: OVERLOADED', () => {
    const { sessions, openAs } = setUp(4)
    const idle = [openAs('bert'), openAs('dora')]
    for (const session of [openAs('anna'), openAs('anna')]) session.streams.listen(createTestConnection())
    for (const principal of ['anna', 'cleo']) {
      expect(() => openAs(principal)).toThrow(expect.objectContaining({ code: 'OVERLOADED' }))
    }
    for (const kept of idle) expect(sessions.find(kept.id, kept.caller.principal)).toBe(kept)
  })

  test('V6: a caller has its share of them: beyond it, its own longest idle one ends, or it is refused', () => {
    const { sessions, openAs } = setUp(4, 2)
    const others = [openAs('bert'), openAs('cleo')]
    const own = [openAs('anna'), openAs('anna'), openAs('anna')]
    expect(own.map(({ id }) => sessions.find(id, 'anna') !== undefined)).toEqual([false, true, true])
    for (const session of own.slice(1)) session.streams.listen(createTestConnection())
    expect(() => openAs('anna')).toThrow(expect.objectContaining({ code: 'OVERLOADED' }))
    for (const kept of others) expect(sessions.find(kept.id, kept.caller.principal)).toBe(kept)
  })

  test('that are all in use are not evicted: OVERLOADED', () => {
    const { open } = setUp(1)
    open().streams.listen(createTestConnection())
    expect(open).toThrow(expect.objectContaining({ code: 'OVERLOADED' }))
  })

  test('cancel their calls and close their streams when they end, and keep no timer when all is over', () => {
    const { clock, sessions, access, open } = setUp()
    const told: string[] = []
    const session = open()
    const listener = createTestConnection()
    session.streams.listen(listener)
    session.requests.set(1, { cancel: () => told.push('cancelled') })
    sessions[Symbol.dispose]()
    expect([told, listener.ended]).toEqual([['cancelled'], true])
    expect(sessions.find(session.id, 'anna')).toBeUndefined()
    expect(clock.pending).toBe(0)
    expect(access.gone).toEqual([session.caller])
  })

  test.each([
    ['ended', (set: ReturnType<typeof setUp>, session: ReturnType<typeof set.open>) => set.sessions.end(session)],
    ['idle for too long', (set: ReturnType<typeof setUp>) => set.clock.advance(hour + 60_000)],
    ['in the way of another', (set: ReturnType<typeof setUp>) => set.open()],
  ])('that are %s end: servers are notified once, and subscriptions are removed', async (_why, over) => {
    const set = setUp(1)
    const session = set.open()
    await session.subscriptions.add('test://static')
    expect(set.access.followed).toHaveLength(1)
    over(set, session)
    set.sessions.end(session)
    expect(set.access.gone).toEqual([session.caller])
    await expect.poll(() => set.access.followed).toEqual([])
  })

  test('W1: each agent subscribes to a resource for itself, and a replica that continues the session knows that', async () => {
    const { access, open } = setUp()
    const { caller, subscriptions, ...rest } = open()
    const bob = { ...caller, agent: 'bob', asked: 'bob' }
    for (const acting of [caller, bob, bob]) await subscriptions.add('test://static', acting)
    expect(access.followed.map((one) => one.caller.agent)).toEqual(['default', 'bob'])
    const record = parseSessionRecord(serializeSession({ caller, subscriptions, ...rest }))
    expect(record?.subscriptions).toEqual([
      { uri: 'test://static', asked: undefined },
      { uri: 'test://static', asked: 'bob' },
    ])
    subscriptions.remove('test://static', caller)
    await expect.poll(() => access.followed.map((one) => one.caller.agent)).toEqual(['bob'])
  })

  test('cancel their pending questions when they end', async () => {
    const { sessions } = setUp()
    const session = sessions.open(anna, { ...client, capabilities: { roots: {} } }, undefined)
    const asked = session.peer.ask('roots/list', Json.of({}), new AbortController().signal)
    sessions.end(session)
    await expect(asked).rejects.toMatchObject({ code: 'CANCELLED' })
    await expect(session.peer.ask('roots/list', Json.of({}), new AbortController().signal)).rejects.toMatchObject({
      code: 'CANCELLED',
    })
  })
})

describe('G3: messages to a client outside any request', () => {
  const waiting = new AbortController().signal

  function openWith(capabilities: object) {
    const { sessions } = setUp()
    return sessions.open(anna, { ...client, capabilities: { ...capabilities } }, undefined)
  }
  const heard = ({ received }: ReturnType<typeof createTestConnection>) =>
    received.filter(({ message }) => message).map(({ message }) => JSON.parse(message))

  test('is its own stream, and its answer is returned', async () => {
    const { peer, streams, clientRequests: asks } = openWith({ roots: {} })
    const listener = createTestConnection()
    streams.listen(listener)
    const answer = peer.ask('roots/list', Json.of({}), waiting)
    const [question] = heard(listener)
    expect(question).toMatchObject({ method: 'roots/list', params: {} })
    asks.settle({ kind: 'response', id: question.id, result: Json.of({ roots: [] }) })
    expect((await answer).value).toEqual({ roots: [] })
  })

  test('waits until there is a stream; an abandoned question is cancelled', async () => {
    const { peer, streams } = openWith({ roots: {} })
    const leaving = new AbortController()
    const answer = peer.ask('roots/list', Json.of({}), leaving.signal)
    const listener = createTestConnection()
    streams.listen(listener)
    leaving.abort()
    await expect(answer).rejects.toMatchObject({ code: 'CANCELLED' })
    const [question, cancelled] = heard(listener)
    expect(cancelled).toMatchObject({ method: 'notifications/cancelled', params: { requestId: question.id } })
  })

  test('is closed to what the client did not declare', async () => {
    const { peer } = openWith({ sampling: {} })
    await expect(peer.ask('roots/list', Json.of({}), waiting)).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })

  test('carries notifications; log messages from the level on that the client wants', () => {
    const session = openWith({})
    const listener = createTestConnection()
    session.streams.listen(listener)
    session.logLevel = 'warning'
    for (const level of ['info', 'error']) session.peer.notify('notifications/message', Json.of({ level }))
    session.peer.notify('notifications/elicitation/complete', Json.of({ elicitationId: 'e' }))
    expect(heard(listener).map(({ params }) => params)).toEqual([{ level: 'error' }, { elicitationId: 'e' }])
    expect(session.peer.logLevel).toBe('warning')
  })
})

describe('B10: sessions of one of several replicas', () => {
  /** A fleet that answers `keep` as it is told to. */
  const setUpFleet = () => {
    const kept: string[] = []
    const state = { ours: true, back: () => {} }
    const membership: Membership = {
      self: 'one',
      addressOf: () => undefined,
      unreachable() {},
      async keep(session) {
        kept.push(session)
        return state.ours
      },
      onReturn(listener) {
        state.back = listener
        return { [Symbol.dispose]() {} }
      },
      takeOver: async () => undefined,
      forget() {},
      sign: (text) => text,
      verify: (text) => text,
    }
    const sessions = new SessionStore({
      access: createTestAccess(),
      budgets: createBudgets(),
      clock: createManualClock(),
      log: silentLog,
      membership,
    })
    const open = () => sessions.open(anna, client, undefined)
    return { kept, state, sessions, open }
  }

  test('are all announced again when the registry may have lost them', () => {
    const { kept, state, open } = setUpFleet()
    const ids = [open().id, open().id]
    kept.length = 0
    state.back()
    expect(kept).toEqual(ids)
  })

  test('are dropped if another replica has taken them over and no request is in flight', async () => {
    const { state, sessions, open } = setUpFleet()
    const [idle, busy] = [open(), open()]
    busy.requests.set(1, { cancel() {} })
    state.ours = false
    state.back()
    await Promise.resolve()
    expect([sessions.holds(idle.id), sessions.holds(busy.id)]).toEqual([false, true])
  })
})
