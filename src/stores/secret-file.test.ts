import { chmod, chown, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { keptAuditKey, keptToken } from './secret-file.ts'

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

test('B6: a damaged token file is named in the error and not replaced', async () => {
  const token = await keptToken(folder)
  for (const left of ['', '\0'.repeat(40), token.slice(0, 17), token.slice(0, -1)]) {
    await writeFile(join(folder, 'token'), left)
    await expect(keptToken(folder)).rejects.toThrow(/token does not contain a valid secret; remove it/)
  }
  await rm(join(folder, 'token'))
  await mkdir(join(folder, 'token'))
  await expect(keptToken(folder)).rejects.toThrow(/token cannot be read \(EISDIR\)/)
  // From the cause, commands see that it is about a file.
  await expect(keptToken(folder)).rejects.toMatchObject({ cause: { code: 'EISDIR' } })
})

test('B6: a token that the operator wrote may be shorter than a generated one', async () => {
  await keptToken(folder)
  // Secrets of Kubernetes and `printf` have no line break.
  for (const end of ['\n', '']) {
    await writeFile(join(folder, 'token'), `an-own-token-of-mine${end}`)
    expect(await keptToken(folder)).toBe('an-own-token-of-mine')
  }
})

test('B6: a file in the place of a folder is named as the cause', async () => {
  await mkdir(join(folder, '..'), { recursive: true })
  await writeFile(folder, '')
  await expect(keptToken(folder)).rejects.toThrow(/\(ENOTDIR\); .* is a file: .*stores\.path/)
})

test.skipIf(process.platform === 'win32')(
  'B6: a secret that other users could have read or replaced is refused, and not repeated',
  async () => {
    const token = await keptToken(folder)
    for (const mode of [0o604, 0o602, 0o644, 0o666]) {
      await chmod(join(folder, 'token'), mode)
      const error = await keptToken(folder).catch((thrown: Error) => thrown.message)
      expect(error).toMatch(new RegExp(`token is accessible to all users \\(mode ${mode.toString(8)};`))
      expect(error).not.toContain(token)
    }
    // Kubernetes gives the group of a volume access to its files.
    await chmod(join(folder, 'token'), 0o660)
    expect(await keptToken(folder)).toBe(token)
  },
)

test.skipIf(process.platform === 'win32')('V25, F11: the error says what is lost with the audit key', async () => {
  await keptAuditKey(folder)
  await chmod(join(folder, 'audit-key'), 0o644)
  await expect(keptAuditKey(folder)).rejects.toThrow(/run chmod 600.*remove it.*`audit verify`/)
})

test.skipIf(process.getuid?.() !== 0)('B6: a secret that another user has put there is refused', async () => {
  const [ourselves, another] = [65_534, 65_533]
  await keptToken(folder)
  await chmod(join(folder, '../..'), 0o755)
  await chmod(join(folder, '..'), 0o755)
  await chmod(folder, 0o755)
  await chmod(join(folder, 'token'), 0o440)
  await chown(join(folder, 'token'), another, ourselves)
  process.setegid?.(ourselves)
  process.seteuid?.(ourselves)
  try {
    await expect(keptToken(folder)).rejects.toThrow('belongs to another user')
  } finally {
    process.seteuid?.(0)
    process.setegid?.(0)
  }
  // Root may verify the log of a service that runs as another user.
  expect(await keptToken(folder)).toMatch(/^tw_/)
})
