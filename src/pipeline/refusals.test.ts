import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { temporaryFolder } from '../../tests/fixtures/folders.ts'
import { runs } from '../../tests/fixtures/runs.ts'
import { openLog, recordsIn } from '../audit/audit.fixture.ts'
import { isEvent } from '../audit/record.ts'
import { ToolwayError } from '../core/errors.ts'
import { emptyView, keptAudit, refusing } from './pipeline.fixture.ts'
import { burst, perMinute, Refusals } from './refusals.ts'

const codeOf = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => 'none',
    (error: { code: string }) => error.code,
  )

/** How often each code came, of so many attempts. */
async function tally(times: number, attempt: () => Promise<unknown>): Promise<Record<string, number>> {
  const codes: Record<string, number> = {}
  for (let done = 0; done < times; done++) {
    const code = await codeOf(attempt())
    codes[code] = (codes[code] ?? 0) + 1
  }
  return codes
}

describe('F11, B7: a caller that is refused all the time', () => {
  test('gets RATE_LIMITED, and its refusals are counted instead of recorded', async () => {
    const { denied, records } = refusing()
    expect(await tally(2_000, denied)).toEqual({ TOOL_BLOCKED: burst, RATE_LIMITED: 2_000 - burst })
    expect(records).toHaveLength(2 * burst)
    await expect(denied()).rejects.toMatchObject({ details: { retryAfterMs: 60_000 / perMinute } })
  })

  test('can still make allowed calls, and so can other callers', async () => {
    const { denied, allowed, ends } = refusing()
    await tally(2_000, denied)
    expect(await tally(1_000, allowed)).toEqual({ none: 1_000 })
    expect(await codeOf(denied('other'))).toBe('TOOL_BLOCKED')
    expect(ends().filter(({ decision }) => decision === 'ALLOW')).toHaveLength(1_000)
  })

  test('is counted over calls, searches, bad lists and rejected requests together', async () => {
    const page = () => {
      throw new ToolwayError('INVALID_ARGUMENTS', 'This cursor is unknown.')
    }
    const { denied, view, rejected, ends } = refusing({ view: { ...emptyView, page } })
    await tally(burst - 2, denied)
    expect(ends()).toHaveLength(burst - 2)
    rejected({ principal: 'test', code: 'INVALID_AGENT_ID' })
    expect(await codeOf(view().resolve('tool', 'x'))).toBe('TOOL_NOT_FOUND')
    expect(await codeOf(view().resolve('tool', 'x'))).toBe('RATE_LIMITED')
    expect(await codeOf(view().find('tool', 'files', 'x'))).toBe('RATE_LIMITED')
    expect(() => view().page('tool', 'x')).toThrow(expect.objectContaining({ code: 'RATE_LIMITED' }))
    rejected({ principal: 'test', code: 'INVALID_AGENT_ID' })
    expect(await codeOf(denied())).toBe('RATE_LIMITED')
    expect(ends()).toHaveLength(burst)
  })

  test('is not one that looks for an unreachable server', async () => {
    const find = () => Promise.reject(new ToolwayError('SERVER_UNAVAILABLE', 'It is down.'))
    const { view, denied, ends } = refusing({ view: { ...emptyView, find } })
    expect(await tally(burst + 1, () => view().find('tool', 'files', 'x'))).toEqual({ SERVER_UNAVAILABLE: burst + 1 })
    expect(ends()).toHaveLength(burst + 1)
    expect(await codeOf(denied())).toBe('TOOL_BLOCKED')
  })

  test('has the number in the next record', async () => {
    const { denied, ends, clock } = refusing()
    await tally(burst + 7, denied)
    clock.advance(60_000 / perMinute)
    expect(await codeOf(denied())).toBe('TOOL_BLOCKED')
    expect(ends().at(-1)).toMatchObject({ reason: 'tool_blocked', suppressed: 7 })
    expect(ends().filter(({ suppressed }) => suppressed !== undefined)).toHaveLength(1)
  })
})

describe('F11, B7: a flood that is over is summed up', () => {
  const summary = { operation: 'refusals', principal: 'flood', decision: 'DENY', code: 'RATE_LIMITED', suppressed: 7 }

  test.each<[string, (parts: ReturnType<typeof refusing>) => unknown]>([
    ['an allowed call of anybody', ({ allowed }) => allowed('other')],
    ['a refusal of somebody else', ({ denied }) => codeOf(denied('other'))],
    ['a list', ({ view }) => view('other').page('tool')],
    ['a search in vain', ({ view }) => codeOf(view('other').resolve('tool', 'x'))],
    ['a stranger at the front end', ({ rejected }) => rejected({ code: 'AUTH_REQUIRED' })],
  ])('by %s', async (_, operation) => {
    const parts = refusing()
    await tally(burst + 7, () => parts.denied('flood'))
    await operation(parts)
    expect(parts.ends().filter(({ suppressed }) => suppressed)).toEqual([])
    parts.clock.advance(1_000)
    await operation(parts)
    await operation(parts)
    expect(parts.ends().filter(({ suppressed }) => suppressed)).toMatchObject([summary])
  })

  test('at the end at the latest', async () => {
    const { denied, refusals, ends } = refusing()
    await tally(burst + 7, () => denied('flood'))
    refusals[Symbol.dispose]()
    refusals[Symbol.dispose]()
    expect(ends().filter(({ suppressed }) => suppressed)).toMatchObject([summary])
  })

  test('without a timer', async () => {
    const { denied, clock } = refusing()
    await tally(burst + 7, denied)
    expect(clock.pending).toBe(0)
  })
})

const one = (principal: string) => ({ agent: 'a', principal })

test('F11: no refusal is lost: each has a record or is counted in one, and no minute has more than a bucket and a minute', () => {
  const step = fc.record({
    principal: fc.constantFrom('a', 'b', 'stranger'),
    times: fc.integer({ min: 0, max: 900 }),
    passes: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 90_000 })),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      let now = 1_800_000_000_000
      const audit = keptAudit()
      const refusals = new Refusals({ audit, clock: { ...createManualClock(), monotonic: () => now } })
      const made = { a: 0, b: 0, stranger: 0 }
      const told = { a: 0, b: 0, stranger: 0 }
      let written = 0
      for (const { principal, times, passes } of steps) {
        now += passes
        const who = one(principal)
        for (let done = 0; done < times; done++) {
          const counted =
            principal === 'stranger' ? refusals.countUnauthenticated(who, 'AUTH_REQUIRED') : refusals.count(who)
          made[principal as keyof typeof made]++
          if (!counted.recorded) expect(counted.retryAfterMs).toBeGreaterThan(0)
          else {
            written++
            told[principal as keyof typeof told] += 1 + (counted.note.suppressed ?? 0)
          }
        }
      }
      refusals[Symbol.dispose]()
      for (const { principal, suppressed = 0 } of audit.ends) {
        told[principal === 'unknown' ? 'stranger' : (principal as 'a' | 'b')] += suppressed
      }
      expect(told).toEqual(made)
      const passed = steps.reduce((sum, { passes }) => sum + Math.max(passes, 0), 0)
      expect(written).toBeLessThanOrEqual(2 * burst + 10 + 3 * Math.ceil((passed * perMinute) / 60_000))
    }),
    runs(12, 60),
  )
})

describe('B7: the memory of it is bounded', () => {
  const bounded = () => {
    const clock = createManualClock()
    return { clock, refusals: new Refusals({ audit: keptAudit(), clock, maxPrincipals: 3 }) }
  }

  test('callers beyond the bound share one bucket', () => {
    const { refusals } = bounded()
    for (const principal of ['a', 'b', 'c']) refusals.count(one(principal))
    const outcomes = Array.from({ length: burst + 1 }, (_, index) => refusals.count(one(`made up ${index}`)).recorded)
    expect(outcomes.filter((recorded) => !recorded)).toHaveLength(1)
    expect(refusals.count(one('a')).recorded).toBe(true)
  })

  test('callers that were not refused for a while are evicted', () => {
    const { refusals, clock } = bounded()
    for (const principal of ['a', 'b', 'c']) refusals.count(one(principal))
    clock.advance(60_000)
    for (let count = 0; count < burst; count++) refusals.count(one('d'))
    expect(refusals.count(one('d')).recorded).toBe(false)
    expect(refusals.count(one('e')).recorded).toBe(true)
  })

  test('a step of the wall clock, in either direction, changes nothing', () => {
    const { refusals, clock } = bounded()
    for (let count = 0; count < burst; count++) refusals.count(one('a'))
    for (const stepMs of [3_600_000, -365 * 86_400_000]) {
      clock.setWall(clock.now() + stepMs)
      expect(refusals.count(one('a'))).toEqual({ recorded: false, retryAfterMs: 60_000 / perMinute })
    }
  })
})

test('F11, B7: five thousand denied calls with large arguments take less than two megabytes of disk', async () => {
  await using folder = await temporaryFolder()
  await using log = await openLog(folder.path)
  const audit = { ...keptAudit(), begin: log.begin, end: log.end }
  const { denied, refusals } = refusing({ audit })
  const args = { text: 'x'.repeat(15 * 1024) }
  await Promise.allSettled(Array.from({ length: 5_000 }, () => denied('test', args)))
  refusals[Symbol.dispose]()
  const records = recordsIn(folder.path)
  expect(Buffer.byteLength(JSON.stringify(records))).toBeLessThan(2 * 1024 * 1024)
  expect(records.filter(isEvent).at(-1)).toMatchObject({ operation: 'refusals', suppressed: 5_000 - burst })
})
