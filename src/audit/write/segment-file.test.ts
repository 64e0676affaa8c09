import { afterEach, beforeEach, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { type Folder, temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { beginOf, endOf, openLog, recordsIn, unreliableFiles, verify } from '../audit.fixture.ts'

let folder: Folder
beforeEach(async () => {
  folder = await temporaryFolder()
})
afterEach(() => folder[Symbol.asyncDispose]())

const write = beginOf({ write: true })
const wrote = endOf({ write: true })

test('F11: one sync runs at a time, and all records that arrive meanwhile share the next one', async () => {
  const files = unreliableFiles()
  await using audit = await openLog(folder.path, { files })
  await audit.flushed()
  files.syncs = 0
  files.hold = true
  let settled = 0
  const wait = () => (audit.end(wrote) as Promise<void>).then(() => settled++)
  const first = wait()
  await until(() => files.held.length === 1, { what: 'the first sync' })
  const others = Array.from({ length: 100 }, wait)
  expect(audit.status().waiting).toBe(101)
  files.held.shift()?.()
  await first
  expect(settled).toBe(1)
  await until(() => files.held.length === 1, { what: 'the second sync' })
  expect(settled).toBe(1)
  files.hold = false
  files.held.shift()?.()
  await Promise.all(others)
  expect(files.syncs).toBe(2)
})

test.each([
  ['writes', { write: true, denied: true, read: false }],
  ['all', { write: true, denied: true, read: true }],
  ['none', { write: false, denied: false, read: false }],
] as const)('F11: under sync %s exactly what it says is on disk before the answer', async (sync, awaited) => {
  await using audit = await openLog(folder.path, { sync })
  const waits = (of: Promise<void> | undefined) => of !== undefined
  expect(waits(audit.end(wrote))).toBe(awaited.write)
  expect(waits(audit.end(endOf({ decision: 'DENY' })))).toBe(awaited.denied)
  expect(waits(audit.end(endOf()))).toBe(awaited.read)
})

test('F11: records that no call waits for are on disk within a second', async () => {
  const files = unreliableFiles()
  const clock = createManualClock()
  await using audit = await openLog(folder.path, { files, clock })
  audit.end(endOf())
  expect(audit.status().synced).toBeLessThan(audit.status().seq)
  clock.advance(1000)
  await until(() => audit.status().synced === audit.status().seq, { what: 'the sync' })
})

test('F11: a failed sync is never retried: the log leaves the file, waiting calls fail, and the next record goes to another file', async () => {
  const files = unreliableFiles()
  {
    await using audit = await openLog(folder.path, { files })
    await audit.end(wrote)
    files.syncFails = 'EIO'
    const waiting = [audit.end(wrote), audit.end(endOf({ decision: 'DENY', write: true }))]
    await expect(waiting[0]).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' })
    await expect(waiting[0]).rejects.toThrow(/HAS run/)
    await expect(waiting[1]).resolves.toBeUndefined()
    expect(audit.status()).toMatchObject({ recording: false, unrecorded: { unsynced: 2 } })
    files.syncFails = undefined
    audit.begin(write)
    await audit.end(wrote)
    expect(audit.status()).toMatchObject({ recording: true, unrecorded: { unsynced: 0 } })
  }
  const records = recordsIn(folder.path)
  expect(records).toContainEqual(expect.objectContaining({ operation: 'segment', reason: 'abandoned' }))
  expect(records).toContainEqual(
    expect.objectContaining({ operation: 'gap', unrecorded: expect.objectContaining({ unsynced: 2 }) }),
  )
  expect(await verify(folder.path)).toMatchObject({ ok: true, lanes: [{ files: 2, outages: 1 }] })
})

test('F11: records written during a rotation are synced with the old file before their calls are answered', async () => {
  const files = unreliableFiles()
  await using audit = await openLog(folder.path, { files, segmentBytes: 2_000 })
  const waits: (Promise<void> | undefined)[] = []
  for (let round = 0; round < 50; round++) {
    audit.begin(write)
    waits.push(audit.end(wrote))
    if (round % 7 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  await Promise.all(waits)
  expect(audit.status()).toMatchObject({ waiting: 0, synced: audit.status().seq })
  expect((await verify(folder.path)).ok).toBe(true)
})
