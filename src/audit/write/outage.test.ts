import { readdirSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { type Folder, temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { beginOf, endOf, openLog, operationsIn, recordsIn, unreliableFiles, verify } from '../audit.fixture.ts'

let folder: Folder
beforeEach(async () => {
  folder = await temporaryFolder()
})
afterEach(() => folder[Symbol.asyncDispose]())

const write = beginOf({ write: true })
const wrote = endOf({ write: true })
const lastGap = () => recordsIn(folder.path).findLast(({ operation }) => operation === 'gap')

test.each(['ENOSPC', 'EIO', 'EDQUOT'])(
  'F11: on %s a write is refused before it is sent, and nothing of it is left in the log',
  async (code) => {
    const files = unreliableFiles()
    await using audit = await openLog(folder.path, { files })
    const length = () => statSync(join(folder.path, '1', '000000000001.jsonl')).size
    const before = length()
    // Some bytes are taken before the error comes.
    files.writesFail = { code, bytes: 100 }
    expect(() => audit.begin(write)).toThrow(expect.objectContaining({ code: 'AUDIT_UNAVAILABLE' }))
    expect(() => audit.begin(write)).toThrow(/nothing was sent/)
    expect(length()).toBe(before)
    files.writesFail = undefined
    audit.begin(write)
    await audit.end(wrote)
    expect(operationsIn(folder.path).slice(2)).toEqual(['gap', 'call_tool before', 'call_tool after'])
    expect(lastGap()).toMatchObject({ reason: 'unrecorded', unrecorded: { refused: 2 } })
  },
)

test('F11: a write that has run and cannot be recorded says that it has run', async () => {
  const files = unreliableFiles()
  await using audit = await openLog(folder.path, { files })
  audit.begin(write)
  files.writesFail = { code: 'EIO', bytes: 0 }
  await expect(audit.end(wrote)).rejects.toThrow(/HAS run and ended with ALLOW/)
  await expect(audit.end(wrote)).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' })
  files.writesFail = undefined
  await audit.end(wrote)
  expect(lastGap()).toMatchObject({ unrecorded: { writes: 2 } })
})

test('F11: a refused write or withheld result may be retried, and the error says when; a write that has run may not', async () => {
  const files = unreliableFiles()
  await using audit = await openLog(folder.path, { files, unrecordedReads: 'refuse' })
  files.writesFail = { code: 'EIO', bytes: 0 }
  const later = { code: 'AUDIT_UNAVAILABLE', details: { retryAfterMs: 1_000 } }
  expect(() => audit.begin(write)).toThrow(expect.objectContaining(later))
  expect(() => audit.begin(write)).toThrow('nothing was sent; try again later (EIO: made to fail).')
  // Also for a call of an unknown tool, which read nothing.
  const ended = audit.end(endOf({ decision: 'ERROR', code: 'TOOL_NOT_FOUND' }))
  await expect(ended).rejects.toMatchObject({
    ...later,
    message:
      'This call could not be written to the audit log, so its result is withheld; try again later (EIO: made to fail).',
  })
  const ran = await (audit.end(wrote) as Promise<void>).catch((thrown) => thrown)
  expect(ran.message).toMatch(/HAS run .* before you repeat it \(EIO: made to fail\)\.$/)
  expect(ran.data).toEqual({ code: 'AUDIT_UNAVAILABLE' })
})

test('F11: a denial stays a denial, and is counted', async () => {
  const files = unreliableFiles()
  await using audit = await openLog(folder.path, { files })
  files.writesFail = { code: 'EIO', bytes: 0 }
  expect(await audit.end(endOf({ decision: 'DENY', write: true }))).toBeUndefined()
  expect(audit.status().unrecorded.denials).toBe(1)
})

test('F11: reads continue unrecorded where that is allowed, and writing is tried again after a moment', async () => {
  const files = unreliableFiles()
  const clock = createManualClock()
  const log = createKeptLog()
  {
    await using audit = await openLog(folder.path, { files, clock, log })
    files.writesFail = { code: 'EIO', bytes: 0 }
    for (let round = 0; round < 5; round++) {
      audit.begin(beginOf())
      expect(audit.end(endOf())).toBeUndefined()
    }
    await new Promise((resolve) => setImmediate(resolve))
    expect(audit.status()).toMatchObject({ recording: false, unrecorded: { reads: 10 } })
    files.writesFail = undefined
    audit.begin(beginOf())
    expect(audit.status().unrecorded.reads).toBe(11)
    clock.advance(100)
    audit.begin(beginOf())
    expect(audit.status()).toMatchObject({ recording: true, unrecorded: { reads: 0 } })
  }
  expect(lastGap()).toMatchObject({ unrecorded: { reads: 11 }, error: 'EIO: made to fail' })
  expect(log.lines.map(({ level, message }) => `${level}: ${message}`)).toEqual([
    expect.stringMatching(/^error: .*refusing write calls/),
    expect.stringMatching(/^info: .*again/),
  ])
  expect(await verify(folder.path)).toMatchObject({ ok: true, lanes: [{ outages: 1 }] })
})

test('F11: reads that are still buffered when a write fails are counted as unrecorded', async () => {
  const files = unreliableFiles()
  {
    await using audit = await openLog(folder.path, { files })
    audit.begin(beginOf())
    files.writesFail = { code: 'EIO', bytes: 40 }
    expect(() => audit.begin(beginOf({ write: true }))).toThrow('nothing was sent')
    expect(audit.status()).toMatchObject({ recording: false, unrecorded: { reads: 1, refused: 1 } })
    files.writesFail = undefined
    audit.begin(beginOf({ write: true }))
    await audit.end(endOf({ write: true }))
  }
  expect(lastGap()).toMatchObject({ unrecorded: { reads: 1, refused: 1 } })
  expect(await verify(folder.path)).toMatchObject({ ok: true })
})

test('F11: reads are refused where they may not go unrecorded', async () => {
  const files = unreliableFiles()
  await using audit = await openLog(folder.path, { files, unrecordedReads: 'refuse' })
  audit.begin(beginOf())
  files.writesFail = { code: 'EIO', bytes: 0 }
  await expect(audit.end(endOf())).rejects.toThrow(/withheld/)
  expect(() => audit.begin(beginOf())).toThrow(/nothing was sent/)
})

test('F11: on a full disk the reserve is used for the end of a write in flight; until it is restored no write begins', async () => {
  const files = unreliableFiles()
  const clock = createManualClock()
  await using audit = await openLog(folder.path, { files, clock })
  const reserve = () => statSync(join(folder.path, '1', 'reserve')).size
  expect(reserve()).toBe(16 * 1024)
  audit.begin(write)
  // The disk is full until the reserve is given up.
  const truncate = files.ftruncateSync
  files.ftruncateSync = (fd, bytes) => {
    truncate(fd, bytes)
    if (bytes === 0) files.writesFail = { code: 'ENOSPC', bytes: 1_000 }
  }
  files.writesFail = { code: 'ENOSPC', bytes: 0 }
  await audit.end(wrote)
  expect(reserve()).toBe(0)
  expect(audit.status().recording).toBe(false)
  expect(() => audit.begin(write)).toThrow(/nothing was sent/)
  clock.advance(100)
  expect(() => audit.begin(write)).toThrow(/nothing was sent/)
  files.ftruncateSync = truncate
  files.writesFail = undefined
  clock.advance(100)
  audit.begin(write)
  expect(reserve()).toBe(16 * 1024)
  await audit.end(wrote)
  expect(audit.status().recording).toBe(true)
})

test('F11: denials do not use up the reserve, so refused callers cannot exhaust it', async () => {
  const files = unreliableFiles()
  await using audit = await openLog(folder.path, { files })
  files.writesFail = { code: 'ENOSPC', bytes: 0 }
  for (let call = 0; call < 10; call++) await audit.end(endOf({ decision: 'DENY', write: true }))
  expect(statSync(join(folder.path, '1', 'reserve')).size).toBe(16 * 1024)
  expect(audit.status().unrecorded.denials).toBe(10)
  files.writesFail = undefined
})

test('F11: a file that cannot be begun leaves nothing behind, and is begun when it can', async () => {
  const files = unreliableFiles()
  {
    await using audit = await openLog(folder.path, { files, segmentBytes: 1_000 })
    await audit.end(wrote)
    files.writesFail = { code: 'EIO', bytes: 40 }
    expect(() => audit.begin(write)).toThrow(/nothing was sent/)
    expect(readdirSync(join(folder.path, '1')).filter((name) => name.endsWith('.jsonl'))).toHaveLength(1)
    files.writesFail = undefined
    audit.begin(write)
    await audit.end(wrote)
  }
  expect(await verify(folder.path)).toMatchObject({ ok: true })
})

test('F11: a partial record that cannot be truncated spoils its file, not the chain', async () => {
  const files = unreliableFiles()
  {
    await using audit = await openLog(folder.path, { files })
    files.writesFail = { code: 'EIO', bytes: 50 }
    files.truncateFails = 'EIO'
    expect(() => audit.begin(write)).toThrow()
    files.writesFail = files.truncateFails = undefined
    audit.begin(write)
    await audit.end(wrote)
  }
  expect(readFileSync(join(folder.path, '1', '000000000001.jsonl'), 'utf8')).not.toMatch(/\n$/)
  expect((await verify(folder.path)).problems).toEqual([])
})

test('F11: a disk that is full at the start does not keep Toolway from starting', async () => {
  const files = unreliableFiles()
  files.writesFail = { code: 'ENOSPC', bytes: 0 }
  const clock = createManualClock()
  {
    await using audit = await openLog(folder.path, { files, clock })
    expect(audit.status()).toMatchObject({ recording: false })
    audit.begin(beginOf())
    expect(() => audit.begin(write)).toThrow(/nothing was sent/)
    files.writesFail = undefined
    clock.advance(100)
    audit.begin(write)
    await audit.end(wrote)
  }
  expect(await verify(folder.path)).toMatchObject({ ok: true })
})

test('F11: a folder that cannot be created is an error of the start', async () => {
  await expect(openLog('/dev/null/audit')).rejects.toThrow(/ENOTDIR/)
})

test('F11: a log that is removed while it is written is noticed and created again', async () => {
  const audit = await openLog(folder.path)
  await audit.end(wrote)
  await rm(join(folder.path, '1'), { recursive: true })
  await expect(audit.end(wrote)).rejects.toThrow(/removed by another process/)
  audit.begin(write)
  await audit.end(wrote)
  await audit[Symbol.asyncDispose]()
  expect(operationsIn(folder.path)).toEqual([
    'segment',
    'start',
    'gap',
    'call_tool before',
    'call_tool after',
    'checkpoint',
  ])
})

test('F11: a log that another process truncates while it is written is noticed before the response is sent', async () => {
  const audit = await openLog(folder.path)
  await audit.end(wrote)
  truncateSync(join(folder.path, '1', '000000000001.jsonl'), 300)
  await expect(audit.end(wrote)).rejects.toThrow(/changed by another process/)
  audit.begin(write)
  await audit.end(wrote)
  await audit[Symbol.asyncDispose]()
  expect((await verify(folder.path)).problems.map(({ kind }) => kind)).toContain('found_before')
})

test('F11: after it was closed a write is refused', async () => {
  const audit = await openLog(folder.path)
  await audit[Symbol.asyncDispose]()
  await audit[Symbol.asyncDispose]()
  expect(() => audit.begin(write)).toThrow(/closed/)
})

test('F11: after a failed sync no write begins before its record is on disk', async () => {
  const files = unreliableFiles()
  await using audit = await openLog(folder.path, { files })
  await audit.flushed()
  expect(audit.begin(write)).toBeUndefined()
  files.syncFails = 'EIO'
  await expect(audit.end(wrote)).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' })
  // Each write waits for its own record; none runs while the disk fails.
  for (let round = 0; round < 3; round++) {
    await expect(audit.begin(write)).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' })
    expect(audit.status().recording).toBe(false)
  }
  files.syncFails = undefined
  await expect(audit.begin(write)).resolves.toBeUndefined()
  expect(audit.status().recording).toBe(true)
  expect(audit.begin(write)).toBeUndefined()
  expect(
    recordsIn(folder.path).filter((record) => 'reason' in record && record.reason === 'abandoned').length,
  ).toBeGreaterThan(0)
})
