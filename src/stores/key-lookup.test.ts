import { chmod, mkdir, mkdtempDisposable, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createManualClock, type ManualClock } from '../../tests/fixtures/clock.ts'
import { createKeptLog, type KeptLog } from '../../tests/fixtures/log.ts'
import { changeKeyFile, keyFile, newApiKey, type StoredKey } from './key-file.ts'
import { ApiKeyLookup } from './key-lookup.ts'

let clock: ManualClock
let log: KeptLog
let folder: string
let file: string
let open: AsyncDisposableStack

beforeEach(async () => {
  open = new AsyncDisposableStack()
  clock = createManualClock()
  log = createKeptLog()
  folder = join(open.use(await mkdtempDisposable(join(tmpdir(), 'toolway-keys-'))).path, 'state')
  file = keyFile(folder)
})
afterEach(() => open.disposeAsync())

const keyOf = (id: string, more: Partial<StoredKey> = {}): StoredKey => {
  const { hash } = newApiKey(id)
  return { id, hash, agents: [], admin: false, created: '2026-01-01T00:00:00.000Z', ...more }
}
const add = (key: StoredKey) => changeKeyFile(folder, (keys) => [...keys, key])
const known = (configured: ConstructorParameters<typeof ApiKeyLookup>[0]['configured'] = []) =>
  new ApiKeyLookup({ configured, folder, clock, log })

test('B6: a key is long, random, named, and its hash does not hold it', () => {
  const one = newApiKey('ci')
  expect(one.key).toMatch(/^twk_ci_[\w-]{43}$/)
  expect(one.hash).toMatch(/^sha256:[0-9a-f]{64}$/)
  expect(newApiKey('ci').key).not.toBe(one.key)
})

describe('B6: the key file', () => {
  test('is readable by its owner only and contains no key', async () => {
    await add(keyOf('ci', { expires: '2027-01-01T00:00:00.000Z' }))
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect((await stat(folder)).mode & 0o777).toBe(0o700)
    expect(await readFile(file, 'utf8')).not.toContain('twk_')
  })

  test('without one there are no keys and nothing to say', () => {
    expect(known().find(keyOf('ci').hash)).toBeUndefined()
    expect(log.lines).toEqual([])
  })

  test('is checked again after a second, and not before', async () => {
    const ci = keyOf('ci', { expires: '2027-01-01T00:00:00.000Z', agents: ['a'], admin: true })
    await add(ci)
    const keys = known()
    const found = { id: 'ci', hash: ci.hash, agents: ['a'], admin: true, expires: Date.parse('2027-01-01') }
    expect(keys.find(ci.hash)).toEqual(found)
    await rm(file)
    clock.advance(999)
    expect(keys.find(ci.hash)).toEqual(found)
    clock.advance(1)
    expect(keys.find(ci.hash)).toBeUndefined()
  })

  test('is checked at once for a key that is not known, but not for each of many', async () => {
    const keys = known()
    const [ci, bot] = [keyOf('ci'), keyOf('bot')]
    await add(ci)
    expect(keys.find(ci.hash)).toBeDefined()
    await add(bot)
    clock.advance(99)
    expect(keys.find(bot.hash)).toBeUndefined()
    clock.advance(1)
    expect(keys.find(bot.hash)).toBeDefined()
  })

  test('is checked at once after this process has changed it', async () => {
    const ci = keyOf('ci')
    await add(ci)
    const keys = known()
    expect(keys.find(ci.hash)).toBeDefined()
    await changeKeyFile(folder, () => [])
    keys.changed()
    expect(keys.find(ci.hash)).toBeUndefined()
  })

  test.each<[string, () => Promise<unknown>, RegExp]>([
    ['readable by others', () => chmod(file, 0o644), /keys\.json.*mode 644/],
    ['writable by others', () => chmod(file, 0o602), /keys\.json.*mode 602/],
    ['no JSON', () => writeFile(file, 'nonsense'), /damaged/],
    ['cut', async () => writeFile(file, (await readFile(file, 'utf8')).slice(0, -20)), /damaged/],
    ['of another version', () => writeFile(file, '{"version":2,"keys":[]}'), /damaged \(version\)/],
    ['with an unknown field', () => writeFile(file, '{"version":1,"keys":[],"more":1}'), /damaged/],
    [
      'with a key that has no hash',
      () => writeFile(file, JSON.stringify({ version: 1, keys: [{ ...keyOf('x'), hash: 'plain' }] })),
      /damaged \(keys\.0\.hash\)/,
    ],
    [
      'with one name twice',
      () => writeFile(file, JSON.stringify({ version: 1, keys: [keyOf('x'), keyOf('x')] })),
      /two keys.*same name/,
    ],
    [
      'a link',
      async () => {
        await rename(file, `${file}.real`)
        await symlink(`${file}.real`, file)
      },
      /cannot be opened/,
    ],
    [
      'a folder',
      async () => {
        await rm(file)
        await mkdir(file)
      },
      /not a regular file/,
    ],
    ['too large', () => writeFile(file, ' '.repeat(5 * 1024 * 1024)), /larger than 4 MiB/],
  ])(
    '%s is not trusted: its keys are refused, which is logged once, until it is repaired',
    async (_, spoil, sentence) => {
      const ci = keyOf('ci')
      await add(ci)
      const keys = known()
      expect(keys.find(ci.hash)).toBeDefined()
      await spoil()
      for (let second = 0; second < 5; second++) {
        clock.advance(1_000)
        expect(keys.find(ci.hash)).toBeUndefined()
      }
      expect(log.lines).toEqual([expect.objectContaining({ level: 'error', message: expect.stringMatching(sentence) })])
      await expect(add(keyOf('other'))).rejects.toThrow(sentence)
      await rm(file, { recursive: true })
      await add(ci)
      clock.advance(1_000)
      expect(keys.find(ci.hash)).toBeDefined()
      expect(log.lines.at(-1)).toMatchObject({ level: 'info' })
    },
  )

  test('twenty writers at once lose nothing, and readers never see half of it', async () => {
    const ids = Array.from({ length: 20 }, (_, number) => `k${number}`)
    const keys = known()
    let writing = true
    const reading = (async () => {
      while (writing) {
        clock.advance(1_000)
        keys.find('')
        await setTimeout(1)
      }
    })()
    await Promise.all(ids.map((id) => add(keyOf(id))))
    writing = false
    await reading
    const { keys: kept } = JSON.parse(await readFile(file, 'utf8')) as { keys: StoredKey[] }
    expect(kept.map(({ id }) => id).sort()).toEqual(ids.sort())
    expect(log.lines).toEqual([])
  })

  test('a writer that fails leaves everything as it was', async () => {
    await add(keyOf('ci'))
    const before = await readFile(file, 'utf8')
    const failing = changeKeyFile(folder, () => {
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await readFile(file, 'utf8')).toBe(before)
    await add(keyOf('next'))
  })
})

describe('B6: the keys of the configuration', () => {
  const { created: _, ...configured } = keyOf('ci', { agents: ['a'] })

  test('count without a key file', () => {
    expect(known([configured]).find(configured.hash)).toEqual(configured)
  })

  test('replace a key of the same name in the key file, with a warning', async () => {
    const ci = keyOf('ci')
    await add(ci)
    const keys = known([configured])
    expect(keys.find(ci.hash)).toBeUndefined()
    expect(keys.find(configured.hash)).toEqual(configured)
    expect(log.lines).toEqual([
      expect.objectContaining({ level: 'warn', facts: expect.objectContaining({ key: 'ci' }) }),
    ])
  })

  test('two of one name are not both the same principal: the first one counts', () => {
    const { created: _, ...second } = keyOf('ci', { admin: true })
    const keys = known([configured, second])
    expect(keys.find(second.hash)).toBeUndefined()
    expect(log.lines).toHaveLength(1)
  })
})
