import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { mountSmallDisk } from '../../tests/fixtures/small-disk.ts'
import { makeFolder, writeAtomic, writeNew } from './files.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolway-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const mode = (path: string) => statSync(path).mode & 0o777

test('a new file is readable by its owner alone', async () => {
  const path = join(folder, 'a')
  await writeAtomic(path, 'one')
  expect([readFileSync(path, 'utf8'), mode(path)]).toEqual(['one', 0o600])
})

test('a file is replaced, with the mode that is asked for, and nothing is left beside it', async () => {
  const path = join(folder, 'a')
  writeFileSync(path, 'old')
  chmodSync(path, 0o644)
  await writeAtomic(path, Buffer.from('new'), { mode: 0o640 })
  expect([readFileSync(path, 'utf8'), mode(path)]).toEqual(['new', 0o640])
  expect(readdirSync(folder)).toEqual(['a'])
})

test('where it cannot be replaced the error is thrown and nothing is left beside it', async () => {
  await expect(writeAtomic(join(folder, 'missing', 'a'), 'x')).rejects.toMatchObject({ code: 'ENOENT' })
  const { mkdirSync } = await import('node:fs')
  mkdirSync(join(folder, 'b'))
  writeFileSync(join(folder, 'b', 'inside'), '')
  await expect(writeAtomic(join(folder, 'b'), 'x')).rejects.toThrow()
  expect(readdirSync(folder)).toEqual(['b'])
})

test('B11: on a full disk the error names the file, and nothing is left beside it', async ({ skip }) => {
  const mounted = await mountSmallDisk('64k')
  if (typeof mounted === 'string') return skip(mounted)
  await using disk = mounted
  const path = join(disk.path, 'a')
  disk.fill()
  const full = { code: 'ENOSPC', path, message: expect.stringContaining(path) }
  await expect(writeNew(path, 'x'.repeat(5_000))).rejects.toMatchObject(full)
  await expect(writeAtomic(path, 'x'.repeat(5_000))).rejects.toMatchObject(full)
  disk.free()
  expect(readdirSync(disk.path)).toEqual([])
  expect(await writeNew(path, 'x')).toBe(true)
  expect(readdirSync(disk.path)).toEqual(['a'])
})

test('B11: a folder is made with its parents, for its owner alone, and an existing one stays as it is', () => {
  const path = join(folder, 'a', 'b', 'c')
  makeFolder(path)
  makeFolder(path)
  expect([mode(path), mode(join(folder, 'a'))]).toEqual([0o700, 0o700])
  writeFileSync(join(folder, 'file'), '')
  expect(() => makeFolder(join(folder, 'file'))).toThrow('EEXIST')
  expect(() => makeFolder(join(folder, 'file', 'd'))).toThrow('ENOTDIR')
})
