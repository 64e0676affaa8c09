import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { silentLog } from '../core/log.ts'
import { serverWith } from '../upstream/server.fixture.ts'
import { createTestFleet, type TestFleet } from './cluster.fixture.ts'
import { Cluster } from './cluster.ts'

describe('B10, G8: a reload', () => {
  test('of one replica is done by all, once, and published once', async () => {
    const membership = createTestFleet()
    const [one, other, third] = [membership.join(), membership.join(), membership.join()]
    await one.reload()
    expect([one, other, third].map(({ reloads }) => reloads)).toEqual([1, 1, 1])
    expect(membership.told).toHaveLength(1)
    expect(other.log.lines).toMatchObject([{ level: 'info', message: expect.stringContaining('reload') }])
  })

  test('does not reach a replica that has ended', async () => {
    const membership = createTestFleet()
    const [one, other] = [membership.join(), membership.join()]
    other[Symbol.dispose]()
    await one.reload()
    expect([one, other].map(({ reloads }) => reloads)).toEqual([1, 0])
  })

  test('of a single replica stays local', async () => {
    let reloads = 0
    const reload = async () => void reloads++
    const breakers = { hint() {}, forget() {}, onChange: () => ({ [Symbol.dispose]() {} }) }
    const current = () => ({ servers: new Map(), origins: new Map() })
    const clock = createManualClock()
    const common = { breakers, current, reload, readKeys() {}, clock, log: silentLog }
    using alone = new Cluster({ pubSub: undefined, workers: undefined, ...common })
    await alone.reload()
    expect(reloads).toBe(1)
  })
})

describe('B10, J3: a breaker that opens', () => {
  test('is published to replicas with the same server', () => {
    const membership = createTestFleet()
    const { server } = serverWith()
    const one = membership.join({ server })
    const same = membership.join({ server })
    const another = membership.join({ server, origin: 'elsewhere' })
    const none = membership.join()
    one.breakerIs('files', 'open')
    one.breakerIs('files', 'half-open')
    one.breakerIs('files', 'closed')
    expect([one, same, another, none].map(({ hints }) => hints)).toEqual([[], ['files'], [], []])
  })

  test('is not published for stdio servers', () => {
    const membership = createTestFleet()
    const { server } = serverWith()
    membership.join({ server, transport: 'stdio' }).breakerIs('files', 'open')
    expect(membership.told).toEqual([])
  })
})

describe('B10, V9: an action of an operator on a server', () => {
  const join = (fleet: TestFleet, isWorker = true) => {
    const { server } = serverWith()
    const replica = fleet.join({ server, isWorker })
    return { ...replica, server, isPaused: () => server.control.paused }
  }

  test('reaches all workers of the gateway, but no other replicas', async () => {
    const fleet = createTestFleet()
    const all = [join(fleet), join(fleet), join(fleet, false)] as const
    const paused = () => all.map(({ isPaused }) => isPaused())
    await all[0].control('files', 'disable')
    expect(paused()).toEqual([true, true, false])
    expect(all[1].log.lines).toMatchObject([{ level: 'info', facts: { server: 'files', action: 'disable' } }])
    await all[1].control('files', 'enable')
    expect(paused()).toEqual([false, false, false])
    await all[0].control('files', 'restart')
    expect(all.map(({ forgotten }) => forgotten)).toEqual([['files'], ['files'], []])
    await all[2].control('files', 'disable')
    expect(paused()).toEqual([false, false, true])
  })

  test('applies to a worker that starts later, and only to that one', async () => {
    const fleet = createTestFleet()
    const [one, other] = [join(fleet), join(fleet)]
    await one.control('files', 'disable')
    other.server.control.resume()
    const later = join(fleet)
    expect([one, other, later].map(({ isPaused }) => isPaused())).toEqual([true, false, true])
    expect(join(fleet, false).isPaused()).toBe(false)
  })

  test('that only refreshes lists stays local', async () => {
    const fleet = createTestFleet()
    const [one] = [join(fleet), join(fleet)]
    const before = fleet.told.length
    void one.control('files', 'refresh')
    expect(fleet.told).toHaveLength(before)
  })
})

test('B10, B6: a change of the keys in one worker makes all of them read theirs again', () => {
  const fleet = createTestFleet()
  const [one, other] = [fleet.join({ isWorker: true }), fleet.join({ isWorker: true })]
  one.keysChanged()
  expect([one, other].map(({ keyReads }) => keyReads)).toEqual([1, 1])
})
