import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { silentLog } from '../../core/log.ts'
import { fileName } from '../descriptor-store.ts'
import { addPending, isBlocked, type Pin } from './pin-record.ts'
import { PinTable, pinsPath } from './pin-table.ts'
import { pinsPlace, toolEntry } from './pins.fixture.ts'
import { approvePins, blockPin, readPins } from './pins.ts'

const file = (folder: string) => join(folder, 'pins', fileName('files'))

const snapshotOf = (letter: string, at = 1) => ({ hash: letter.repeat(64), at, flags: [], high: false, scanner: 1 })
const snapshot = snapshotOf('a')
const seen = { hash: snapshot.hash, at: 1 }
const pin = { kind: 'tool', name: 'out', approved: [{ ...snapshot, by: 'first sight' }], pending: [snapshot], seen }
/** What Toolway 0.2 wrote for a server. */
const written = { version: 1, server: 'files', origins: [], acknowledged: 0, distrusted: 0, listed: true, pins: [pin] }

const writeOld = async (folder: string, record: object | string, name = fileName('files')): Promise<string> => {
  await mkdir(join(folder, 'pins'), { recursive: true })
  const text = typeof record === 'string' ? record : JSON.stringify(record)
  await writeFile(join(folder, 'pins', name), text)
  return text
}

const change = (path: string, sql: string) => {
  const database = new DatabaseSync(path)
  database.exec(sql)
  database.close()
}

describe('B5: pins on disk', () => {
  test('one file for all servers, for its owner alone, and nothing besides', async () => {
    await using place = await pinsPlace()
    const pins = await place.open()
    pins.check(toolEntry('read'))
    pins.check(toolEntry('read', {}, '../..//evil'))
    await pins[Symbol.asyncDispose]()
    expect(await readdir(join(place.folder, 'pins'))).toEqual(['pins.sqlite'])
    expect((await stat(pinsPath(place.folder))).mode & 0o777).toBe(0o600)
    expect(pins.list()).toHaveLength(2)
  })

  test('gateways that share the folder lose nothing of each other', async () => {
    await using place = await pinsPlace()
    const runs = await Promise.all(Array.from({ length: 4 }, () => place.open()))
    await Promise.all(
      runs.map(async (pins, run) => {
        for (let number = 0; number < 6; number++) {
          pins.check(toolEntry(`tool${run}-${number}`))
          await pins.settled()
        }
      }),
    )
    const { states } = readPins({ folder: place.folder, mode: 'warn', clock: place.clock, log: place.log })
    expect(states.length).toBe(24)
    await Promise.all(runs.map((pins) => pins.settled()))
    for (const pins of runs) expect(pins.list().length).toBe(24)
  })

  test('of two that see a tool first at once with other definitions, the earlier is trusted', async () => {
    await using place = await pinsPlace()
    const first = await place.open('quarantine')
    const second = await place.open('quarantine')
    expect(first.check(toolEntry('read')).usable).toBe(true)
    place.clock.advance(1)
    const other = toolEntry('read', { title: 'x' })
    expect(second.check(other).usable).toBe(true)
    await first.settled()
    await second.settled()
    expect(second.check(other).usable).toBe(false)
    expect(second.check(toolEntry('read')).usable).toBe(true)
  })

  test('a damaged file of 0.2 is set aside, and nothing of its server is trusted until an operator approves it', async () => {
    await using place = await pinsPlace()
    await writeOld(place.folder, '{"version":1,"server":"files","pins":[{]')
    await using pins = await place.open('quarantine')
    expect(await readFile(`${file(place.folder)}.damaged`, 'utf8')).toContain('"files"')
    expect(place.warnings()[0]?.message).toContain('damaged pins')
    expect(pins.denialOf(toolEntry('read'))?.reason).toContain('pins were lost')
    await pins.settled()

    await using next = await place.open('quarantine')
    expect(next.check(toolEntry('read')).usable, 'still so after a restart').toBe(false)
    expect(next.check(toolEntry('write')).usable).toBe(false)
    expect(next.check(toolEntry('read', {}, 'other')).usable, 'only of its server').toBe(true)
    await next.settled()
    const offline = readPins({ folder: place.folder, mode: 'quarantine', clock: place.clock, log: place.log })
    expect(offline.notes).toMatchObject([{ server: 'files', lostAt: expect.any(Number) }])
    expect((await offline.approve({ server: 'files' })).length).toBe(2)

    const last = await place.open('quarantine')
    for (const name of ['read', 'write', 'new']) expect(last.check(toolEntry(name)).usable, name).toBe(true)
  })

  test('while the table is damaged, and until an operator approves it, nothing new is trusted', async () => {
    await using place = await pinsPlace()
    const first = await place.open('quarantine')
    first.check(toolEntry('read'))
    await first[Symbol.asyncDispose]()
    await writeOld(place.folder, written)
    await writeFile(pinsPath(place.folder), 'no database'.repeat(1_000))
    await using pins = await place.open('quarantine')
    expect(place.warnings().at(-1)?.message).toContain('damaged pins')
    for (const server of ['files', 'other'])
      expect(pins.denialOf(toolEntry('read', {}, server))?.reason).toContain('pins were lost')
    expect((await readdir(join(place.folder, 'pins'))).filter((name) => name.endsWith('.unusable'))).toHaveLength(1)
    await pins.settled()
    const next = await place.open('quarantine')
    expect(next.check(toolEntry('read', {}, 'third')).usable, 'still so after a restart').toBe(false)
    await next.approve({})
    for (const server of ['files', 'third', 'fourth'])
      expect(next.check(toolEntry('write', {}, server)).usable, server).toBe(true)
  })

  test('V25: while the files of 0.2 cannot be read into the table, nothing is trusted at first sight', async () => {
    await using place = await pinsPlace()
    await writeOld(place.folder, { ...written, pins: [] })
    await mkdir(pinsPath(place.folder))
    const pins = await place.open('quarantine')
    expect(pins.check(toolEntry('read')).usable).toBe(false)
    await rm(pinsPath(place.folder), { recursive: true })
    await place.clock.pass(10_000)
    await pins.settled()
    expect((await place.open('quarantine')).find('files.read')?.pin.approved).toEqual([])
  })

  test('a damaged row is reported, and nothing new of its server is trusted', async () => {
    await using place = await pinsPlace()
    const first = await place.open('quarantine')
    first.check(toolEntry('read'))
    await first[Symbol.asyncDispose]()
    change(pinsPath(place.folder), "UPDATE pins SET value = '{' WHERE kind = 'tool'")
    const pins = await place.open('quarantine')
    expect(place.warnings().at(-1)?.message).toContain('damaged')
    expect(pins.check(toolEntry('read')).usable).toBe(false)
  })

  test('what a newer Toolway wrote is neither read nor overwritten', async () => {
    await using place = await pinsPlace()
    await mkdir(join(place.folder, 'pins'), { recursive: true })
    change(pinsPath(place.folder), 'PRAGMA user_version = 99')
    const before = await readFile(pinsPath(place.folder))
    const pins = await place.open('quarantine')
    expect(pins.check(toolEntry('read')).usable).toBe(false)
    await expect(pins.settled()).rejects.toThrow('cannot be read')
    expect(await readFile(pinsPath(place.folder))).toEqual(before)
  })

  test('V25: the files of 0.2 are read once and left unchanged, and what was approved stays approved', async () => {
    await using place = await pinsPlace()
    const before = await place.open('quarantine')
    const { hash } = before.check(toolEntry('read')).state ?? { hash: '' }
    await before[Symbol.asyncDispose]()
    await rm(join(place.folder, 'pins'), { recursive: true })
    const [approved, blocked, lifted] = [snapshotOf('b'), snapshotOf('c'), snapshotOf('d')].map((one) => one.hash)
    const read = {
      ...{ kind: 'tool', name: 'read', seen: { hash, at: 2 } },
      approved: [
        { ...snapshot, hash, by: 'first sight' },
        ...['b', 'c', 'd'].map((letter) => ({ ...snapshotOf(letter), by: 'operator' })),
      ],
      pending: [],
      blocked: [
        { hash: blocked, at: 3, lifted: 2 },
        { hash: lifted, at: 3, lifted: 4 },
      ],
    }
    const text = await writeOld(place.folder, { ...written, version: 2, pins: [read] })
    const pins = await place.open('quarantine')
    expect(pins.check(toolEntry('read'))).toMatchObject({ usable: true, state: { state: 'approved', hash } })
    const kept = pins.find('files.read')?.pin as Pin
    expect(kept.approved.map((one) => one.hash)).toEqual([hash, approved, blocked, lifted])
    expect([hash, approved, blocked, lifted].map((one) => isBlocked(kept, one as string))).toEqual([
      false,
      false,
      true,
      false,
    ])
    expect(pins.check(toolEntry('write')), 'its first listing is over').toMatchObject({ usable: false })
    expect(await readFile(file(place.folder), 'utf8')).toBe(text)
    await pins.settled()
    await writeOld(place.folder, { ...written, pins: [] })
    expect((await place.open('quarantine')).check(toolEntry('read')).usable).toBe(true)
    expect(place.warnings().map(({ facts }) => facts.definition)).toEqual(['files.write'])
  })

  test('B6, V25: a secret in the path of a URL that Toolway 0.1 stored is redacted when it is read', async () => {
    await using place = await pinsPlace()
    const origin = { hash: '0123456789abcdef', text: 'https://x.test/Zk3vQ9xLm2Rt7Wp5/mcp', at: 1 }
    const { listed: _, ...old } = written
    await writeOld(place.folder, { ...old, origins: [origin] })
    using table = new PinTable(place)
    expect(table.of('files').facts).toMatchObject({
      listed: true,
      origins: [{ ...origin, text: 'https://x.test/[redacted]/mcp' }],
    })
  })

  test('V25: pins of sinks, which 0.1.0 wrote, are ignored and left unchanged', async () => {
    await using place = await pinsPlace()
    const text = await writeOld(place.folder, { ...written, server: 'sink' }, fileName('sink'))
    const path = join(place.folder, 'pins', fileName('sink'))
    const pins = await place.open('quarantine')
    expect(pins.check(toolEntry('out', {}, 'sink')).usable).toBe(true)
    await pins.settled()
    expect(pins.list()).toEqual([])
    const { states } = readPins({ folder: place.folder, mode: 'quarantine', clock: place.clock, log: place.log })
    expect(states).toEqual([])
    expect(await readFile(path, 'utf8')).toBe(text)
    expect(place.warnings()).toEqual([])
  })

  test('a disk that cannot be written costs a warning and nothing else, and is tried again', async () => {
    await using place = await pinsPlace()
    const blocked = join(place.folder, 'pins')
    await writeFile(blocked, 'a file where the folder should be')
    const pins = await place.open('quarantine')
    expect(pins.check(toolEntry('read')).usable).toBe(true)
    await expect(pins.settled()).rejects.toThrow()
    expect(place.warnings().at(-1)?.message).toContain('could not save pins')
    expect(pins.check(toolEntry('read', { title: 'x' })).usable, 'it holds in this run').toBe(false)
    await rm(blocked)
    await place.clock.pass(10_000)
    expect(await readdir(blocked)).toContain('pins.sqlite')
    await pins.settled()
  })

  test('a large definition is kept in part only, and its change is still seen', async () => {
    await using place = await pinsPlace()
    const pins = await place.open('quarantine')
    const large = (end: string) =>
      toolEntry('big', { inputSchema: { type: 'object', description: 'x'.repeat(1_000_000) + end } })
    pins.check(large('a'))
    expect(pins.denialOf(large('b'))?.reason).toContain('its inputSchema changed')
    await pins.settled()
    await pins[Symbol.asyncDispose]()
    expect((await stat(pinsPath(place.folder))).size).toBeLessThan(32_768)
  })

  test('commands find no pins without a folder, say nothing, and create none', async () => {
    await using place = await pinsPlace()
    const { states, approve } = readPins({ folder: place.folder, mode: 'warn', clock: place.clock, log: place.log })
    expect([states, await approve({}), await readdir(place.folder)]).toEqual([[], [], []])
    expect(place.lines).toEqual([])
  })

  test('a table that is removed while it is used is written again', async () => {
    await using place = await pinsPlace()
    const pins = await place.open('quarantine')
    pins.check(toolEntry('read'))
    await pins.settled()
    await rm(join(place.folder, 'pins'), { recursive: true })
    await place.clock.pass(500)
    await pins.settled()
    const next = await place.open('quarantine')
    expect(next.check(toolEntry('read', { title: 'x' })).usable).toBe(false)
  })
})

const letters = fc.constantFrom('a', 'b', 'c', 'd')
/** What a process does with the pin of one name: it sees a definition, an operator decides about it, or it syncs. */
const step = fc.record({
  process: fc.nat(1),
  what: fc.constantFrom('see' as const, 'approve' as const, 'block' as const, 'sync' as const),
  letter: letters,
  name: fc.constantFrom('read', 'write'),
})

test('B5: of two writers neither loses a pin, a decision of an operator or a change that waits, and both end alike', async () => {
  await using place = await pinsPlace()
  let run = 0
  fc.assert(
    fc.property(fc.array(step, { maxLength: 24 }), (steps) => {
      let at = 0
      const options = { folder: join(place.folder, String(run++)), clock: place.clock, log: silentLog }
      using one = new PinTable(options)
      using other = new PinTable(options)
      const known = new Map<string, Set<string>>()
      const decided = new Map<string, 'approve' | 'block'>()
      for (const { process, what, letter, name } of steps) {
        const table = [one, other][process] as PinTable
        const snapshot = snapshotOf(letter, ++at)
        const label = `files.${name}`
        const { hash } = snapshot
        const seen = { hash, at }
        const before = table.of('files').pin('tool', name)
        if (what === 'sync') table.flush()
        else if (what === 'see') {
          const first = { ...snapshot, by: 'first sight' as const }
          const fresh: Pin = { kind: 'tool', name, approved: [first], pending: [], seen }
          table.put('files', before ? { ...addPending(before, snapshot), seen } : fresh)
          known.set(label, (known.get(label) ?? new Set()).add(hash))
        } else {
          table.flush()
          if (!known.get(label)?.has(hash) || !table.of('files').pin('tool', name)) continue
          if (what === 'block') blockPin(table, label, hash, at)
          else if (approvePins(table, { label, hash }, at).length === 0) continue
          decided.set(`${label} ${hash}`, what)
        }
      }
      for (const table of [one, other, one]) table.flush()
      const [mine, theirs] = [one, other].map((table) => [...table.of('files').pins].sort())
      expect(theirs).toEqual(mine)
      for (const [, pin] of mine as [string, Pin][]) {
        const label = `files.${pin.name}`
        expect(pin.approved.filter(({ by }) => by === 'first sight').length).toBeLessThan(2)
        const stored = [...pin.approved, ...pin.pending].map(({ hash }) => hash)
        expect(stored.toSorted()).toEqual([...(known.get(label) ?? [])].sort())
        for (const hash of stored) {
          const decision = decided.get(`${label} ${hash}`)
          expect(isBlocked(pin, hash)).toBe(decision === 'block')
          if (decision === 'approve')
            expect(pin.approved.find((one) => one.hash === hash)).toMatchObject({ by: 'operator' })
        }
      }
    }),
    { numRuns: 60 },
  )
})
