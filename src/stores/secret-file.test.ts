import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { keptToken } from './secret-file.ts'

let folder: string
beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), 'toolway-token-')), 'new', 'folder')
})
afterEach(() => rm(join(folder, '../..'), { recursive: true }))

test('B6: a token is made once, kept, and readable by its owner alone', async () => {
  const token = await keptToken(folder)
  expect(token).toMatch(/^tw_[\w-]{32}$/)
  expect(await keptToken(folder)).toBe(token)
  expect((await stat(join(folder, 'token'))).mode & 0o777).toBe(0o600)
  expect(await readdir(folder)).toEqual(['token'])
})

test('B6: many starts at once agree on one token', async () => {
  const tokens = await Promise.all(Array.from({ length: 20 }, () => keptToken(folder)))
  expect(new Set(tokens).size).toBe(1)
})

test('B6: a damaged token file is named in the error, never replaced by an open door', async () => {
  await keptToken(folder)
  for (const left of ['', '\0'.repeat(40)]) {
    await writeFile(join(folder, 'token'), left)
    await expect(keptToken(folder)).rejects.toThrow(/token does not contain a valid secret; remove it/)
  }
  await rm(join(folder, 'token'))
  await mkdir(join(folder, 'token'))
  await expect(keptToken(folder)).rejects.toThrow(/token cannot be read \(EISDIR\)/)
})
