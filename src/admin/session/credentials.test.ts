import { afterEach, describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import type { LoginStore, StoredLogin } from '../../core/history.ts'
import { dev, json, openTestAdmin, operator, people } from '../admin.fixture.ts'
import { createLogins, loginMs } from './credentials.ts'

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})
const open = async (settings?: Parameters<typeof openTestAdmin>[0]) => stack.use(await openTestAdmin(settings))

const ours = { 'toolway-admin': '1' }

describe('B6: a browser that logs in', () => {
  test('gets a cookie that scripts cannot read and other sites cannot send, and not the credential', async () => {
    const { logIn, raw, port } = await open()
    const { status, json, cookie, browser, text } = await logIn()
    expect([status, json.admin]).toEqual([200, true])
    expect(cookie).toMatch(
      new RegExp(`^toolway_admin_${port}=[\\w-]{43}; Path=/admin/api; Max-Age=43200; HttpOnly; SameSite=Strict$`),
    )
    expect(text + cookie).not.toContain('operator')
    expect((await raw('/admin/api/config', { headers: browser })).status).toBe(200)
  })

  test('behind a proxy with TLS gets a Secure cookie', async () => {
    const { raw } = await open({ config: { allowedOrigins: ['https://toolway.example.com'] } })
    const headers = { ...json, origin: 'https://toolway.example.com' }
    const answer = await raw('/admin/api/session', { method: 'POST', headers, body: '{"token":"operator"}' })
    expect(answer.headers['set-cookie']?.[0]).toContain('; Secure')
  })

  test('CSRF: with a cookie nothing but GET works without the header, and nothing from another page', async () => {
    const { logIn, raw, asked } = await open()
    const { browser } = await logIn()
    for (const [method, path] of [
      ['POST', 'servers/files/restart'],
      ['POST', 'config/reload'],
      ['POST', 'tools/files__read/call'],
      ['DELETE', 'session'],
    ] as const) {
      for (const more of [{}, { 'toolway-admin': '0' }, { ...ours, 'sec-fetch-site': 'same-site' }] as readonly Record<
        string,
        string
      >[]) {
        const headers = { ...browser, ...json, ...more }
        const { status } = await raw(`/admin/api/${path}`, { method, headers, body: '{}' })
        expect([path, more, status]).toEqual([path, more, 403])
      }
    }
    expect((await raw('/admin/api/config', { headers: { ...browser, 'sec-fetch-site': 'cross-site' } })).status).toBe(
      403,
    )
    expect(asked).toEqual([])
    const headers = { ...browser, ...ours, 'sec-fetch-site': 'same-origin' }
    expect((await raw('/admin/api/servers/files/restart', { method: 'POST', headers })).status).toBe(200)
    expect((await raw('/admin/api/config', { headers: { ...browser, 'sec-fetch-site': 'same-origin' } })).status).toBe(
      200,
    )
  })

  test('CSRF: a form of another page cannot log in', async () => {
    const { raw } = await open()
    const body = '{"token":"operator"}'
    for (const headers of [{ 'content-type': 'text/plain' }, { ...json, origin: 'https://evil.example.com' }]) {
      const answer = await raw('/admin/api/session', { method: 'POST', headers, body })
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
  })

  test('is logged out by DELETE session, which also removes the cookie', async () => {
    const { logIn, raw } = await open()
    const { browser } = await logIn()
    const other = await logIn()
    const ended = await raw('/admin/api/session', { method: 'DELETE', headers: { ...browser, ...ours } })
    expect(ended.status).toBe(204)
    expect(ended.headers['set-cookie']?.[0]).toContain('Max-Age=0')
    expect((await raw('/admin/api/config', { headers: browser })).status).toBe(401)
    expect((await raw('/admin/api/config', { headers: other.browser })).status).toBe(200)
    expect((await raw('/admin/api/session', { method: 'DELETE' })).status).toBe(204)
  })

  test('is logged out when the login expires', async () => {
    const { logIn, raw, clock } = await open()
    const { browser } = await logIn()
    clock.advance(loginMs - 1)
    expect((await raw('/admin/api/config', { headers: browser })).status).toBe(200)
    clock.advance(1)
    expect((await raw('/admin/api/config', { headers: browser })).status).toBe(401)
  })

  test('has the current rights of its credential: a revoked key or changed rights end it', async () => {
    let identity: typeof operator | undefined = operator
    const known = people()
    const { logIn, raw } = await open({
      authenticate: (given) => (identity && given ? identity : known(undefined)),
    })
    const first = await logIn()
    identity = { ...operator, admin: false }
    expect((await raw('/admin/api/overview', { headers: first.browser })).status).toBe(401)
    identity = operator
    expect((await raw('/admin/api/overview', { headers: first.browser })).status).toBe(401)
    const second = await logIn()
    identity = undefined
    expect((await raw('/admin/api/overview', { headers: second.browser })).status).toBe(401)
    identity = operator
    expect((await raw('/admin/api/overview', { headers: second.browser })).status).toBe(401)
  })

  test('is identified by the Authorization header if it sends both', async () => {
    const { logIn, raw } = await open()
    const { browser } = await logIn()
    const headers = { ...browser, authorization: 'Bearer dev' }
    expect((await raw('/admin/api/session', { headers })).json.principal).toBe('key:dev')
    expect((await raw('/admin/api/session', { headers: { ...browser, authorization: 'Bearer x' } })).status).toBe(401)
  })

  test('is refused with the cookie of another gateway or an invented one', async () => {
    const { raw, port } = await open()
    for (const cookie of [
      `toolway_admin_${port}=made-up`,
      `toolway_admin_${port}=`,
      'toolway_admin_1=x',
      '=;;=',
      'x'.repeat(8_000),
    ]) {
      expect((await raw('/admin/api/config', { headers: { cookie } })).status).toBe(401)
    }
  })
})

describe('B6: a client that guesses', () => {
  const tries = async ({ raw }: Awaited<ReturnType<typeof open>>, token: string) =>
    raw('/admin/api/session', { method: 'POST', headers: json, body: JSON.stringify({ token }) })

  test('failed logins: ten get 401, the others 429; a correct one succeeds', async () => {
    let address = '192.0.2.1'
    const fixture = await open({ address: () => address })
    const statuses: number[] = []
    for (let count = 0; count < 30; count++) statuses.push((await tries(fixture, `guess-${count}`)).status)
    expect(statuses.slice(0, 10).every((status) => status === 401)).toBe(true)
    expect(statuses.slice(10).every((status) => status === 429)).toBe(true)
    const wrong = await tries(fixture, 'another-guess')
    expect(wrong.headers['retry-after']).toBe('1')
    expect(wrong.json.error).toMatchObject({ code: 'RATE_LIMITED', message: expect.stringContaining('1 s') })
    expect((await tries(fixture, 'operator')).status).toBe(200)
    address = '192.0.2.2'
    expect((await tries(fixture, 'another-guess')).status).toBe(401)
    address = '192.0.2.1'
    fixture.clock.advance(1_000)
    expect([(await tries(fixture, 'a')).status, (await tries(fixture, 'b')).status]).toEqual([401, 429])
    expect(fixture.access.turned).toHaveLength(34)
  })

  test('with a header gets 429, too, but a correct one succeeds: scripts of others share its address', async () => {
    const fixture = await open()
    for (let count = 0; count < 10; count++) expect((await fixture.api('overview', { token: 'x' })).status).toBe(401)
    expect((await fixture.api('overview', { token: 'x' })).status).toBe(429)
    expect((await fixture.api('overview')).status).toBe(200)
  })
})

const all = <T>(length: number, make: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length }, (_, index) => make(index)))

test('logins are bounded, and a principal that logs in repeatedly ends only its own', async () => {
  const logins = createLogins(createManualClock())
  const first = await logins.open('Bearer operator', operator)
  const own = await all(100, () => logins.open('Bearer dev', dev))
  expect(logins.known(first.id)).toBe(first)
  expect(own.filter(({ id }) => logins.known(id))).toEqual(own.slice(-16))
  const others = await all(1_200, (n) => logins.open('Bearer x', { ...dev, principal: `jwt:${n}` }))
  expect(others.filter(({ id }) => logins.known(id))).toHaveLength(1_000)
})

describe('V12: a login after a restart', () => {
  /** What a store keeps, and processes that use it one after another. */
  const kept = () => {
    const stored = new Map<string, StoredLogin>()
    const store: LoginStore = {
      add: async (login) => stored.set(login.digest, login).size > 0,
      find: async (digest) => stored.get(digest) ?? null,
      remove: async (digest) => void stored.delete(digest),
    }
    const clock = createManualClock()
    return { stored, clock, start: () => createLogins(clock, store) }
  }

  test('is restored with its credential and rights, and expires at the same time as before', async () => {
    const { clock, start } = kept()
    const { id } = await start().open('Bearer dev', { ...dev, stepUp: () => 'x' })
    clock.advance(loginMs - 1_000)
    const restarted = start()
    expect(restarted.known(id)).toBeUndefined()
    const [found, again] = await Promise.all([restarted.find(id), restarted.find(id)])
    expect(found).toMatchObject({ authorization: 'Bearer dev', identity: dev })
    expect(again).toBe(found)
    clock.advance(1_000)
    expect([restarted.known(id), await start().find(id)]).toEqual([undefined, undefined])
  })

  test('is over if it was ended before, and one with another id is unknown', async () => {
    const { start } = kept()
    const before = start()
    const login = await before.open('Bearer operator', operator)
    const other = await before.open('Bearer dev', dev)
    await before.end(login)
    expect(await start().find(login.id)).toBeUndefined()
    expect((await start().find(other.id))?.identity).toEqual(dev)
    for (const id of ['', 'x', '../x', 'x'.repeat(43)]) expect(await start().find(id)).toBeUndefined()
  })

  test('is over in every process that knows it within five seconds after one of them ended it', async () => {
    const { clock, start } = kept()
    const [one, another] = [start(), start()]
    const login = await one.open('Bearer dev', dev)
    expect(await another.find(login.id)).toBeDefined()
    await one.end(login)
    clock.advance(5_000)
    expect(await another.find(login.id)).toBeUndefined()
  })

  test('continues in its process while the store is unavailable, and if it was never stored', async () => {
    const clock = createManualClock()
    const answer: { found: StoredLogin | null | undefined; added: boolean } = { found: undefined, added: true }
    const store: LoginStore = { add: async () => answer.added, find: async () => answer.found, remove: async () => {} }
    const logins = createLogins(clock, store)
    const login = await logins.open('Bearer dev', dev)
    clock.advance(60_000)
    expect(await logins.find(login.id)).toBe(login)
    answer.added = false
    answer.found = null
    const own = await logins.open('Bearer dev', dev)
    clock.advance(60_000)
    expect([await logins.find(login.id), await logins.find(own.id)]).toEqual([undefined, own])
  })

  test('the stored record reveals neither the id nor the credential, and cannot be used for another login', async () => {
    const { stored, start } = kept()
    const login = await start().open('Bearer operator', operator)
    const other = await start().open('Bearer dev', dev)
    const text = JSON.stringify([...stored])
    for (const secret of [login.id, 'operator', 'Bearer', '"token"']) expect(text).not.toContain(secret)
    const [one, another] = [...stored.values()] as [StoredLogin, StoredLogin]
    stored.set(another.digest, { ...another, sealed: one.sealed })
    expect(await start().find(other.id)).toBeUndefined()
  })

  test('is over once its credential is: the store forgets it too', async () => {
    const { stored } = kept()
    const store: LoginStore = {
      add: async (login) => stored.set(login.digest, login).size > 0,
      find: async (digest) => stored.get(digest) ?? null,
      remove: async (digest) => void stored.delete(digest),
    }
    let valid = true
    const known = people()
    const { logIn, raw } = await open({ logins: store, authenticate: (given) => known(valid ? given : undefined) })
    const { browser } = await logIn()
    expect(stored.size).toBe(1)
    valid = false
    expect((await raw('/admin/api/overview', { headers: browser })).status).toBe(401)
    expect(stored.size).toBe(0)
  })
})
