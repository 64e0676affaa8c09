import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { until } from '../../tests/fixtures/until.ts'
import { type Clock, systemClock } from '../core/clock.ts'
import { FileWatch } from './watch.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'toolway-watch-'))
})
afterEach(() => rm(folder, { recursive: true }))

/** A clock whose timers above a second do not fire during a test. */
const unpolled: Clock = {
  ...systemClock,
  after: (ms, callback) => systemClock.after(ms > 1_000 ? 3_600_000 : ms, callback),
}

const watching = (...names: string[]) => watchingBy(systemClock, ...names)

function watchingBy(clock: Clock, ...names: string[]) {
  let changes = 0
  const places = names.map((name) => join(folder, name))
  const watch = new FileWatch(places, clock, () => changes++)
  return {
    changes: () => changes,
    follow: (...others: string[]) => watch.follow(others.map((name) => join(folder, name))),
    [Symbol.dispose]: () => watch[Symbol.dispose](),
  }
}

test('G8: files that another configuration names are watched from then on, and others no longer', async () => {
  await mkdir(join(folder, 'secrets'))
  await writeFile(join(folder, 'secrets', 'key'), 'one')
  using watch = watching('a.yaml')
  watch.follow('a.yaml', 'secrets/key')
  await writeFile(join(folder, 'secrets', 'key'), 'two')
  await until(() => watch.changes() === 1, { what: 'the new secret to be noticed' })
  await writeFile(join(folder, 'a.yaml'), '1')
  await until(() => watch.changes() === 2, { what: 'what was watched before' })
  watch.follow('a.yaml')
  await writeFile(join(folder, 'secrets', 'key'), 'three')
  await writeFile(join(folder, 'a.yaml'), '2')
  await until(() => watch.changes() === 3, { what: 'the one that is left' })
})

test('G8: a change that comes while another configuration is being put into force is not lost', async () => {
  const clock = createManualClock()
  const file = join(folder, 'a.yaml')
  await writeFile(file, '1')
  let changes = 0
  using watch = new FileWatch([file], clock, () => changes++)
  await writeFile(file, 'longer')
  watch.follow([file, join(folder, 'b')])
  clock.advance(1_000)
  expect(changes).toBe(1)
})

test('G8: a change that was made before the files were read is not reported, and a later one is', async () => {
  const clock = createManualClock()
  const file = join(folder, 'a.yaml')
  await writeFile(file, '1')
  let changes = 0
  using watch = new FileWatch([file], clock, () => changes++)
  await writeFile(file, 'longer')
  watch.reading()
  clock.advance(10_000)
  expect(changes).toBe(0)
  await writeFile(file, 'much longer')
  clock.advance(10_000)
  expect(changes).toBe(1)
})

test('G8: a file that comes, changes, is replaced or goes is noticed, once each', async () => {
  using watch = watching('a.yaml', 'b.yaml')
  const file = join(folder, 'a.yaml')
  const noticed = (count: number) => until(() => watch.changes() === count, { what: `${count} changes` })
  await writeFile(file, '1')
  await noticed(1)
  await writeFile(file, '2')
  await noticed(2)
  await writeFile(join(folder, 'draft'), '3')
  await rename(join(folder, 'draft'), file)
  await noticed(3)
  await rm(file)
  await noticed(4)
  await writeFile(join(folder, 'b.yaml'), 'b')
  await noticed(5)
})

test('G8: a folder that is swapped behind a link is noticed, as a mounted configuration is', async () => {
  await mkdir(join(folder, 'one'))
  await mkdir(join(folder, 'two'))
  await writeFile(join(folder, 'one', 'c.yaml'), '1')
  await writeFile(join(folder, 'two', 'c.yaml'), '2')
  await symlink('one', join(folder, 'current'))
  await symlink('current/c.yaml', join(folder, 'c.yaml'))
  using watch = watching('c.yaml')
  await symlink('two', join(folder, 'next'))
  await rename(join(folder, 'next'), join(folder, 'current'))
  await until(() => watch.changes() === 1, { what: 'the swap to be noticed' })
})

test('G8: a change to the real file behind a link to another folder is noticed without polling', async () => {
  await mkdir(join(folder, 'dotfiles'))
  await mkdir(join(folder, 'home'))
  await writeFile(join(folder, 'dotfiles', 'a.yaml'), '1')
  await symlink('../dotfiles/a.yaml', join(folder, 'home', 'a.yaml'))
  using watch = watchingBy(unpolled, 'home/a.yaml')
  await writeFile(join(folder, 'dotfiles', 'a.yaml'), 'longer')
  await until(() => watch.changes() === 1, { what: 'the change to be noticed' })
})

test('G8: a folder that is moved away and made again is noticed without polling', async () => {
  const home = join(folder, 'home')
  const write = (text: string) => writeFile(join(home, 'a.yaml'), text)
  await mkdir(home)
  await write('1')
  using watch = watchingBy(unpolled, 'home/a.yaml')
  const noticed = (count: number) => until(() => watch.changes() === count, { what: `${count} changes` })
  await rename(home, join(folder, 'away'))
  await noticed(1)
  await mkdir(home)
  await write('2')
  await noticed(2)
  await write('another')
  await noticed(3)
})

test('G8: other files in the folder are ignored, and a burst of writes counts as one change', async () => {
  using watch = watching('a.yaml')
  for (let count = 0; count < 20; count++) await writeFile(join(folder, 'other'), String(count))
  for (let count = 0; count < 5; count++) await writeFile(join(folder, 'a.yaml'), String(count))
  await until(() => watch.changes() > 0, { what: 'the burst to be noticed' })
  expect(watch.changes()).toBeLessThanOrEqual(2)
})

test('G8: a folder that is not there yet is looked for now and then; nothing is left when it is over', async () => {
  const clock = createManualClock()
  let changes = 0
  const watch = new FileWatch([join(folder, 'later', 'a.yaml')], clock, () => changes++)
  await mkdir(join(folder, 'later'))
  await writeFile(join(folder, 'later', 'a.yaml'), '1')
  clock.advance(2_000)
  clock.advance(20)
  expect(changes).toBe(0)
  clock.advance(100)
  expect(changes).toBe(1)
  watch[Symbol.dispose]()
  expect(clock.pending).toBe(0)
})
