import { readdirSync } from 'node:fs'
import { rm, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Folder, temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { beginOf, endOf, openLog, operationsIn, verify } from '../audit.fixture.ts'
import { readRecords, type StoredRecord } from '../log-files.ts'

let folder: Folder
beforeEach(async () => {
  folder = await temporaryFolder()
})
afterEach(() => folder[Symbol.asyncDispose]())

test('F11: several at once write into lanes of their own, and a lane that is free again is used again', async () => {
  const first = await openLog(folder.path)
  const second = await openLog(folder.path)
  expect([first.status().lane, second.status().lane]).toEqual(['1', '2'])
  await first[Symbol.asyncDispose]()
  const third = await openLog(folder.path)
  expect(third.status().lane).toBe('1')
  await third.end(endOf({ write: true }))
  await Promise.all([second[Symbol.asyncDispose](), third[Symbol.asyncDispose]()])
  expect(await verify(folder.path)).toMatchObject({ ok: true, lanes: [{ lane: '1' }, { lane: '2' }] })
  expect(operationsIn(folder.path)).toEqual([
    'segment',
    'start',
    'checkpoint',
    'start',
    'call_tool after',
    'checkpoint',
  ])
})

test('F11: a lane that is removed as a whole is missed', async () => {
  const logs = [await openLog(folder.path), await openLog(folder.path), await openLog(folder.path)]
  for (const log of logs) await log[Symbol.asyncDispose]()
  await rm(join(folder.path, '2'), { recursive: true })
  expect((await verify(folder.path)).problems).toEqual([expect.objectContaining({ kind: 'lane', lane: '2' })])
})

test('F11: records of all lanes can be read, from any position on, also during writes', async () => {
  await using one = await openLog(folder.path, { segmentBytes: 1_500 })
  await using two = await openLog(folder.path)
  for (let call = 0; call < 10; call++) {
    one.begin(beginOf({ call: `one ${call}`, arguments: { call } }))
    two.begin(beginOf({ call: `two ${call}` }))
  }
  const read = async (from?: Parameters<typeof readRecords>[1]) => {
    const found: StoredRecord[] = []
    for await (const stored of readRecords(folder.path, from)) found.push(stored)
    return found
  }
  const all = await read()
  const calls = (list: StoredRecord[]) => list.flatMap(({ record }) => (record.phase ? [record.call] : []))
  expect(calls(all)).toEqual([
    ...Array.from({ length: 10 }, (_, call) => `one ${call}`),
    ...Array.from({ length: 10 }, (_, call) => `two ${call}`),
  ])
  expect(readdirSync(join(folder.path, '1')).filter((name) => name.endsWith('.jsonl')).length).toBeGreaterThan(2)
  const middle = all.find(({ record }) => record.phase && record.call === 'one 6') as StoredRecord
  const last = all.at(-1) as StoredRecord
  const from = {
    1: { file: middle.file, offset: middle.offset + middle.bytes },
    2: { file: last.file, offset: last.offset + last.bytes },
  }
  expect(calls(await read({ from }))).toEqual(['one 7', 'one 8', 'one 9'])
  two.begin(beginOf({ call: 'two 10' }))
  expect(calls(await read({ from }))).toEqual(['one 7', 'one 8', 'one 9', 'two 10'])
  // A record that is not whole yet is left for the next time.
  const path = join(folder.path, '2', last.file)
  await truncate(path, last.offset + last.bytes + 20)
  expect(calls(await read({ from, lanes: ['2'] }))).toEqual([])
})
