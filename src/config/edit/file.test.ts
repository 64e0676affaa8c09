import { spawnSync } from 'node:child_process'
import { chmod, lstat, mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { place } from '../../clients/place.fixture.ts'
import { temporaryBeside } from '../../lib/files.ts'
import { readSnapshot, replaceFile } from './file.ts'

test('B11: a file is replaced whole, keeps its mode, and leaves no draft behind', async () => {
  const { at, folder } = await place({ 'a.json': 'old' })
  await chmod(at('a.json'), 0o640)
  await replaceFile(await readSnapshot(at('a.json')), Buffer.from('new'))
  expect(await readFile(at('a.json'), 'utf8')).toBe('new')
  expect((await stat(at('a.json'))).mode & 0o777).toBe(0o640)
  expect(await readdir(folder)).toEqual(['a.json'])
})

test('B11: what a killed process left of an earlier change is removed, and what others write is not', async () => {
  const { at, folder } = await place({ 'a.json': 'old' })
  const { pid } = spawnSync(process.execPath, ['-e', ''])
  const stale = (name: string) => temporaryBeside(at(name)).replace(`-${process.pid}-`, `-${pid}-`)
  const kept = [temporaryBeside(at('a.json')), stale('b.json'), at('.a.json.tmp')]
  for (const path of [stale('a.json'), ...kept]) await writeFile(path, 'half')
  await replaceFile(await readSnapshot(at('a.json')), Buffer.from('new'))
  expect((await readdir(folder)).sort()).toEqual([at('a.json'), ...kept].map((path) => basename(path)).sort())
})

test('B11: behind a symbolic link the file changes and the link stays, also if its target does not exist yet', async () => {
  const { at } = await place({ 'dotfiles/real.json': 'old' })
  await symlink('dotfiles/real.json', at('link.json'))
  await symlink('dotfiles/later.json', at('dangling.json'))
  for (const name of ['link.json', 'dangling.json']) {
    await replaceFile(await readSnapshot(at(name)), Buffer.from('new'))
    expect((await lstat(at(name))).isSymbolicLink()).toBe(true)
    expect(await readFile(at(name), 'utf8')).toBe('new')
  }
  expect(await readlink(at('link.json'))).toBe('dotfiles/real.json')
})

test('B11: a file that has changed since it was read is not overwritten', async () => {
  const { at } = await place({ 'a.json': 'old' })
  const [before, none] = [await readSnapshot(at('a.json')), await readSnapshot(at('b.json'))]
  await writeFile(at('a.json'), 'theirs')
  await writeFile(at('b.json'), 'theirs')
  for (const snapshot of [before, none]) {
    await expect(replaceFile(snapshot, Buffer.from('ours'))).rejects.toThrow('nothing was written')
    expect(await readFile(snapshot.path, 'utf8')).toBe('theirs')
  }
})

test('B11: the error for an unreadable file has the reason', async () => {
  const { at } = await place({ 'latin.json': Buffer.from([0x7b, 0xff, 0x7d]), file: '' })
  await mkdir(at('folder'))
  await symlink('loop', at('loop'))
  await expect(readSnapshot(at('latin.json'))).rejects.toThrow('is not UTF-8 text')
  await expect(readSnapshot(at('folder'))).rejects.toThrow('is not a regular file')
  await expect(readSnapshot(at('loop'))).rejects.toThrow('points to itself')
  await expect(readSnapshot(at('file', 'below'))).rejects.toThrow('a part of its path is a file')
})

test('B11: a byte order mark is set aside, and a new file is private', async () => {
  const { at } = await place({ 'mark.json': '\ufeff{}' })
  expect(await readSnapshot(at('mark.json'))).toMatchObject({ text: '{}', mark: '\ufeff' })
  expect(await replaceFile(await readSnapshot(at('x', 'y', 'new.json')), Buffer.from('{}'))).toEqual([
    at('x', 'y'),
    at('x'),
  ])
  expect((await stat(at('x', 'y', 'new.json'))).mode & 0o777).toBe(0o600)
})
