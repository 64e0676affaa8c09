import { cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { type Folder, temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { endOf, openLog, recordsIn, verify } from '../audit.fixture.ts'
import { isEvent } from '../record.ts'

let folder: Folder
beforeEach(async () => {
  folder = await temporaryFolder()
})
afterEach(() => folder[Symbol.asyncDispose]())

const hourMs = 60 * 60 * 1000
const dayMs = 24 * hourMs
const wrote = endOf({ write: true })
const segments = (lane = '1') => readdirSync(join(folder.path, lane)).filter((name) => name.endsWith('.jsonl'))

test('F11: a file ends when it is long enough, and with the day', async () => {
  const clock = createManualClock(Date.UTC(2027, 0, 1, 23, 59))
  {
    await using audit = await openLog(folder.path, { clock, segmentBytes: 2_000 })
    await audit.end(wrote)
    expect(segments()).toHaveLength(1)
    clock.advance(2 * 60_000)
    await audit.end(wrote)
    expect(segments()).toHaveLength(2)
    for (let call = 0; call < 10; call++) await audit.end(wrote)
    expect(segments().length).toBeGreaterThan(3)
  }
  const reasons = recordsIn(folder.path).flatMap((record) =>
    !isEvent(record) && record.operation === 'segment' ? [record.reason] : [],
  )
  expect(reasons.slice(0, 3)).toEqual(['first', 'age', 'size'])
  expect(await verify(folder.path)).toMatchObject({ ok: true, lanes: [{ files: segments().length }] })
})

test('F11: records are removed when they are old enough, file by file, and what remains verifies', async () => {
  const clock = createManualClock(Date.UTC(2027, 0, 1))
  {
    await using audit = await openLog(folder.path, { clock, retainMs: 3 * dayMs })
    for (let day = 0; day < 10; day++) {
      await audit.end(wrote)
      await clock.pass(dayMs)
    }
    const oldest = () => clock.now() - Date.parse(recordsIn(folder.path)[0]?.time as string)
    const gone = () => clock.pass(hourMs).then(() => oldest() <= 4 * dayMs)
    await until(gone, { what: 'old files to go' })
  }
  const report = await verify(folder.path)
  expect(report.problems).toEqual([])
  expect(report.lanes[0]?.removedTo).toBeGreaterThan(3)
})

test('F11: a lane that cannot be read does not keep the records of others', async () => {
  const clock = createManualClock(Date.UTC(2027, 0, 1))
  // Such as the lane of a command that root ran.
  mkdirSync(join(folder.path, '2', '000000000001.jsonl'), { recursive: true })
  await using audit = await openLog(folder.path, { clock, retainMs: 3 * dayMs })
  for (let day = 0; day < 10; day++) {
    await audit.end(wrote)
    await clock.pass(dayMs)
  }
  const gone = () => clock.pass(hourMs).then(() => Number.parseInt(segments()[0] as string, 10) > 1)
  await until(gone, { what: 'old files to go' })
})

test('F11: a clock that was wrong for a while neither keeps records for longer nor removes them sooner', async () => {
  const callsLeftOn = async (day: number) => {
    const clock = createManualClock(Date.UTC(2027, 0, 1 + day))
    {
      await using audit = await openLog(folder.path, { clock, retainMs: 10 * dayMs })
      await audit.end(endOf({ call: `day ${day}`, write: true }))
    }
    return recordsIn(folder.path).flatMap((record) => (isEvent(record) ? [record.call] : []))
  }
  expect(await callsLeftOn(100)).toEqual(['day 100'])
  // Behind: as old as it says it is, it would be gone at once.
  await callsLeftOn(0)
  expect(await callsLeftOn(101)).toEqual(['day 100', 'day 0', 'day 101'])
  // Ahead: the others would be gone at once, and as young as it says it is, it would stay for years.
  await callsLeftOn(105)
  await callsLeftOn(1_000)
  expect(await callsLeftOn(1_000)).toEqual(['day 100', 'day 0', 'day 101', 'day 105', 'day 1000', 'day 1000'])
  for (let day = 106; day < 130; day++) await callsLeftOn(day)
  expect(await callsLeftOn(130)).toEqual(Array.from({ length: 11 }, (_, day) => `day ${120 + day}`))
  expect((await verify(folder.path)).problems).toEqual([])
})

test('F11: a clock that jumps ahead by years while the gateway runs removes no records', async () => {
  const clock = createManualClock(Date.UTC(2027, 0, 1))
  await using audit = await openLog(folder.path, { clock, retainMs: 10 * dayMs })
  for (let day = 0; day < 8; day++) {
    await audit.end(wrote)
    await clock.pass(dayMs)
  }
  const all = segments()
  clock.setWall(Date.UTC(2047, 0, 1))
  for (let hour = 0; hour < 20; hour++) {
    await clock.pass(hourMs)
    await audit.flushed()
  }
  expect(segments().slice(0, all.length)).toEqual(all)
})

test('F11: files that another program removed are missed: the oldest, one in the middle, the last', async () => {
  const clock = createManualClock(Date.UTC(2027, 0, 1))
  {
    await using audit = await openLog(folder.path, { clock, retainMs: 5 * dayMs })
    for (let day = 0; day < 9; day++) {
      await audit.end(wrote)
      await clock.pass(dayMs)
    }
  }
  const kept = `${folder.path}-kept`
  cpSync(folder.path, kept, { recursive: true })
  try {
    expect((await verify(folder.path)).problems).toEqual([])
    for (const index of [0, 1, -1]) {
      rmSync(join(folder.path, '1', segments().at(index) as string))
      const { problems } = await verify(folder.path)
      expect(problems.map(({ kind }) => kind).join(), String(index)).toMatch(index === -1 ? /cut/ : /missing/)
      rmSync(folder.path, { recursive: true })
      cpSync(kept, folder.path, { recursive: true })
    }
  } finally {
    rmSync(kept, { recursive: true })
  }
})

test('F11: old records in the lane of a process that is gone are removed by another one', async () => {
  const clock = createManualClock(Date.UTC(2027, 0, 1))
  const options = { clock, retainMs: 2 * dayMs }
  const first = await openLog(folder.path, options)
  {
    await using gone = await openLog(folder.path, options)
    await gone.end(wrote)
    await clock.pass(dayMs)
    await gone.end(wrote)
  }
  expect(segments('2').length).toBeGreaterThan(1)
  await clock.pass(5 * dayMs)
  const gone = () => clock.pass(hourMs).then(() => segments('2').length === 1)
  await until(gone, { what: 'the old files of the other lane to go' })
  await first[Symbol.asyncDispose]()
  expect((await verify(folder.path)).problems).toEqual([])
})

test('F11: an idle log ends its file too, so that nothing is kept for longer than it should', async () => {
  const clock = createManualClock(Date.UTC(2027, 0, 1))
  await using audit = await openLog(folder.path, { clock, retainMs: hourMs })
  await audit.end(endOf({ call: 'old', write: true }))
  for (let quarter = 0; quarter < 8; quarter++) {
    await clock.pass(hourMs / 4)
    await audit.flushed()
  }
  await until(() => !recordsIn(folder.path).some((record) => record.phase && record.call === 'old'), {
    what: 'it to go',
  })
  expect((await verify(folder.path)).problems).toEqual([])
})

test('B10: records that are not copied yet are kept longer, but at most twice as long', async () => {
  const clock = createManualClock(Date.UTC(2027, 0, 1))
  const log = createKeptLog()
  let copied = 0
  await using audit = await openLog(folder.path, { clock, log, retainMs: 3 * dayMs, copied: () => copied })
  const oldest = () => (clock.now() - Date.parse(recordsIn(folder.path)[0]?.time as string)) / dayMs
  const days = async (count: number) => {
    for (let hour = 0; hour < count * 24; hour++) {
      if (hour % 24 === 0) await audit.end(wrote)
      await clock.pass(hourMs)
    }
  }
  await days(5)
  expect(oldest()).toBe(5)
  expect(log.lines).toContainEqual(expect.objectContaining({ level: 'warn', facts: { lane: '1', segments: 1 } }))
  copied = Number.MAX_SAFE_INTEGER
  await until(() => clock.pass(hourMs).then(() => oldest() <= 4), { what: 'what is copied to go' })
  copied = 0
  await days(8)
  await until(() => clock.pass(hourMs).then(() => oldest() <= 7), { what: 'what is too old to go' })
  expect(oldest()).toBeGreaterThan(4)
  expect(log.lines.map(({ level }) => level)).toContain('error')
})
