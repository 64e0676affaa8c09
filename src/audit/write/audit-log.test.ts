import { createHash } from 'node:crypto'
import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { type Folder, temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { beginOf, endOf, openLog, operationsIn, recordsIn, verify } from '../audit.fixture.ts'

let folder: Folder
let segment: string
beforeEach(async () => {
  folder = await temporaryFolder()
  segment = join(folder.path, '1', '000000000001.jsonl')
})
afterEach(() => folder[Symbol.asyncDispose]())

const endOfTurn = () => new Promise((resolve) => setImmediate(resolve))

const lines = () => readFileSync(segment, 'utf8').split('\n').slice(0, -1)

test('F11: both records of a write are in the log at once, before anything is awaited', async () => {
  await using audit = await openLog(folder.path)
  audit.begin(beginOf({ write: true }))
  expect(recordsIn(folder.path)).toHaveLength(3)
  const onDisk = audit.end(endOf({ write: true }))
  expect(recordsIn(folder.path)).toHaveLength(4)
  await onDisk
})

test('F11: both records of a read are in the log at the end of the turn, before the next is begun', async () => {
  await using audit = await openLog(folder.path)
  audit.begin(beginOf({ address: '127.0.0.1', arguments: { path: '/x', b: 1 } }))
  audit.end(endOf({ decision: 'ERROR', reason: 'server_unavailable', rule: 'r', code: 'SERVER_UNAVAILABLE' }))
  await endOfTurn()
  expect(recordsIn(folder.path).slice(2)).toMatchObject([
    { ...beginOf(), phase: 'before', seq: 3, address: '127.0.0.1', arguments: { b: 1, path: '/x' } },
    {
      ...endOf({ decision: 'ERROR' }),
      phase: 'after',
      seq: 4,
      reason: 'server_unavailable',
      code: 'SERVER_UNAVAILABLE',
    },
  ])
  expect(audit.status()).toMatchObject({ lane: '1', seq: 4, recording: true })
})

test('F11: each hash is the SHA-256 of its line without it, and the next line names it', async () => {
  const audit = await openLog(folder.path)
  for (let call = 0; call < 5; call++) audit.begin(beginOf({ call: `${call}`, arguments: { é: '"\n' } }))
  await audit[Symbol.asyncDispose]()
  let before = '0'.repeat(64)
  for (const line of lines()) {
    const [, body, hash] = /^(.*),"hash":"([0-9a-f]{64})"}$/.exec(line) ?? []
    expect(createHash('sha256').update(`${body}}`).digest('hex')).toBe(hash)
    expect(JSON.parse(line)).toMatchObject({ prev: before })
    before = hash ?? ''
  }
})

test('F11: the log signs itself after many records, a minute after something was recorded, at its end, and not when idle', async () => {
  const clock = createManualClock()
  const checkpoints = () => operationsIn(folder.path).filter((operation) => operation === 'checkpoint').length
  const audit = await openLog(folder.path, { clock })
  await clock.pass(10 * 60_000)
  expect(checkpoints()).toBe(0)
  for (let call = 0; call < 1023; call++) audit.begin(beginOf())
  expect(checkpoints()).toBe(0)
  audit.begin(beginOf())
  expect(checkpoints()).toBe(1)
  audit.begin(beginOf())
  await clock.pass(60_000)
  expect(checkpoints()).toBe(2)
  await clock.pass(10 * 60_000)
  expect(checkpoints()).toBe(2)
  await audit[Symbol.asyncDispose]()
  expect(checkpoints()).toBe(3)
  expect(clock.pending).toBe(0)
  expect(await verify(folder.path)).toMatchObject({ ok: true, lanes: [{ unsigned: 0 }] })
})

test('F11: after a kill, the next start truncates a partial record and the chain continues', async () => {
  const audit = await openLog(folder.path)
  await audit.end(endOf({ write: true }))
  const acknowledged = statSync(segment).size
  const head = readFileSync(join(folder.path, '1', 'head'))
  for (let call = 0; call < 4; call++)
    audit.begin(beginOf({ call: `${call}`, arguments: { text: 'x'.repeat(call * 300) } }))
  const text = readFileSync(segment)
  await audit[Symbol.asyncDispose]()
  const cuts = fc.integer({ min: acknowledged, max: text.length })
  await fc.assert(
    fc.asyncProperty(cuts, fc.constantFrom('', '\0\0', '\n'), async (end, rest) => {
      writeFileSync(segment, text.subarray(0, end))
      appendFileSync(segment, rest)
      writeFileSync(join(folder.path, '1', 'head'), head)
      await using again = await openLog(folder.path)
      await again.end(endOf({ call: 'after the kill', write: true }))
      const { problems } = await verify(folder.path)
      expect(problems).toEqual([])
    }),
    runs(12, 60),
  )
})

test('F11: a replaced secret is reported by verify, and its log continues', async () => {
  const first = await openLog(folder.path, { key: 'the old secret' })
  await first[Symbol.asyncDispose]()
  const second = await openLog(folder.path)
  await second[Symbol.asyncDispose]()
  expect(readFileSync(join(folder.path, 'audit.pub'), 'utf8').match(/BEGIN PUBLIC KEY/g)).toHaveLength(2)
  expect((await verify(folder.path)).problems.map(({ kind }) => kind)).toContain('signature')
})
