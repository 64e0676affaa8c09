import { appendFileSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Folder, temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { beginOf, endOf, openLog, recordsIn, verify } from '../audit.fixture.ts'
import { sealLine } from '../record.ts'

let folder: Folder
let segment: string
let head: string
beforeEach(async () => {
  folder = await temporaryFolder()
  segment = join(folder.path, '1', '000000000001.jsonl')
  head = join(folder.path, '1', 'head')
})
afterEach(() => folder[Symbol.asyncDispose]())

/** A few calls; then what a killed process would leave, without its orderly end. */
async function leaveBehind(calls = 3): Promise<{ readonly head: Buffer; readonly text: Buffer }> {
  await using audit = await openLog(folder.path)
  for (let call = 0; call < calls; call++) {
    audit.begin(beginOf({ call: `c${call}`, write: true }))
    await audit.end(endOf({ call: `c${call}`, write: true }))
  }
  return { head: readFileSync(head), text: readFileSync(segment) }
}

/** Puts a log back to before its orderly end. */
async function killed(calls?: number): Promise<void> {
  const left = await leaveBehind(calls)
  writeFileSync(segment, left.text)
  writeFileSync(head, left.head)
}

const restart = async () => {
  const log = createKeptLog()
  {
    await using audit = await openLog(folder.path, { log })
    await audit.end(endOf({ write: true }))
  }
  return log.lines.map(({ level, facts }) => `${level} ${facts.reason ?? facts.bytes}`)
}

describe('F11: the start after a kill', () => {
  test.each([
    ['half a record', '{"agent":"dev","call":"c'],
    ['a record without its newline', '{"agent":"dev"}'],
    ['a last line that is none', 'garbage\n'],
    ['zeros', '\0'.repeat(3000)],
  ])('F11: %s at the end is cut off, and said', async (_, rest) => {
    await killed()
    const whole = statSync(segment).size
    appendFileSync(segment, rest)
    expect(await restart()).toEqual([`warn ${rest.length}`])
    expect(
      readFileSync(segment)
        .subarray(0, whole + 1)
        .at(-1),
    ).toBe('{'.charCodeAt(0))
    expect(recordsIn(folder.path)).toContainEqual(expect.objectContaining({ operation: 'start', torn: rest.length }))
    expect((await verify(folder.path)).problems).toEqual([])
  })

  test('F11: a file that never got its first record whole is removed', async () => {
    await killed()
    writeFileSync(join(folder.path, '1', '000000000009.jsonl'), '{"half":')
    expect(await restart()).toEqual([])
    expect((await verify(folder.path)).problems).toEqual([])
  })

  test('V7: the next start knows the last record of a process that was killed, and of none that was stopped', async () => {
    const killedBefore = async () => {
      await using audit = await openLog(folder.path)
      return audit.status().killed
    }
    await leaveBehind()
    expect(await killedBefore()).toBeUndefined()
    await killed()
    const { seq, time } = recordsIn(folder.path).at(-1) as { seq: number; time: string }
    expect(await killedBefore()).toEqual({ lane: '1', seq, time })
  })

  test('F11: the next start counts records that no checkpoint covers', async () => {
    await killed()
    const { hash, seq } = recordsIn(folder.path).at(-1) as { hash: string; seq: number }
    const forged = { ...beginOf(), phase: 'before', prev: hash, seq: seq + 1, time: new Date(0).toISOString() }
    const sorted = JSON.stringify(Object.fromEntries(Object.entries(forged).sort(([a], [b]) => (a < b ? -1 : 1))))
    appendFileSync(segment, sealLine(sorted).line)
    expect(await restart()).toEqual([])
    expect(await verify(folder.path)).toMatchObject({ ok: true, lanes: [{ unproven: 1 }] })
  })
})

describe('F11: a log that changed since it was left is reported at the start, recorded, and from then on found by verify', () => {
  const lines = () => readFileSync(segment, 'utf8').split('\n').filter(Boolean)

  test.each<[string, string[], () => void]>([
    [
      'the last record is gone',
      ['records_missing'],
      () => writeFileSync(segment, `${lines().slice(0, -1).join('\n')}\n`),
    ],
    [
      'half of the last record is gone',
      ['records_missing', 'damaged'],
      () => truncateSync(segment, statSync(segment).size - 50),
    ],
    ['all records are gone', ['records_missing'], () => rmSync(segment)],
    ['head is gone', ['head_missing'], () => rmSync(head)],
    [
      'head is changed',
      ['head_invalid'],
      () => writeFileSync(head, readFileSync(head, 'utf8').replace(/"seq":\d+/, '"seq":1')),
    ],
    ['the file is full of junk', ['records_missing', 'damaged'], () => writeFileSync(segment, 'x\n'.repeat(1000))],
  ])('F11: %s', async (_, reasons, change) => {
    await killed()
    change()
    expect(await restart()).toEqual(reasons.map((reason) => `error ${reason}`))
    await restart()
    const { ok, problems } = await verify(folder.path)
    expect(ok).toBe(false)
    expect(problems.filter(({ kind }) => kind === 'found_before')).toHaveLength(reasons.length)
  })

  test('F11: the last record is replaced by a valid one', async () => {
    await killed()
    const record = { ...recordsIn(folder.path).at(-1), agent: 'somebody else' } as Record<string, unknown>
    delete record.hash
    writeFileSync(segment, `${lines().slice(0, -1).join('\n')}\n${sealLine(JSON.stringify(record)).line}`)
    expect(await restart()).toEqual(['error records_changed'])
    expect((await verify(folder.path)).ok).toBe(false)
  })

  test('F11: sequence numbers are never used twice', async () => {
    await killed()
    const last = recordsIn(folder.path).at(-1)?.seq as number
    rmSync(segment)
    await restart()
    expect(recordsIn(folder.path)[0]?.seq).toBe(last + 1)
  })
})

test('F11: a start looks at the end of a long file only', async () => {
  await killed(1)
  const { size } = statSync(segment)
  const text = readFileSync(segment)
  // Junk before the last records, which a start that reads everything would stumble over.
  writeFileSync(
    segment,
    Buffer.concat([text.subarray(0, text.indexOf(10) + 1), Buffer.alloc(64 * 1024 * 1024, 'x\n'), text]),
  )
  expect(await restart()).toEqual([])
  expect(statSync(segment).size).toBeGreaterThan(size)
})
