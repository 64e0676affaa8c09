import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { type Folder, temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { endOf, openLog, secret } from '../audit.fixture.ts'
import { listSegments } from '../log-files.ts'
import { verifyAudit } from '../verify/verify.ts'
import { marksFolder } from './head.ts'

let state: Folder
let folder: string
let marks: string
beforeEach(async () => {
  state = await temporaryFolder()
  folder = join(state.path, 'audit')
  marks = marksFolder(state.path, folder)
})
afterEach(() => state[Symbol.asyncDispose]())

const verified = () => verifyAudit({ folder, key: secret, marks })
const kinds = async () => (await verified()).problems.map(({ kind }) => kind)

async function record(count = 3) {
  await using audit = await openLog(folder, { marks })
  for (let number = 0; number < count; number++) await audit.end(endOf({ write: true }))
}

test('F11: an unchanged log agrees with its marks', async () => {
  await record()
  await record()
  expect(await verified()).toMatchObject({ ok: true, problems: [] })
})

test('F11: a lane that was deleted, also with all others, is missed', async () => {
  await record()
  await rm(join(folder, '1'), { recursive: true })
  expect(await kinds()).toContain('lane')
  await rm(folder, { recursive: true })
  expect(await kinds()).toEqual(['lane'])
})

test('F11: a folder that was rolled back is found, also after the next start', async () => {
  await record()
  await cp(folder, join(state.path, 'copy'), { recursive: true })
  await record(5)
  await rm(folder, { recursive: true })
  await cp(join(state.path, 'copy'), folder, { recursive: true })
  expect(await kinds()).toEqual(['rolled_back'])
  await record()
  expect(await kinds()).toContain('found_before')
})

test('F11: a lane that was replaced by another of the same length is found', async () => {
  await record()
  await using other = await temporaryFolder()
  await using audit = await openLog(other.path, { clock: createManualClock(5000) })
  for (let number = 0; number < 6; number++) await audit.end(endOf({ write: true, tool: 'other' }))
  await rm(join(folder, '1'), { recursive: true })
  await cp(join(other.path, '1'), join(folder, '1'), { recursive: true })
  expect(await kinds()).toContain('changed')
})

test('F11: segments that retention removes are not missed', async () => {
  const clock = createManualClock()
  const retainMs = 60_000
  for (let round = 0; round < 4; round++) {
    await using audit = await openLog(folder, { marks, clock, retainMs })
    await audit.end(endOf({ write: true }))
    clock.advance(retainMs)
  }
  {
    await using _ = await openLog(folder, { marks, clock, retainMs })
  }
  expect(Number.parseInt(listSegments(folder, '1')[0] ?? '', 10)).toBeGreaterThan(1)
  expect(await verified()).toMatchObject({ ok: true })
})

test('V25, F11: lanes without marks, as 0.1.0 wrote them, are marked at the next start, also unused ones', async () => {
  {
    await using one = await openLog(folder)
    await using other = await openLog(folder)
    for (const audit of [one, other]) await audit.end(endOf({ write: true }))
  }
  await cp(join(folder, '2'), join(state.path, 'copy'), { recursive: true })
  {
    await using one = await openLog(folder)
    await using other = await openLog(folder)
    for (const audit of [one, other]) await audit.end(endOf({ write: true }))
  }
  await record()
  expect(await verified()).toMatchObject({ ok: true, problems: [] })
  await rm(join(folder, '2'), { recursive: true })
  await cp(join(state.path, 'copy'), join(folder, '2'), { recursive: true })
  expect(await kinds()).toEqual(['rolled_back'])
})
