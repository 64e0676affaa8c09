import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { openSpool } from '../archive/spool.ts'
import { endOf, openLog, secret, verify } from '../audit.fixture.ts'
import { segmentFileName } from '../log-files.ts'
import { signerOf } from '../record.ts'
import { openSearch } from '../search/search.ts'

const some = { seq: 5, time: '2026-03-01T12:00:00.000Z', prev: '', hash: '', operation: 'x' }
const unprintable = { toString: 1, valueOf: 1 }
const deep = JSON.parse(`${'['.repeat(300)}${']'.repeat(300)}`)

const odd: readonly object[] = [
  { ...some, seq: 1.5 },
  { ...some, seq: 1e300 },
  { ...some, operation: undefined },
  { ...some, phase: {} },
  { ...some, phase: 'after' },
  { ...some, phase: 'after', call: unprintable },
  { ...some, phase: 'after', call: 'c', latency_ms: 'long' },
  { ...some, phase: 'before', call: 'c', agent: unprintable },
  { ...some, prev: null },
  { ...some, hash: unprintable },
  { ...some, key: unprintable },
  { ...some, key: signerOf(secret).id, lane: '1', signature: '', deep },
  { ...some, operation: 'segment', previous: { file: unprintable } },
  { ...some, operation: 'start', lanes: 1 },
]

test('F11: an invalid line is found by verify and hides no other record', async () => {
  await using folder = await temporaryFolder()
  const log = join(folder.path, 'audit')
  {
    await using audit = await openLog(log)
    await audit.end(endOf({ call: 'a', write: true }))
  }
  const file = join(log, '1', segmentFileName(1))
  const sound = readFileSync(file)
  for (const line of odd) {
    const text = `${JSON.stringify(line)}\n`
    writeFileSync(file, sound)
    appendFileSync(file, text)
    expect(await verify(log), text.slice(0, 200)).toMatchObject({ ok: false })
    // As the first of a file that follows another one.
    const next = join(log, '1', segmentFileName(5))
    writeFileSync(next, text)
    expect(await verify(log), text.slice(0, 200)).toMatchObject({ ok: false })
    writeFileSync(next, '')
  }
  writeFileSync(file, Buffer.concat([...odd.map((line) => Buffer.from(`${JSON.stringify(line)}\n`)), sound]))
  using search = openSearch({ folder: log })
  await search.catchUp()
  expect([...search.query({ call: 'a' })]).toHaveLength(1)
  expect((await openSpool(log).read('1', 0, 100)).filter(({ names }) => names.call === 'a')).toHaveLength(1)
})
