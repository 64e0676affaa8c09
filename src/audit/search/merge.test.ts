import { expect, test } from 'vitest'
import type { StoredRecord } from '../log-files.ts'
import { logFolder, start } from './log.fixture.ts'
import { mergeLanes, readRecent } from './tail.ts'

const stored = (lane: string, seq: number, time: string) => ({ lane, record: { seq, time } }) as StoredRecord

test('F11: time decides between lanes, their own order within them, even where a clock was set back', () => {
  const given = [
    stored('1', 1, '03'),
    stored('1', 2, '01'),
    stored('1', 3, '06'),
    stored('2', 9, '02'),
    stored('2', 10, '05'),
  ]
  const order = mergeLanes(given).map(({ lane, record }) => `${lane}.${record.seq}`)
  expect(order).toEqual(['2.9', '1.1', '1.2', '2.10', '1.3'])
  expect(mergeLanes([])).toEqual([])
})

test('F11: the last records are read from the end, across segments, with the position of each lane', async () => {
  await using log = await logFolder()
  for (let number = 0; number < 300; number++) {
    if (number % 100 === 99) log.rotate()
    log.write({ call: `c${number}`, at: start + number * 10, arguments: { filler: 'x'.repeat(number * 10) } })
  }
  const { records, positions, whole } = await readRecent(log.folder, 401)
  expect(records).toHaveLength(401)
  expect(records[0]?.record).toMatchObject({ phase: 'after', call: 'c99' })
  expect(records.at(-1)?.record).toMatchObject({ phase: 'after', call: 'c299' })
  expect(whole).toBe(false)
  const last = records.at(-1) as StoredRecord
  expect(positions).toEqual({ 1: { file: last.file, offset: last.offset + last.bytes } })
  expect(await readRecent(log.folder, 10_000)).toMatchObject({ whole: true, records: { length: 600 } })
  expect(await readRecent(`${log.folder}/nowhere`, 5)).toEqual({ records: [], positions: {}, whole: true })
})
