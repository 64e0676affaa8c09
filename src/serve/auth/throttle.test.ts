import { afterEach, describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import type { ReceivedRequest } from '../http/request.ts'
import { initializeWith, token } from '../http/server.fixture.ts'
import { openChatServer } from '../openai/openai.fixture.ts'
import { cannotVerify, expiredCredential, invalidCredential } from './challenge.ts'
import type { AuthIdentity } from './identity.ts'
import { admitWith } from './throttle.fixture.ts'
import { createAdmit } from './throttle.ts'

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})

const anna: AuthIdentity = { principal: 'anna', authenticated: true, admin: false, agents: [] }
const from = (address: string) =>
  ({ method: 'GET', url: '/', headers: {}, socket: { remoteAddress: address } }) as ReceivedRequest
const here = from('192.0.2.1')

/** The status of what it is refused with, or whom it lets in. */
const outcome = async (run: () => AuthIdentity | Promise<AuthIdentity>): Promise<unknown> => {
  try {
    return (await run()).principal
  } catch (thrown) {
    return (thrown as { status: number }).status
  }
}

describe('B6: a client that guesses', () => {
  test('ten wrong credentials at once, then one a second, at the MCP and the OpenAI endpoint together', async () => {
    const { raw, clock, access } = stack.use(await openChatServer())
    const guess = async (count: number) => {
      const headers = { authorization: `Bearer guess-${count}` }
      const path = count % 2 === 0 ? '/mcp' : '/v1/chat/completions'
      return raw({ path, headers, body: initializeWith() })
    }
    const statuses: number[] = []
    for (let count = 0; count < 40; count++) statuses.push((await guess(count)).status)
    expect(statuses.slice(0, 10)).toEqual(Array(10).fill(401))
    expect(statuses.slice(10)).toEqual(Array(30).fill(429))
    const { headers, json } = await guess(40)
    expect([headers['retry-after'], json?.error?.data?.code]).toEqual(['1', 'RATE_LIMITED'])
    expect((await raw({ body: initializeWith(), headers: { authorization: `Bearer ${token}` } })).status).toBe(200)
    // Nothing was guessed by who shows nothing.
    expect((await raw({ body: initializeWith(), headers: { authorization: undefined } })).status).toBe(401)
    clock.advance(1_000)
    expect([(await guess(41)).status, (await guess(42)).status]).toEqual([401, 429])
    expect(access.turned.filter(({ code }) => code === 'RATE_LIMITED')).toHaveLength(32)
  })

  test('another address is not concerned, and 0 turns the limit off', async () => {
    const clock = createManualClock()
    const authenticate = () => {
      throw invalidCredential('no')
    }
    const admit = admitWith(authenticate, clock)
    for (let count = 0; count < 10; count++) await outcome(() => admit('x', here))
    expect(await outcome(() => admit('x', here))).toBe(429)
    expect(await outcome(() => admit('x', from('192.0.2.2')))).toBe(401)
    const settings = () => ({ maxFailures: 0, failureInterval: 1_000 })
    const open = createAdmit({ authenticate, settings, addressOf: () => '192.0.2.1', clock })
    for (let count = 0; count < 100; count++) expect(await outcome(() => open('x', here))).toBe(401)
  })

  test('an expired credential gets a 401 each time and does not count as a guess', async () => {
    const admit = admitWith(() => {
      throw expiredCredential('expired')
    }, createManualClock())
    for (let count = 0; count < 100; count++) expect(await outcome(() => admit('x', here))).toBe(401)
  })

  test('signatures that are wrong are checked at a bounded rate; those that are right, or cannot be checked, count nothing', async () => {
    const clock = createManualClock()
    let checked = 0
    const admit = admitWith(async (given, beforeSignature) => {
      beforeSignature?.()
      checked++
      if (given === 'right') return anna
      throw given === 'wrong' ? invalidCredential('no') : cannotVerify(1_000)
    }, clock)
    const all = (given: string, count: number) =>
      Promise.all(Array.from({ length: count }, () => outcome(() => admit(given, here))))
    for (let round = 0; round < 10; round++) expect(new Set(await all('right', 20))).toEqual(new Set(['anna']))
    for (let round = 0; round < 10; round++) expect(new Set(await all('later', 20))).toEqual(new Set([503]))
    checked = 0
    await all('wrong', 2_000)
    expect(checked).toBe(50)
    expect(await outcome(() => admit('right', here))).toBe(429)
    clock.advance(100)
    expect(await outcome(() => admit('right', here))).toBe('anna')
  })
})
