import { hash } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { until } from '../../../tests/fixtures/until.ts'
import { events } from '../door.fixture.ts'
import { openModernDoor } from '../eras/modern.fixture.ts'
import { createAuthenticate } from './index.ts'
import type { ApiKey } from './keys.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})

const headers = { authorization: 'Bearer twk_ci_1' }
const hashed = `sha256:${hash('sha256', 'twk_ci_1', 'hex')}`
const ci: ApiKey = { id: 'ci', agents: ['a'], admin: true }

/** A door with one key, which a test can change or take back. */
async function openDoor() {
  const kept = new Map([[hashed, ci]])
  const keys = { inUse: true, find: (wanted: string) => kept.get(wanted) }
  const door = open.use(
    await openModernDoor({
      authenticate: (clock) => createAuthenticate({ token: undefined, keys, clock }),
    }),
  )
  return {
    ...door,
    revoke: () => kept.delete(hashed),
    change: (to: Partial<ApiKey>) => kept.set(hashed, { ...ci, ...to }),
  }
}

/** Whether a stream has come to its end, in whatever way. */
function endOf(body: AsyncIterable<Buffer>): { readonly over: boolean } {
  const state = { over: false }
  const read = async () => {
    try {
      for await (const _ of events(body));
    } finally {
      state.over = true
    }
  }
  read().catch(() => {})
  return state
}

test('B6: the streams of a key that is revoked end, and its session is refused at once', async () => {
  const { session, post, clock, revoke } = await openDoor()
  const mine = await session({}, headers)
  const stream = endOf((await mine.stream()).body)
  const listening = endOf(
    (await post('subscriptions/listen', { notifications: { toolsListChanged: true } }, { headers })).body,
  )
  await clock.pass(60_000)
  expect([stream.over, listening.over]).toEqual([false, false])
  revoke()
  const { statusCode, body } = await mine.send({ id: 1, method: 'ping' })
  await body.dump()
  expect(statusCode).toBe(401)
  await clock.pass(5_000)
  await until(() => stream.over && listening.over, { what: 'both streams to end' })
})

test('B6: a key that comes to mean something else ends the session and the streams that it opened before', async () => {
  const { session, clock, change, access } = await openDoor()
  const mine = await session({}, headers)
  const stream = endOf((await mine.stream()).body)
  change({ admin: false })
  const { statusCode, body } = await mine.send({ id: 1, method: 'tools/call', params: { name: 'echo' } })
  await body.dump()
  expect(statusCode).toBe(404)
  await clock.pass(5_000)
  await until(() => stream.over, { what: 'the stream to end' })
  const again = await session({}, headers)
  await again.ask('tools/call', { name: 'echo' })
  expect(access.calls.map(({ caller }) => caller.admin)).toEqual([false])
})

test('B6: a call that was let in is not cut off when its key ends', async () => {
  const { session, clock, revoke, access } = await openDoor()
  const mine = await session({}, headers)
  const waiting = mine.send({ id: 1, method: 'tools/call', params: { name: 'wait' } })
  await until(() => access.calls.length === 1, { what: 'the call' })
  revoke()
  await clock.pass(60_000)
  access.release()
  expect(await (await waiting).body.text()).toContain('waited')
})

test('B6: nothing goes on being checked for a stream that is closed', async () => {
  const { session, clock } = await openDoor()
  const mine = await session({}, headers)
  const before = clock.pending
  const { body } = await mine.stream()
  await until(() => clock.pending > before, { what: 'the stream' })
  await clock.pass(30_000)
  body.on('error', () => {}).destroy()
  await until(() => clock.pending === before, { what: 'its timers to go' })
})
