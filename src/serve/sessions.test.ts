import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import type { RequestPeer } from './peer.ts'
import { createSessions } from './sessions.ts'
import type { EventStream } from './stream.ts'

const anna = { principal: 'anna', authenticated: true, admin: false }
const client = { revision: '2025-11-25', capabilities: {} }
const hour = 3_600_000

function setUp(limit?: number) {
  const clock = createManualClock()
  const sessions = createSessions(clock, limit)
  return { clock, sessions, open: () => sessions.open(anna, client, '192.0.2.1') }
}

describe('G3: sessions', () => {
  test('have unguessable ids of 128 bits and belong to one principal', () => {
    const { sessions, open } = setUp()
    const ids = Array.from({ length: 100 }, () => open().id)
    expect(new Set(ids).size).toBe(100)
    for (const id of ids) expect(Buffer.from(id, 'base64url')).toHaveLength(16)
    const [id = ''] = ids
    expect(sessions.find(id, 'anna')?.caller).toEqual({ agent: 'default', ...anna, session: id, address: '192.0.2.1' })
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
    listening.streams.add(stream([]))
    calling.requests.set(1, {} as RequestPeer)
    clock.advance(2 * hour)
    expect(sessions.find(listening.id, 'anna')).toBe(listening)
    expect(sessions.find(calling.id, 'anna')).toBe(calling)
    expect(sessions.find(idle.id, 'anna')).toBeUndefined()
  })

  test('are idle only from the moment their last stream closes', () => {
    const { clock, sessions, open } = setUp()
    const listening = open()
    const listener = stream([])
    sessions.attach(listening, listener)
    clock.advance(2 * hour)
    sessions.detach(listening, listener)
    clock.advance(hour - 60_000)
    expect(sessions.find(listening.id, 'anna')).toBe(listening)
  })

  test('are bounded: the longest idle one gives way, never one in use', () => {
    const { clock, sessions, open } = setUp(3)
    const listening = open()
    listening.streams.add(stream([]))
    const used = open()
    const idle = open()
    clock.advance(1_000)
    sessions.find(used.id, 'anna')
    const fresh = open()
    expect(sessions.find(idle.id, 'anna')).toBeUndefined()
    for (const kept of [listening, used, fresh]) expect(sessions.find(kept.id, 'anna')).toBe(kept)
  })

  test('that are all in use leave no room for another: OVERLOADED', () => {
    const { open } = setUp(1)
    open().streams.add(stream([]))
    expect(open).toThrow(expect.objectContaining({ code: 'OVERLOADED' }))
  })

  test('cancel their calls and close their streams when they end, and keep no timer when all is over', () => {
    const { clock, sessions, open } = setUp()
    const told: string[] = []
    const session = open()
    session.streams.add(stream(told))
    session.requests.set(1, { cancel: () => told.push('cancelled') } as unknown as RequestPeer)
    sessions[Symbol.dispose]()
    expect(told).toEqual(['cancelled', 'ended'])
    expect(sessions.find(session.id, 'anna')).toBeUndefined()
    expect(clock.pending).toBe(0)
  })
})

const stream = (told: string[]) => ({ end: () => told.push('ended') }) as unknown as EventStream
