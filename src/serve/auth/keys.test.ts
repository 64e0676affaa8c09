import { hash } from 'node:crypto'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createManualClock, type ManualClock } from '../../../tests/fixtures/clock.ts'
import { createKeptLog, type KeptLog } from '../../../tests/fixtures/log.ts'
import { changeKeyFile, newApiKey } from '../../stores/key-file.ts'
import { ApiKeyLookup } from '../../stores/key-lookup.ts'
import { HttpError } from '../errors.ts'
import { createAuthenticate } from './authenticate.ts'
import { hasSameRights } from './identity.ts'

let clock: ManualClock
let log: KeptLog
let folder: string
let open: AsyncDisposableStack

beforeEach(async () => {
  open = new AsyncDisposableStack()
  clock = createManualClock()
  log = createKeptLog()
  folder = open.use(await mkdtempDisposable(join(tmpdir(), 'toolway-keys-'))).path
})
afterEach(() => open.disposeAsync())

type Configured = ConstructorParameters<typeof ApiKeyLookup>[0]['configured']

/** The same keys as a gateway has them; a status instead of an identity where the credential is refused. */
const authenticatorWith = (configured: Configured = [], token?: string) => {
  const keys = new ApiKeyLookup({ configured, folder, clock, log })
  const authenticate = createAuthenticate({ token, keys, clock })
  return (authorization: string | undefined) => {
    try {
      return authenticate(authorization)
    } catch (error) {
      if (error instanceof HttpError) return error.status
      throw error
    }
  }
}

async function stored(id: string, more: { agents?: string[]; admin?: boolean; expires?: number } = {}) {
  const { key, hash } = newApiKey(id)
  const { agents = [], admin = false, expires } = more
  const date = (ms: number) => new Date(ms).toISOString()
  await changeKeyFile(folder, (keys) => [
    ...keys,
    { id, hash, agents, admin, created: date(clock.now()), ...(expires && { expires: date(expires) }) },
  ])
  return `Bearer ${key}`
}

const revoke = (id: string) => changeKeyFile(folder, (keys) => keys.filter((key) => key.id !== id))

describe('B6, G7: API keys', () => {
  test('of the configuration and of the key file are each their own principal', async () => {
    const ci = newApiKey('ci')
    const bot = await stored('bot', { agents: ['reader', 'writer'], admin: true })
    const enter = authenticatorWith([{ id: 'ci', hash: ci.hash, agents: [], admin: false }])
    expect(enter(`Bearer ${ci.key}`)).toEqual({ principal: 'key:ci', authenticated: true, admin: false, agents: [] })
    expect(enter(bot)).toEqual({
      ...{ principal: 'key:bot', authenticated: true, admin: true },
      agents: ['reader', 'writer'],
    })
  })

  test.each(['sk-abc123', 'a.b.c', '9f1c0d6e-2b7a-4f0e-8a44-6d1f0f4c2b11', 'Zm9v+YmFy/==', 'twk_mine'])(
    'an API key of any form is found by its hash in the configuration: %s',
    (key) => {
      const ci = { id: 'ci', hash: `sha256:${hash('sha256', key)}`, agents: ['a'], admin: false }
      const enter = authenticatorWith([ci], 'tw_token')
      expect(enter(`Bearer ${key}`)).toEqual({ principal: 'key:ci', authenticated: true, admin: false, agents: ['a'] })
      expect(enter(`Bearer ${key}x`)).toBe(401)
      expect(enter('Bearer tw_token')).toMatchObject({ principal: 'token' })
    },
  )

  test('may act as every agent with *', async () => {
    const all = await stored('all', { agents: ['*'] })
    expect(authenticatorWith()(all)).toMatchObject({ agents: '*' })
  })

  test('that were made or revoked while the gateway runs count within a second', async () => {
    const enter = authenticatorWith()
    const bot = await stored('bot')
    clock.advance(1_000)
    expect(enter(bot)).toMatchObject({ principal: 'key:bot' })
    await revoke('bot')
    clock.advance(1_000)
    expect(enter(bot)).toBe(401)
  })

  test('end when they expire', async () => {
    const bot = await stored('bot', { expires: clock.now() + 60_000 })
    const enter = authenticatorWith()
    clock.advance(59_999)
    expect(enter(bot)).toMatchObject({ principal: 'key:bot' })
    clock.advance(1)
    expect(enter(bot)).toBe(401)
  })

  test('that are almost right are refused', async () => {
    const bot = await stored('bot')
    const enter = authenticatorWith()
    const [, key = ''] = bot.split(' ')
    const { hash } = newApiKey('bot')
    for (const wrong of [
      key.slice(0, -1),
      `${key}A`,
      key.toUpperCase(),
      key.replace('twk_', 'tw_'),
      key.replace('twk_', ''),
      key.replace('_bot_', '_admin_'),
      'twk_',
      hash,
      `twk_${hash}`,
    ]) {
      expect(enter(`Bearer ${wrong}`), wrong).toBe(401)
    }
    for (const header of [`Basic ${key}`, key, `Bearer ${key} ${key}`, `Bearer ${key},${key}`, `Token ${key}`]) {
      expect(enter(header), header).toBe(401)
    }
    expect(enter(bot)).toMatchObject({ principal: 'key:bot' })
  })

  test('G7: once there are some, a caller without one may not choose an agent', () => {
    const { hash } = newApiKey('bot')
    expect(authenticatorWith([], undefined)(undefined)).toMatchObject({ principal: 'anonymous', agents: '*' })
    const configured = [{ id: 'bot', hash, agents: ['a'], admin: false }]
    expect(authenticatorWith(configured, undefined)(undefined)).toMatchObject({ principal: 'anonymous', agents: [] })
  })

  test('G7: a key file that cannot be trusted does not let anonymous callers choose an agent', async () => {
    await writeFile(join(folder, 'keys.json'), 'garbage', { mode: 0o600 })
    expect(authenticatorWith([], undefined)(undefined)).toMatchObject({ principal: 'anonymous', agents: [] })
  })

  test('that are wrong become neither anonymous nor the operator', async () => {
    const { key } = newApiKey('nobody')
    expect(authenticatorWith([], undefined)(`Bearer ${key}`)).toBe(401)
    expect(authenticatorWith([], undefined)(undefined)).toMatchObject({ principal: 'anonymous' })
    expect(authenticatorWith([], 'tw_token')(`Bearer ${key}`)).toBe(401)
    expect(authenticatorWith([], 'tw_token')('Bearer tw_token')).toMatchObject({ principal: 'token', admin: true })
  })

  test('a token of the same form as a key or a JSON Web Token is still the token', () => {
    for (const token of ['twk_mine', 'a.b.c']) {
      expect(authenticatorWith([], token)(`Bearer ${token}`)).toMatchObject({ principal: 'token' })
      expect(authenticatorWith([], token)(`Bearer ${token}x`)).toBe(401)
    }
  })

  test('of the file stop working when it is damaged; the token and those of the configuration still work', async () => {
    const ci = newApiKey('ci')
    const bot = await stored('bot')
    const enter = authenticatorWith([{ id: 'ci', hash: ci.hash, agents: [], admin: false }], 'tw_token')
    expect(enter(bot)).toMatchObject({ principal: 'key:bot' })
    await writeFile(join(folder, 'keys.json'), '{"version":1,"keys":[')
    clock.advance(1_000)
    expect(enter(bot)).toBe(401)
    expect(enter(`Bearer ${ci.key}`)).toMatchObject({ principal: 'key:ci' })
    expect(enter('Bearer tw_token')).toMatchObject({ principal: 'token' })
    expect(log.lines).toEqual([expect.objectContaining({ level: 'error', message: expect.stringMatching(/damaged/) })])
  })

  test('are never in the log nor in an answer', async () => {
    const [, key = ''] = (await stored('bot')).split(' ')
    const authenticate = createAuthenticate({
      token: 'tw_x',
      keys: new ApiKeyLookup({ configured: [], folder, clock, log }),
      clock,
    })
    const wrong = `${key.slice(0, -2)}xx`
    expect(() => authenticate(`Bearer ${wrong}`)).toThrow(HttpError)
    try {
      authenticate(`Bearer ${wrong}`)
    } catch (error) {
      expect((error as Error).message + JSON.stringify(log.lines)).not.toContain(key.slice(8, 30))
    }
  })
})

test('V15: a stream ends when the endpoints of its key change', () => {
  const holder = { principal: 'key:a', authenticated: true, admin: false, agents: ['a'], endpoints: ['research'] }
  expect(hasSameRights(holder, { ...holder })).toBe(true)
  expect(hasSameRights(holder, { ...holder, endpoints: ['files'] })).toBe(false)
  expect(hasSameRights(holder, { ...holder, endpoints: undefined })).toBe(false)
})
