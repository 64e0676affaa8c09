import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { until } from '../../../tests/fixtures/until.ts'
import { fileName, openPinFiles } from './pin-files.ts'
import { pinsPlace, toolEntry } from './pins.fixture.ts'
import { readPins } from './pins.ts'

const file = (folder: string) => join(folder, 'pins', fileName('files'))

const snapshot = { hash: 'a'.repeat(64), at: 1, flags: [], high: false, scanner: 1 }
const seen = { hash: snapshot.hash, at: 1 }
const pin = { kind: 'tool', name: 'out', approved: [{ ...snapshot, by: 'first sight' }], pending: [snapshot], seen }

describe('B5: pins on disk', () => {
  test('one file per server, for its owner alone, and nothing besides', async () => {
    await using place = await pinsPlace()
    const pins = await place.open()
    pins.check(toolEntry('read'))
    pins.check(toolEntry('read', {}, '../..//evil'))
    await pins.settled()
    const names = await readdir(join(place.folder, 'pins'))
    expect(names.sort()).toEqual([fileName('../..//evil'), fileName('files')].sort())
    expect((await stat(file(place.folder))).mode & 0o777).toBe(0o600)
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
    const { states } = await readPins({ folder: place.folder, mode: 'warn', now: 0, log: place.log })
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

  test('a damaged file is set aside, and nothing of its server is trusted until an operator approves it', async () => {
    await using place = await pinsPlace()
    await mkdir(join(place.folder, 'pins'), { recursive: true })
    await writeFile(file(place.folder), '{"version":1,"server":"files","pins":[{]')
    await using pins = await place.open('quarantine')
    expect(await readFile(`${file(place.folder)}.damaged`, 'utf8')).toContain('"files"')
    expect(place.warnings()[0]?.message).toContain('damaged pins')
    expect(pins.denialOf(toolEntry('read'))?.reason).toContain('pins were lost')
    await pins.settled()

    await using next = await place.open('quarantine')
    expect(next.check(toolEntry('read')).usable, 'still so after a restart').toBe(false)
    expect(next.check(toolEntry('write')).usable).toBe(false)
    await next.settled()
    const offline = await readPins({ folder: place.folder, mode: 'quarantine', now: place.clock.now(), log: place.log })
    expect(offline.notes).toMatchObject([{ server: 'files', lostAt: expect.any(Number) }])
    expect((await offline.approve({ server: 'files' })).length).toBe(2)

    const last = await place.open('quarantine')
    for (const name of ['read', 'write', 'new']) expect(last.check(toolEntry(name)).usable, name).toBe(true)
  })

  test('what a newer Toolway wrote is neither read nor overwritten', async () => {
    await using place = await pinsPlace()
    await mkdir(join(place.folder, 'pins'), { recursive: true })
    await writeFile(file(place.folder), '{"version":99}')
    const pins = await place.open('quarantine')
    expect(pins.check(toolEntry('read')).usable).toBe(false)
    await expect(pins.settled()).rejects.toThrow('cannot be read')
    expect(await readFile(file(place.folder), 'utf8')).toBe('{"version":99}')
  })

  test('V25: pins of sinks, which 0.1.0 wrote, are ignored and left unchanged', async () => {
    await using place = await pinsPlace()
    const path = join(place.folder, 'pins', fileName('sink'))
    await mkdir(join(place.folder, 'pins'), { recursive: true })
    const record = { version: 1, server: 'sink', origins: [], acknowledged: 0, distrusted: 0, pins: [pin] }
    const text = JSON.stringify(record)
    await writeFile(path, text)
    const pins = await place.open('quarantine')
    expect(pins.check(toolEntry('out', {}, 'sink')).usable).toBe(true)
    await pins.settled()
    expect(pins.list()).toEqual([])
    const { states } = await readPins({ folder: place.folder, mode: 'quarantine', now: 0, log: place.log })
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
    await until(
      () =>
        readdir(blocked).then(
          (names) => names.includes(fileName('files')),
          () => false,
        ),
      { what: 'the file' },
    )
  })

  test('a lock whose owner died does not block others', async () => {
    await using place = await pinsPlace()
    const folder = join(place.folder, 'pins')
    await mkdir(folder, { recursive: true })
    const lock = join(folder, `.${fileName('files')}.lock`)
    await writeFile(lock, `999999999 ${hostname()} abc`)
    const pins = await place.open()
    pins.check(toolEntry('read'))
    await pins.settled()
    expect(await readdir(folder)).toEqual([fileName('files')])

    await writeFile(lock, `${process.pid} hangs`)
    await utimes(lock, new Date(0), new Date(0))
    pins.check(toolEntry('write'))
    await pins.settled()
    expect(pins.list()).toHaveLength(2)
  })

  test('a large definition is kept in part only, and its change is still seen', async () => {
    await using place = await pinsPlace()
    const pins = await place.open('quarantine')
    const large = (end: string) =>
      toolEntry('big', { inputSchema: { type: 'object', description: 'x'.repeat(1_000_000) + end } })
    pins.check(large('a'))
    expect(pins.denialOf(large('b'))?.reason).toContain('its inputSchema changed')
    await pins.settled()
    expect((await stat(file(place.folder))).size).toBeLessThan(4_000)
  })

  test('a store without a folder has nothing and says so', async () => {
    await using place = await pinsPlace()
    const store = openPinFiles(join(place.folder, 'nowhere'), place.log)
    expect(await store.load()).toEqual({ records: [], unreadable: new Set() })
    expect(place.lines).toEqual([])
  })
})
