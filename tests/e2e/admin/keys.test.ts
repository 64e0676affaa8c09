import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { asking, keyFor, originOf } from './people.ts'

const dev = keyFor('dev', ['dev'])

let gateway: LocalToolway
let ask: ReturnType<typeof asking>
beforeAll(async () => {
  gateway = await startToolway({
    history: {},
    mcpServers: { probe: stdioServers.probe() },
    agents: { dev: { allow: { servers: ['probe'] } }, ops: { allow: { servers: ['*'] } } },
    auth: { keys: [dev.configured] },
  })
  ask = asking(originOf(gateway), gateway.token)
})
afterAll(() => gateway[Symbol.asyncDispose]())

const statusOf = async (key: string) => (await asking(originOf(gateway), key)('session')).status
const keyNamed = async (name: string) => (await ask('keys')).json.keys.find(({ id }: { id: string }) => id === name)

describe('V9: an admin', () => {
  test('creates, uses, rotates and revokes a key at once, and none of its secrets is kept anywhere', async () => {
    const made = await ask('keys', { body: { id: 'bot', agents: ['dev'], expiresInMs: 3_600_000 } })
    expect(made).toMatchObject({ status: 200, json: { key: { id: 'bot', agents: ['dev'], admin: false } } })
    const { secret: first } = made.json
    expect(await statusOf(first)).toBe(200)
    const called = await asking(originOf(gateway), first)('tools/probe.echo/call', {
      body: { arguments: { message: 'hi' } },
    })
    expect(called.json.error).toBeNull()
    expect(await keyNamed('bot')).toMatchObject({ lastUsed: expect.any(Number), previous: null })

    const rotated = await ask('keys/bot/rotate', { body: { created: made.json.key.created } })
    const again = await ask('keys/bot/rotate', { body: { created: made.json.key.created } })
    expect(again).toMatchObject({ status: 409, json: { error: { code: 'CONFLICT' } } })
    const { secret: second, key } = rotated.json
    expect(key.previous.until - key.created).toBeLessThanOrEqual(3_600_000)
    expect(await statusOf(second)).toBe(200)
    expect(await statusOf(first)).toBe(200)

    expect((await ask('keys/bot/revoke', { method: 'POST' })).status).toBe(200)
    expect(await statusOf(second)).toBe(401)
    expect(await statusOf(first)).toBe(401)
    expect(await keyNamed('bot')).toBeUndefined()

    const audit = (await ask('audit?limit=100')).text
    for (const operation of ['create_key', 'rotate_key', 'revoke_key']) expect(audit).toContain(operation)
    const { stores } = gateway.gateway.loaded.config
    const kept = await readFile(join(stores.path, 'keys.json'), 'utf8')
    for (const secret of [first, second]) {
      const random = secret.slice('twk_bot_'.length)
      for (const text of [audit, kept, JSON.stringify(gateway.log.lines)]) expect(text).not.toContain(random)
    }
  })

  test('sees the keys of the configuration without hashes, and cannot change them there', async () => {
    expect(await keyNamed('dev')).toMatchObject({ source: 'configuration', agents: ['dev'], created: null })
    expect((await ask('keys')).text).not.toContain('sha256')
    for (const [action, body] of [
      ['rotate', {}],
      ['revoke', undefined],
    ] as const) {
      const { status, json } = await ask(`keys/dev/${action}`, { method: 'POST', ...(body && { body }) })
      expect([status, json.error.code]).toEqual([400, 'INVALID_ARGUMENTS'])
    }
    expect(await statusOf(dev.key)).toBe(200)
  })

  test('gets a clear error for a name that exists or is invalid, and for an unknown key', async () => {
    for (const id of ['dev', 'a b', '']) {
      expect([id, (await ask('keys', { body: { id } })).status]).toEqual([id, 400])
    }
    expect((await ask('keys/nobody/revoke', { method: 'POST' })).status).toBe(400)
  })
})

test('V9, B6: only admins see, create or change keys', async () => {
  const asDev = asking(originOf(gateway), dev.key)
  expect((await asDev('keys')).status).toBe(403)
  expect((await asDev('keys', { body: { id: 'mine', admin: true } })).status).toBe(403)
  expect((await asDev('keys/dev/rotate', { body: {} })).status).toBe(403)
  expect((await asDev('keys/dev/revoke', { method: 'POST' })).status).toBe(403)
})
