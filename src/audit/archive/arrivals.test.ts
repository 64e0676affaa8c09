import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { until } from '../../../tests/fixtures/until.ts'
import type { Archive, ArchiveArrival } from '../../core/audit-archive.ts'
import { followArrivals, readAllArrivals } from './arrivals.ts'

/** An archive in which what has a place need not be there yet. */
function archiveWith(...places: readonly number[]) {
  const there = new Set(places)
  const asked: number[] = []
  const arrivals: Archive['arrivals'] = async ({ after = 0, limit }) => {
    asked.push(after)
    const found = [...there].filter((position) => position > after).sort((a, b) => a - b)
    return found.slice(0, limit).map((position) => ({ position }) as ArchiveArrival)
  }
  return { arrivals, there, asked }
}

const places = (arrived: readonly ArchiveArrival[]) => arrived.map(({ position }) => position)

test('B10: a record with an earlier position that arrives late is delivered, and none is delivered twice', async () => {
  const { there, asked, ...archive } = archiveWith(1, 2)
  const [clock, stop] = [createManualClock(), new AbortController()]
  const told: number[] = []
  const known = [{ position: 2 } as ArchiveArrival]
  const following = (async () => {
    const arrived = followArrivals({ archive, wanted: {}, from: 1, known, clock, signal: stop.signal })
    for await (const some of arrived) told.push(...places(some))
  })()
  const round = async () => {
    const before = asked.length
    await until(() => clock.pending > 0, { what: 'the pause' })
    clock.advance(1_000)
    await until(() => asked.length > before && clock.pending > 0, { what: 'another round' })
  }
  there.add(5)
  await round()
  expect(told).toEqual([5])
  there.add(3).add(6)
  await round()
  expect(told).toEqual([5, 3, 6])
  // What has been there for long is not looked at any more.
  for (let seconds = 0; seconds < 6; seconds++) await round()
  expect(asked.at(-1)).toBe(6)
  stop.abort()
  await following
  expect(told).toEqual([5, 3, 6])
})

test('B10: all of it comes, list by list', async () => {
  const archive = archiveWith(...Array.from({ length: 4_500 }, (_, index) => index + 1))
  const told: number[] = []
  for await (const some of readAllArrivals(archive, {})) told.push(...places(some))
  expect(told).toHaveLength(4_500)
  expect(archive.asked).toEqual([0, 2_000, 4_000, 4_500])
})
