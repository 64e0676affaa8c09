import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { type Folder, temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { canonical } from '../../json/canonical-json.ts'
import { beginOf, endOf, openLog, recordsIn, secret, verify } from '../audit.fixture.ts'
import { sealLine, signerOf } from '../record.ts'
import { verifyAudit } from './verify.ts'

const hourMs = 60 * 60 * 1000
let folder: Folder
/** A sound log, and a copy of it that each test may spoil. */
let sound: string
let spoiled: string

beforeAll(async () => {
  folder = await temporaryFolder()
  sound = join(folder.path, 'sound')
  spoiled = join(folder.path, 'spoiled')
  for (let start = 0; start < 2; start++) {
    await using audit = await openLog(sound, { segmentBytes: 5_000 })
    for (let call = 0; call < 12; call++) {
      audit.begin(beginOf({ call: `c${call}`, arguments: { path: `/home/é/${call}`, text: 'a "quoted" text\n' } }))
      await audit.end(endOf({ call: `c${call}`, write: true }))
    }
  }
})
afterAll(() => folder[Symbol.asyncDispose]())
beforeEach(() => {
  rmSync(spoiled, { recursive: true, force: true })
  cpSync(sound, spoiled, { recursive: true })
})

const segments = () => readdirSync(join(sound, '1')).filter((name) => name.endsWith('.jsonl'))
const path = (file: string) => join(spoiled, '1', file)

/** Spoils one file, verifies, and puts it back. */
async function problemsOf(file: string, change: (bytes: Buffer) => Buffer): Promise<readonly string[]> {
  const before = readFileSync(join(sound, '1', file))
  const after = change(Buffer.from(before))
  if (after.equals(before)) return ['nothing was changed']
  writeFileSync(path(file), after)
  const { ok, problems } = await verify(spoiled)
  writeFileSync(path(file), before)
  expect(ok).toBe(problems.length === 0)
  return problems.map(({ message }) => message)
}

/** Any of the files, and a place in it. */
const places = () =>
  fc
    .constantFrom(...segments(), 'head')
    .chain((file) =>
      fc.record({ file: fc.constant(file), at: fc.nat(readFileSync(join(sound, '1', file)).length - 1) }),
    )
const lines = (bytes: Buffer) => bytes.toString('utf8').split('\n').slice(0, -1)
const joined = (all: readonly string[]) => Buffer.from(all.map((line) => `${line}\n`).join(''))

test('F11: an unchanged log verifies with the secret, with the public key, and without either', async () => {
  const publicKey = readFileSync(join(sound, 'audit.pub'), 'utf8')
  const seen: number[] = []
  expect(
    await verifyAudit({ folder: sound, key: secret, onProgress: ({ records }) => seen.push(records) }),
  ).toMatchObject({
    ok: true,
    trust: 'secret',
    records: recordsIn(sound).length,
    problems: [],
    lanes: [{ lane: '1', files: segments().length, unsigned: 0, removedTo: 0, torn: undefined }],
  })
  expect(seen.at(-1)).toBe(recordsIn(sound).length)
  expect(segments().length).toBeGreaterThan(3)
  expect(await verifyAudit({ folder: sound, publicKey })).toMatchObject({ ok: true, trust: 'public key' })
  expect(await verifyAudit({ folder: sound })).toMatchObject({ ok: true, trust: 'key beside the log' })
  // A log that was deleted together with its marks is not an intact log.
  for (const key of [{ key: secret }, { publicKey }, {}]) {
    const gone = await verifyAudit({ folder: join(sound, 'none'), ...key })
    expect(gone).toMatchObject({ ok: false, lanes: [], problemCount: 1 })
  }
})

describe('F11: every manipulation of a log is found', () => {
  const changes = runs(5, 1_000)

  test('F11: any other byte anywhere', async () => {
    const edit = fc.tuple(places(), fc.integer({ min: 1, max: 255 }))
    await fc.assert(
      fc.asyncProperty(edit, async ([{ file, at }, by]) => {
        const change = (bytes: Buffer) => {
          bytes[at] = ((bytes[at] as number) + by) & 255
          return bytes
        }
        expect(await problemsOf(file, change)).not.toEqual([])
      }),
      changes,
    )
  })

  test('F11: bytes put in or taken out anywhere', async () => {
    const edit = fc.tuple(places(), fc.uint8Array({ maxLength: 40 }), fc.nat(40))
    await fc.assert(
      fc.asyncProperty(edit, async ([{ file, at }, put, taken]) => {
        const change = (bytes: Buffer) => Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + taken)])
        expect(await problemsOf(file, change)).not.toEqual([])
      }),
      changes,
    )
  })

  test('F11: a file that is cut anywhere', async () => {
    await fc.assert(
      fc.asyncProperty(places(), async ({ file, at }) => {
        expect(await problemsOf(file, (bytes) => bytes.subarray(0, at))).not.toEqual([])
      }),
      changes,
    )
  })

  test('F11: records removed, swapped or repeated', async () => {
    const edit = fc.record({
      file: fc.constantFrom(...segments()),
      how: fc.constantFrom('remove', 'swap', 'repeat', 'move'),
      one: fc.nat(1000),
      other: fc.nat(1000),
      count: fc.integer({ min: 1, max: 5 }),
    })
    await fc.assert(
      fc.asyncProperty(edit, async ({ file, how, one, other, count }) => {
        const change = (bytes: Buffer) => {
          const all = lines(bytes)
          const [a, b] = [one % all.length, other % all.length]
          if (how === 'remove') all.splice(a, count)
          if (how === 'swap') [all[a], all[b]] = [all[b] as string, all[a] as string]
          if (how === 'repeat') all.splice(b, 0, ...all.slice(a, a + count))
          if (how === 'move') all.splice(b, 0, ...all.splice(a, count))
          return joined(all)
        }
        expect(await problemsOf(file, change)).not.toEqual([])
      }),
      changes,
    )
  })

  test('F11: a changed record with a recomputed hash, with or without all that follow', async () => {
    const edit = fc.record({ at: fc.nat(1000), all: fc.boolean(), agent: fc.string() })
    const file = segments()[1] as string
    await fc.assert(
      fc.asyncProperty(edit, async ({ at, all, agent }) => {
        const change = (bytes: Buffer) => {
          let prev: string | undefined
          const start = at % lines(bytes).length
          return joined(
            lines(bytes).map((line, index) => {
              if (index < start || (index > start && !all)) return line
              const { hash: _, ...record } = { ...JSON.parse(line), ...(prev && { prev }) } as Record<string, unknown>
              const sealed = sealLine(canonical(index === start ? { ...record, agent } : record))
              prev = sealed.hash
              return sealed.line.trimEnd()
            }),
          )
        }
        expect(await problemsOf(file, change)).not.toEqual([])
      }),
      changes,
    )
  })

  test('F11: a log rewritten from some record to its end, head included, without the secret', async () => {
    let prev: string | undefined
    let seq = 0
    for (const file of segments()) {
      const all = lines(readFileSync(path(file))).map((line) => {
        const record = JSON.parse(line) as Record<string, unknown>
        seq = record.seq as number
        const { hash: _, ...rest } = { ...record, ...(prev && { prev }) } as Record<string, unknown>
        const changed = seq === 5 ? { ...rest, agent: 'eve' } : rest
        const sealed = sealLine(canonical(changed))
        if (seq >= 5) prev = sealed.hash
        return sealed.line.trimEnd()
      })
      writeFileSync(path(file), joined(all))
    }
    const head = { ...(JSON.parse(readFileSync(path('head'), 'utf8')) as object), hash: prev }
    writeFileSync(path('head'), `${canonical(head).padEnd(255)}\n`)
    const publicKey = readFileSync(join(sound, 'audit.pub'), 'utf8')
    const { problems } = await verifyAudit({ folder: spoiled, publicKey })
    expect(new Set(problems.map(({ kind }) => kind))).toEqual(new Set(['signature']))
    expect((await verify(spoiled)).problems.at(-1)).toMatchObject({ kind: 'head' })
  })

  test('F11: something behind the end of a file; behind the last one it counts as torn', async () => {
    for (const file of segments()) {
      const found = await problemsOf(file, (bytes) => Buffer.concat([bytes, Buffer.from('{"agent')]))
      if (file === segments().at(-1)) expect(found).toEqual([])
      else expect(found).toEqual([expect.stringMatching(/previous file, .* now has/)])
    }
  })

  test('F11: a record put in behind the last one', async () => {
    const { hash, seq, time } = recordsIn(sound).at(-1) as { hash: string; seq: number; time: string }
    const forged = sealLine(canonical({ ...beginOf(), phase: 'before', prev: hash, seq: seq + 1, time })).line
    const last = segments().at(-1) as string
    expect(await problemsOf(last, (bytes) => Buffer.concat([bytes, Buffer.from(forged)]))).toEqual([
      expect.stringContaining(`record ${seq + 1} was added`),
    ])
  })

  test('F11: a file removed, renamed, exchanged or put in', async () => {
    const [first, second, third] = segments() as [string, string, string]
    for (const file of segments()) {
      rmSync(path(file))
      expect((await verify(spoiled)).ok, file).toBe(false)
      cpSync(join(sound, '1', file), path(file))
    }
    renameSync(path(first), path('000000000002.jsonl'))
    expect((await verify(spoiled)).ok).toBe(false)
    renameSync(path('000000000002.jsonl'), path(first))
    cpSync(join(sound, '1', second), path(third))
    expect((await verify(spoiled)).ok).toBe(false)
    cpSync(join(sound, '1', third), path(third))
    cpSync(join(sound, '1', second), path('000000000999.jsonl'))
    expect((await verify(spoiled)).ok).toBe(false)
  })

  test('F11: a lane renamed to another', async () => {
    renameSync(join(spoiled, '1'), join(spoiled, '2'))
    expect((await verify(spoiled)).problems.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['signature', 'head']),
    )
  })

  test('F11: head or the public key removed or replaced', async () => {
    rmSync(path('head'))
    expect((await verify(spoiled)).problems).toEqual([expect.objectContaining({ kind: 'head' })])
    cpSync(join(sound, '1', 'head'), path('head'))
    writeFileSync(join(spoiled, 'audit.pub'), signerOf('another secret').pem)
    expect((await verify(spoiled)).problems).toEqual([expect.objectContaining({ kind: 'key' })])
    expect((await verifyAudit({ folder: spoiled })).problems[0]).toMatchObject({ kind: 'signature' })
  })

  test('F11: a whole log that was created again with another secret', async () => {
    rmSync(spoiled, { recursive: true })
    await using audit = await openLog(spoiled, { key: 'another secret' })
    await audit.end(endOf({ write: true }))
    const kinds = (await verify(spoiled)).problems.map(({ kind }) => kind)
    expect(kinds).toEqual(expect.arrayContaining(['key', 'signature', 'head']))
  })
})

test('F11: a problem names lane, file, line and record in a sentence', async () => {
  const file = segments()[1] as string
  const text = readFileSync(path(file), 'utf8')
  writeFileSync(path(file), text.replace('"agent":"dev"', '"agent":"eve"'))
  const line = text.split('\n').findIndex((one) => one.includes('"agent":"dev"')) + 1
  const seq = Number.parseInt(file, 10) + line - 1
  expect((await verify(spoiled)).problems).toEqual([
    {
      kind: 'changed',
      lane: '1',
      file,
      line,
      seq,
      message: expect.stringMatching(`^record ${seq} .*hash`),
    },
  ])
})

test('F11: lines that are not records are one problem, and the records beside them have none', async () => {
  const file = segments()[1] as string
  const change = (bytes: Buffer) =>
    joined(lines(bytes).map((line, index) => (index === 2 || index === 3 ? 'junk' : line)))
  writeFileSync(path(file), change(readFileSync(path(file))))
  const { problems, lanes } = await verify(spoiled)
  expect(problems.map(({ kind }) => kind)).toEqual(['unreadable', 'segment'])
  expect(lanes[0]?.first?.seq).toBe(1)
})

test('F11: verify may run while another process writes, rotates and removes', async () => {
  const live = join(folder.path, 'live')
  const clock = createManualClock()
  await using audit = await openLog(live, { clock, retainMs: 2 * hourMs, segmentBytes: 20_000 })
  let running = true
  const writer = async () => {
    while (running) {
      audit.begin(beginOf({ write: true, arguments: { text: 'x'.repeat(2_000) } }))
      await audit.end(endOf({ write: true }))
    }
  }
  const writing = writer()
  let removed = 0
  for (let round = 0; round < runs(8, 20).numRuns; round++) {
    await clock.pass(hourMs)
    const { problems, lanes } = await verify(live)
    expect(problems).toEqual([])
    removed = lanes[0]?.removedTo ?? 0
  }
  running = false
  await writing
  expect(removed).toBeGreaterThan(0)
})
