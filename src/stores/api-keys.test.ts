import { mkdtempDisposable, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createManualClock, type ManualClock } from '../../tests/fixtures/clock.ts'
import { createKeptLog } from '../../tests/fixtures/log.ts'
import { mountSmallDisk } from '../../tests/fixtures/small-disk.ts'
import { createAuthenticate } from '../serve/auth/authenticate.ts'
import { createApiKey, listApiKeys, revokeApiKey, rotateApiKey } from './api-keys.ts'
import { ApiKeyLookup } from './key-lookup.ts'
import { KeyUsage, readLastUses } from './key-usage.ts'

const hour = 3_600_000

let clock: ManualClock
let folder: string
let usage: KeyUsage
let open: AsyncDisposableStack
beforeEach(async () => {
  open = new AsyncDisposableStack()
  clock = createManualClock()
  folder = open.use(await mkdtempDisposable(join(tmpdir(), 'toolway-api-keys-'))).path
  usage = open.use(new KeyUsage({ folder, clock, log: createKeptLog() }))
})
afterEach(() => open.disposeAsync())

const configured = [{ id: 'ci', hash: `sha256:${'0'.repeat(64)}`, agents: ['a'], admin: false }]
const places = () => ({ configured, folder, now: clock.now() })
const list = () => listApiKeys(places(), usage.lastUses()).keys
const bot = () => list().find(({ id }) => id === 'bot')
const create = (lifetimeMs?: number) => createApiKey(places(), { id: 'bot', agents: ['a'], admin: false, lifetimeMs })

/** Whether a key is accepted, by a gateway that has noticed the latest change of the file. */
const accepts = (key: string): boolean => {
  const keys = new ApiKeyLookup({ configured, folder, usage, clock, log: createKeptLog() })
  try {
    createAuthenticate({ token: 'x', keys, clock })(`Bearer ${key}`)
    return true
  } catch {
    return false
  }
}

describe('V9: API keys', () => {
  test('are listed with their source and without hashes', async () => {
    await create(hour)
    expect(list()).toEqual([
      {
        ...{ id: 'ci', agents: ['a'], admin: false, created: null, expires: null, expired: false },
        ...{ lastUsed: null, source: 'configuration', previous: null },
      },
      {
        ...{ id: 'bot', agents: ['a'], admin: false, created: clock.now(), expires: clock.now() + hour },
        ...{ expired: false, lastUsed: null, source: 'file', previous: null },
      },
    ])
  })

  test('V15: rotated, a key for certain endpoints is still for them; other keys have no member that 0.2.0 refuses', async () => {
    await createApiKey(places(), { id: 'bot', agents: [], admin: false, endpoints: ['research'] })
    await rotateApiKey(places(), 'bot', hour)
    expect(bot()?.endpoints).toEqual(['research'])
    await createApiKey(places(), { id: 'other', agents: [], admin: false })
    const [, , { id, ...other }] = JSON.parse(await readFile(join(folder, 'keys.json'), 'utf8')).keys
    expect([id, Object.keys(other)]).toEqual(['other', ['hash', 'agents', 'admin', 'created']])
    const admin = createApiKey(places(), { id: 'boss', agents: [], admin: true, endpoints: ['research'] })
    await expect(admin).rejects.toThrow('cannot be an admin key')
  })

  test('a rotated key has two secrets for a time, then one', async () => {
    const { key: first } = await create()
    const { key: second, stored } = await rotateApiKey(places(), 'bot', hour)
    expect(stored).toMatchObject({ agents: ['a'], admin: false })
    expect([accepts(first), accepts(second)]).toEqual([true, true])
    expect(bot()?.previous).toEqual({ until: clock.now() + hour, lastUsed: clock.now() })
    clock.advance(hour)
    expect([accepts(first), accepts(second)]).toEqual([false, true])
    expect(bot()?.previous).toBeNull()
  })

  test('rotating again ends the oldest secret; keeping the old one for 0 ms ends it at once', async () => {
    const { key: first } = await create()
    const { key: second } = await rotateApiKey(places(), 'bot', hour)
    const { key: third } = await rotateApiKey(places(), 'bot', hour)
    expect([first, second, third].map(accepts)).toEqual([false, true, true])
    const { key: fourth } = await rotateApiKey(places(), 'bot', 0)
    expect([first, second, third, fourth].map(accepts)).toEqual([false, false, false, true])
  })

  test('V9: a rotation of a secret that is not the current one any more is refused and changes nothing', async () => {
    const { key: first } = await create()
    const created = clock.now()
    clock.advance(1)
    const { key: second } = await rotateApiKey(places(), 'bot', hour, created)
    const again = rotateApiKey(places(), 'bot', hour, created)
    await expect(again).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS', details: { auditReason: 'conflict' } })
    expect([first, second].map(accepts)).toEqual([true, true])
  })

  test('a key with an expiry gets its lifetime again, and its old secret none', async () => {
    const { key: first } = await create(hour)
    clock.advance(hour - 1_000)
    const { key: second } = await rotateApiKey(places(), 'bot', 2 * hour)
    expect(bot()).toMatchObject({ expires: clock.now() + hour, previous: { until: clock.now() + 1_000 } })
    clock.advance(1_000)
    expect([accepts(first), accepts(second)]).toEqual([false, true])
  })

  test('revoking a key ends all its secrets', async () => {
    const { key: first } = await create()
    const { key: second } = await rotateApiKey(places(), 'bot', hour)
    await revokeApiKey(places(), 'bot')
    expect([accepts(first), accepts(second)]).toEqual([false, false])
    expect(bot()).toBeUndefined()
  })

  test('V25: 0.1.0 can read the file of a rotated key, and a change that it makes is understood', async () => {
    const { key: first } = await create()
    await rotateApiKey(places(), 'bot', hour)
    const file = join(folder, 'keys.json')
    const content = JSON.parse(await readFile(file, 'utf8'))
    // 0.1.0 refuses a file with other members, and two keys with the same id.
    const members = new Set(['id', 'hash', 'agents', 'admin', 'created', 'expires'])
    const entries: readonly { readonly id: string }[] = content.keys
    expect(Object.keys(content)).toEqual(['version', 'keys'])
    expect(entries.flatMap(Object.keys).filter((name) => !members.has(name))).toEqual([])
    expect(entries.map(({ id }) => id)).toEqual(['bot', 'bot previous'])
    expect(entries[1]).toMatchObject({ agents: ['a'], expires: new Date(clock.now() + hour).toISOString() })

    // 0.1.0 revokes `bot` and creates another key with that name: the old secret must not belong to it.
    await writeFile(file, JSON.stringify({ ...content, keys: entries.slice(1) }))
    expect(accepts(first)).toBe(false)
    clock.advance(1)
    await create()
    expect([accepts(first), bot()?.previous]).toEqual([false, null])
    expect(await readFile(file, 'utf8')).not.toContain('previous')
  })

  test('names that exist, keys in the configuration and unknown keys are refused', async () => {
    await create()
    const refused = { code: 'INVALID_ARGUMENTS' }
    await expect(create()).rejects.toMatchObject(refused)
    for (const id of ['ci', 'nobody', '../x']) {
      await expect(rotateApiKey(places(), id, 0)).rejects.toMatchObject(refused)
      await expect(revokeApiKey(places(), id)).rejects.toMatchObject(refused)
    }
    await expect(createApiKey(places(), { id: 'ci', agents: [], admin: false })).rejects.toMatchObject(refused)
    await expect(createApiKey(places(), { id: 'a b', agents: [], admin: false })).rejects.toMatchObject(refused)
  })
})

test('V9: a key that cannot be stored is refused with the reason', async () => {
  const blocked = join(folder, 'file')
  await writeFile(blocked, '')
  const where = { ...places(), folder: join(blocked, 'state') }
  await expect(createApiKey(where, { id: 'bot', agents: [], admin: false })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENTS',
    message: expect.stringContaining('keys.json cannot be written (ENOTDIR)'),
  })
})

test('V9: a key that does not fit on the disk is refused with that reason', async ({ skip }) => {
  const mounted = await mountSmallDisk('64k')
  if (typeof mounted === 'string') return skip(mounted)
  await using disk = mounted
  disk.fill()
  const where = { ...places(), folder: disk.path }
  await expect(createApiKey(where, { id: 'bot', agents: [], admin: false })).rejects.toMatchObject({
    message: expect.stringMatching(/\(ENOSPC\); the disk is full: .*stores\.path/),
  })
})

describe('V9: the last use of a key', () => {
  test('is known at once in this process, and written at most once a minute', async () => {
    const { key } = await create()
    clock.advance(5)
    expect(accepts(key)).toBe(true)
    const used = clock.now()
    expect(bot()?.lastUsed).toBe(used)
    expect(readLastUses(folder).get('bot')).toBeUndefined()
    clock.advance(59_999)
    expect(await readdir(folder)).not.toContain('key-usage.json')
    clock.advance(1)
    await expect.poll(() => readLastUses(folder).get('bot')).toBe(used)
  })

  test('is the latest of all processes, survives the end of one and is not that of a refused request', async () => {
    const { key } = await create()
    clock.advance(5)
    accepts(key)
    accepts(`${key}x`)
    const used = clock.now()
    await usage[Symbol.asyncDispose]()
    expect(JSON.parse(await readFile(join(folder, 'key-usage.json'), 'utf8'))).toEqual({ bot: used })
    await using other = new KeyUsage({ folder, clock, log: createKeptLog() })
    clock.advance(5)
    other.note('other')
    await other[Symbol.asyncDispose]()
    expect([readLastUses(folder).get('bot'), readLastUses(folder).get('other')]).toEqual([used, used + 5])
  })

  test('is recorded separately for the old and the new secret', async () => {
    const { key: first } = await create()
    clock.advance(5)
    accepts(first)
    const { key: second } = await rotateApiKey(places(), 'bot', hour)
    expect(bot()).toMatchObject({ lastUsed: null, previous: { lastUsed: clock.now() } })
    clock.advance(5)
    accepts(first)
    clock.advance(5)
    accepts(second)
    expect(bot()).toMatchObject({ lastUsed: clock.now(), previous: { lastUsed: clock.now() - 5 } })
  })

  test('a damaged file counts as empty', async () => {
    await writeFile(join(folder, 'key-usage.json'), '{"bot":"x",')
    expect(readLastUses(folder).get('bot')).toBeUndefined()
  })
})
