import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Bucket, Buckets, Taken } from '../../src/core/stores.ts'
import { runs } from '../fixtures/runs.ts'
import { modelBuckets } from './buckets.model.ts'

const start = 1_800_000_000_000
const minute = 60_000
const bucket = (key: string, perMinute: number): Bucket => ({ key, perMinute })

/** What every place for buckets must do. `create` gives an empty one. */
export function bucketsContract(
  name: string,
  create: () => Buckets | Promise<Buckets>,
  { cases = runs(60, 200).numRuns } = {},
): void {
  describe(`F8: buckets in ${name}`, () => {
    const times = async (buckets: Buckets, count: number, from: readonly Bucket[], now: number): Promise<Taken[]> => {
      const answers: Taken[] = []
      for (let made = 0; made < count; made++) answers.push(await buckets.take(from, now))
      return answers
    }

    test('a full minute may be used at once, and then no more', async () => {
      const buckets = await create()
      const answers = await times(buckets, 11, [bucket('a', 10)], start)
      expect(answers.map(({ allowed }) => allowed)).toEqual([...Array(10).fill(true), false])
    })

    test('a call leaves the window 60 s after it was made', async () => {
      const buckets = await create()
      for (let made = 0; made < 10; made++) await buckets.take([bucket('a', 10)], start + made * 1_000)
      expect(await buckets.take([bucket('a', 10)], start + 59_999)).toMatchObject({ allowed: false, retryAfterMs: 1 })
      expect(await buckets.take([bucket('a', 10)], start + 60_000)).toEqual({ allowed: true })
      expect(await buckets.take([bucket('a', 10)], start + 60_000)).toMatchObject({ retryAfterMs: 1_000 })
    })

    test.each([1, 60, 240, 241, 1_000])('after an idle minute all %i are available at once', async (perMinute) => {
      const buckets = await create()
      const from = [bucket('a', perMinute)]
      for (let made = 0; made < perMinute; made++) await buckets.take(from, start + made * 7)
      const later = start + (perMinute - 1) * 7 + minute
      const answers = await times(buckets, perMinute + 1, from, later)
      expect(answers.filter(({ allowed }) => allowed)).toHaveLength(perMinute)
      expect(answers.at(-1)).toEqual({ allowed: false, key: 'a', retryAfterMs: minute })
    })

    test('no more than a minute is saved up', async () => {
      const buckets = await create()
      await buckets.take([bucket('a', 3)], start)
      const answers = await times(buckets, 4, [bucket('a', 3)], start + 3_600_000)
      expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, true, false])
    })

    test('a call at the retry time succeeds, a millisecond earlier it does not', async () => {
      for (const perMinute of [1, 7, 13, 60, 999]) {
        const buckets = await create()
        const from = [bucket('a', perMinute)]
        await times(buckets, perMinute, from, start)
        expect(await buckets.take(from, start + 1)).toEqual({ allowed: false, key: 'a', retryAfterMs: minute - 1 })
        expect(await buckets.take(from, start + minute - 1)).toMatchObject({ allowed: false, retryAfterMs: 1 })
        expect(await buckets.take(from, start + minute)).toEqual({ allowed: true })
      }
    })

    test('from each bucket or from none, and the one that keeps waiting longest is named', async () => {
      const buckets = await create()
      const [slow, quick] = [bucket('slow', 1), bucket('quick', 60)]
      await buckets.take([slow], start)
      for (let tried = 0; tried < 100; tried++) {
        expect(await buckets.take([quick, slow], start)).toEqual({ allowed: false, key: 'slow', retryAfterMs: 60_000 })
      }
      expect((await times(buckets, 60, [quick], start + 1)).every(({ allowed }) => allowed)).toBe(true)
      expect(await buckets.take([slow, quick], start + 2)).toMatchObject({ key: 'quick', retryAfterMs: 59_999 })
    })

    test('a refusal costs nothing, however often', async () => {
      const buckets = await create()
      await buckets.take([bucket('a', 1)], start)
      for (let ms = 1; ms < 60_000; ms += 997) {
        expect(await buckets.take([bucket('a', 1)], start + ms)).toMatchObject({ retryAfterMs: 60_000 - ms })
      }
      expect(await buckets.take([bucket('a', 1)], start + 60_000)).toEqual({ allowed: true })
    })

    test('keys do not touch each other', async () => {
      const buckets = await create()
      await buckets.take([bucket('a', 1)], start)
      expect(await buckets.take([bucket('b', 1)], start)).toEqual({ allowed: true })
    })

    test('a time that goes back counts as no time', async () => {
      const buckets = await create()
      const from = [bucket('a', 2)]
      await times(buckets, 2, from, start)
      expect(await buckets.take(from, start - 3_600_000)).toMatchObject({ allowed: false, retryAfterMs: minute })
      expect(await buckets.take(from, start + minute)).toEqual({ allowed: true })
    })

    test('after a limit is lowered, the retry time is not longer than the new limit needs', async () => {
      const buckets = await create()
      await times(buckets, 600, [bucket('a', 600)], start)
      expect(await buckets.take([bucket('a', 1)], start)).toMatchObject({ allowed: false, retryAfterMs: 60_000 })
    })

    test('a limit that is raised gives what it has more, and no call twice', async () => {
      const buckets = await create()
      await times(buckets, 5, [bucket('a', 5)], start)
      const answers = await times(buckets, 500, [bucket('a', 300)], start + 1_000)
      expect(answers.filter(({ allowed }) => allowed)).toHaveLength(295)
    })

    test('the largest limit that can be configured is counted too', async () => {
      const buckets = await create()
      expect(await buckets.take([bucket('a', Number.MAX_SAFE_INTEGER)], start)).toEqual({ allowed: true })
      expect(await buckets.take([bucket('a', Number.MAX_SAFE_INTEGER)], start + 1)).toEqual({ allowed: true })
    })

    const step = fc.record({
      // Most mistakes show at the very millisecond: the one that was told, the one before it, the end of a minute.
      wait: fc.oneof(
        { arbitrary: fc.constant(0), weight: 3 },
        fc.constantFrom('told', 'too early'),
        fc.constantFrom(1, 59_999, 60_000, 120_000),
        fc.integer({ min: 0, max: 130_000 }),
      ),
      agent: fc.constantFrom('ann', 'bob'),
      tool: fc.constantFrom('read', 'write', 'list'),
    })
    const limits = fc.record({
      total: fc.integer({ min: 1, max: 12 }),
      read: fc.integer({ min: 1, max: 7 }),
      write: fc.oneof(fc.integer({ min: 1, max: 7 }), fc.constant(100_000)),
      list: fc.integer({ min: 1, max: 7 }),
    })

    test('any calls at any time get what exact arithmetic says', async () => {
      await fc.assert(
        fc.asyncProperty(limits, fc.array(step, { maxLength: 150, size: 'max' }), async (perMinute, steps) => {
          const buckets = await create()
          const model = modelBuckets()
          let now = start
          let told = 1
          for (const { wait, agent, tool } of steps) {
            now += wait === 'told' ? told : wait === 'too early' ? told - 1 : wait
            const from = [bucket(`${agent} ${tool}`, perMinute[tool]), bucket(`${agent} total`, perMinute.total)]
            const taken = model.take(from, now)
            assert.deepEqual(await buckets.take(from, now), taken)
            if (!taken.allowed) told = taken.retryAfterMs
          }
        }),
        { numRuns: cases },
      )
    })

    test('no 60 s have more calls than the limit, and a call at the retry time succeeds', async () => {
      const rush = fc.record({ calls: fc.integer({ min: 1, max: 40 }), pauseMs: fc.integer({ min: 0, max: 9_000 }) })
      const limit = fc.constantFrom(1, 5, 60, 239, 240, 241, 300)
      await fc.assert(
        fc.asyncProperty(limit, fc.array(rush, { maxLength: 40, size: 'max' }), async (perMinute, rushes) => {
          const buckets = await create()
          const from = [bucket('a', perMinute)]
          const allowed: number[] = []
          let now = start
          const call = async () => {
            const taken = await buckets.take(from, now)
            if (taken.allowed) allowed.push(now)
            else {
              const { retryAfterMs: ms } = taken
              assert.ok(Number.isInteger(ms) && ms > 0 && ms <= minute, `${ms}`)
            }
            return taken
          }
          for (const { calls, pauseMs } of rushes) {
            now += pauseMs
            for (let made = 0; made < calls; made++) {
              now += made % 3
              await call()
            }
          }
          for (let refused = await call(), tries = 0; !refused.allowed; refused = await call()) {
            expect(++tries).toBeLessThan(2)
            now += refused.retryAfterMs
          }
          const tooMany = allowed.filter((at, index) => at - (allowed[index - perMinute] ?? -minute) < minute)
          expect(tooMany).toEqual([])
        }),
        { numRuns: Math.ceil(cases / 4) },
      )
    })
  })
}
