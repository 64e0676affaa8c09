import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { silentLog } from '../core/log.ts'
import { serverWith } from '../upstream/server.fixture.ts'
import { createTestFleet } from './cluster.fixture.ts'
import { createCluster } from './cluster.ts'

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
    const breakers = { hint() {}, onChange: () => ({ [Symbol.dispose]() {} }) }
    const current = () => ({ servers: new Map(), origins: new Map() })
    const clock = createManualClock()
    using alone = createCluster({ pubSub: undefined, breakers, current, reload, clock, log: silentLog })
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
