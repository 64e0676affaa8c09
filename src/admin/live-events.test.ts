import { once } from 'node:events'
import { connect } from 'node:net'
import { request } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { settledBuffers } from '../../tests/fixtures/memory.ts'
import { until } from '../../tests/fixtures/until.ts'
import { openTestAdmin, people } from './admin.fixture.ts'
import type { CallView } from './contract.ts'
import { approval, call, inbox, overview, reloaded, server } from './views.fixture.ts'

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})
type TestAdmin = Awaited<ReturnType<typeof openTestAdmin>>
const open = async (settings?: Parameters<typeof openTestAdmin>[0]): Promise<TestAdmin> =>
  stack.use(await openTestAdmin(settings))

interface Told {
  readonly event: string
  readonly data: unknown
}

/** Follows the stream; `told` is all that has come so far. */
async function follow({ origin }: TestAdmin, headers: Record<string, string> = { authorization: 'Bearer operator' }) {
  const { statusCode, body, headers: got } = await request(`${origin}/admin/api/events`, { headers })
  const told: Told[] = []
  let text = ''
  let over = false
  body.on('error', () => {
    over = true
  })
  body.on('data', (chunk) => {
    text += chunk
    const blocks = text.split('\n\n')
    text = blocks.pop() as string
    for (const block of blocks) {
      const [, event = 'comment'] = /^event: (.*)$/m.exec(block) ?? []
      const [, data = 'null'] = /^data: (.*)$/m.exec(block) ?? []
      told.push({ event, data: JSON.parse(data) })
    }
  })
  body.on('end', () => {
    over = true
  })
  stack.defer(() => void body.destroy())
  const kinds = () => told.map(({ event }) => event)
  const heard = (event: string, count = 1) =>
    until(() => kinds().filter((kind) => kind === event).length >= count, { what: `${count} ${event}` })
  const last = (event: string) => told.findLast((one) => one.event === event)?.data
  return { statusCode, headers: got, told, kinds, heard, last, body, over: () => over }
}

/** Moves time in the steps that the stream goes by. */
const pass = async ({ clock }: TestAdmin, ms: number) => {
  for (let passed = 0; passed < ms; passed += 250) await clock.pass(250)
}

describe('G10: the stream of events', () => {
  test('begins with the whole state, so that nothing has to be fetched', async () => {
    const fixture = await open()
    const { told, heard, headers } = await follow(fixture)
    await heard('inbox')
    expect(headers['content-type']).toBe('text/event-stream')
    expect(told).toEqual([
      { event: 'overview', data: overview },
      { event: 'servers', data: [server] },
      { event: 'calls', data: [call({ id: 'a' }), call({ id: 'b', agent: 'dev' })] },
      { event: 'approvals', data: [] },
      { event: 'reload', data: reloaded },
      { event: 'inbox', data: inbox },
    ])
  })

  test('V8: sends all approvals whenever they have changed', async () => {
    const fixture = await open()
    const { heard, kinds, last } = await follow(fixture)
    await heard('reload')
    await pass(fixture, 1_000)
    fixture.tellApprovals([approval])
    await pass(fixture, 250)
    await heard('approvals', 2)
    expect(last('approvals')).toEqual([approval])
    await pass(fixture, 1_000)
    await heard('overview', 3)
    expect(kinds().filter((kind) => kind === 'approvals')).toHaveLength(2)
  })

  test('V7: sends the inbox to admins at once when it changes', async () => {
    const fixture = await open({ authenticate: people() })
    const admin = await follow(fixture)
    const guest = await follow(fixture, { authorization: 'Bearer dev' })
    await admin.heard('inbox')
    fixture.tellInbox({ items: [], dismissed: 1, left: 0 })
    await admin.heard('inbox', 2)
    expect(admin.last('inbox')).toEqual({ items: [], dismissed: 1, left: 0 })
    await pass(fixture, 1_000)
    await guest.heard('overview', 2)
    expect(guest.kinds()).not.toContain('inbox')
  })

  test('sends the overview once a second, and the servers only when they have changed', async () => {
    const fixture = await open()
    const { heard, kinds, last } = await follow(fixture)
    await heard('reload')
    await pass(fixture, 3_000)
    await heard('overview', 4)
    expect(kinds().filter((kind) => kind === 'servers')).toHaveLength(1)
    fixture.admin.servers = () => [{ ...server, health: 'unhealthy' }]
    await pass(fixture, 1_000)
    await heard('servers', 2)
    expect(last('servers')).toMatchObject([{ health: 'unhealthy' }])
  })

  test('gathers calls: each once, as it is now, newest last, and under load only the newest', async () => {
    const fixture = await open()
    const { heard, last } = await follow(fixture)
    await heard('reload')
    fixture.tellCalls([call({ id: 'x', outcome: 'running', ms: null }), call({ id: 'y' })])
    fixture.tellCalls([call({ id: 'x' })])
    await pass(fixture, 250)
    await heard('calls', 2)
    expect(last('calls')).toEqual([call({ id: 'y' }), call({ id: 'x' })])
    fixture.tellCalls(Array.from({ length: 10_000 }, (_, n) => call({ id: `n${n}` })))
    await pass(fixture, 250)
    await heard('calls', 3)
    const ids = (last('calls') as CallView[]).map(({ id }) => id)
    expect([ids.length, ids.at(-1)]).toEqual([2_000, 'n9999'])
  })

  test('B6: sends callers without admin rights the calls of their agent only, and no reload', async () => {
    const fixture = await open()
    const { heard, told, last } = await follow(fixture, { authorization: 'Bearer dev', 'toolway-agent': 'dev' })
    await heard('calls')
    expect(last('calls')).toEqual([call({ id: 'b', agent: 'dev' })])
    fixture.tellCalls([call({ id: 'x' }), call({ id: 'y', agent: 'dev' })])
    fixture.tellReload(reloaded)
    await pass(fixture, 1_000)
    await heard('overview', 2)
    expect(last('calls')).toEqual([call({ id: 'y', agent: 'dev' })])
    expect(told.map(({ event }) => event)).not.toContain('reload')
  })

  test('watches nothing without readers', async () => {
    const fixture = await open()
    expect([fixture.watched(), fixture.clock.pending]).toEqual([false, 0])
    const first = await follow(fixture)
    const second = await follow(fixture)
    expect(fixture.watched()).toBe(true)
    first.body.destroy()
    second.body.destroy()
    await until(() => !fixture.watched(), { what: 'the end of watching' })
    expect(fixture.clock.pending).toBe(0)
  })

  test('survives an overview that cannot be made', async () => {
    const fixture = await open()
    const { heard, last } = await follow(fixture)
    await heard('reload')
    const { overview: well } = fixture.admin
    fixture.admin.overview = () => {
      throw new Error('broken')
    }
    await pass(fixture, 1_000)
    fixture.admin.overview = well
    await pass(fixture, 1_000)
    await heard('overview', 2)
    expect(last('overview')).toEqual(overview)
    expect(fixture.log.lines).toHaveLength(1)
  })

  test('ends when the endpoint is disposed of', async () => {
    const fixture = await open()
    const { over } = await follow(fixture)
    fixture.endpoint[Symbol.dispose]()
    await until(over, { what: 'the end of the stream' })
  })
})

describe('B6: a stream does not outlive what it was opened with', () => {
  test('a credential that is revoked ends it', async () => {
    let revoked = false
    const known = people()
    const fixture = await open({ authenticate: (given) => (revoked ? known(undefined) : known(given)) })
    const { heard, over } = await follow(fixture)
    await heard('reload')
    await pass(fixture, 5_000)
    expect(over()).toBe(false)
    revoked = true
    await pass(fixture, 5_000)
    await until(over, { what: 'the end of the stream' })
  })

  test('logging out ends it', async () => {
    const fixture = await open()
    const { browser } = await fixture.logIn()
    const { heard, over } = await follow(fixture, browser)
    await heard('reload')
    await fixture.raw('/admin/api/session', { method: 'DELETE', headers: { ...browser, 'toolway-admin': '1' } })
    await pass(fixture, 5_000)
    await until(over, { what: 'the end of the stream' })
  })
})

describe('abuse: readers', () => {
  test('one that never reads costs a bounded amount of memory, and the others get everything', async () => {
    const fixture = await open()
    fixture.pad(256 * 1024)
    const deaf = connect(fixture.port, '127.0.0.1')
    await once(deaf, 'connect')
    deaf.pause()
    deaf.write(
      `GET /admin/api/events HTTP/1.1\r\nHost: 127.0.0.1:${fixture.port}\r\nAuthorization: Bearer operator\r\n\r\n`,
    )
    stack.defer(() => void deaf.destroy())
    await until(() => fixture.watched(), { what: 'the reader' })
    const { heard } = await follow(fixture)
    // 100 overviews of 256 KiB: much more than sockets and the bound take together.
    const limit = 16 * 1024 * 1024
    const before = await settledBuffers()
    for (let second = 1; second <= 100; second++) {
      await pass(fixture, 1_000)
      await heard('overview', second)
    }
    expect((await settledBuffers(before + limit)) - before).toBeLessThan(limit)
  })

  test('V6: too many of one caller are refused until one disconnects', async () => {
    const fixture = await open()
    const all = []
    for (let count = 0; count < 48; count++) all.push(await follow(fixture))
    const { statusCode, headers } = await follow(fixture)
    expect([statusCode, headers['retry-after']]).toEqual([503, '1'])
    all[0]?.body.destroy()
    await until(async () => (await follow(fixture)).statusCode === 200, { what: 'room' })
  })

  test('B7: callers without admin rights leave streams for admins', async () => {
    const fixture = await open()
    const guest = { authorization: 'Bearer dev' }
    for (let count = 0; count < 32; count++) expect((await follow(fixture, guest)).statusCode).toBe(200)
    expect((await follow(fixture, guest)).statusCode).toBe(503)
    expect((await follow(fixture)).statusCode).toBe(200)
  })
})

test('G10: the servers are not sent again if only the rate of their calls has changed', async () => {
  const fixture = await open()
  const { heard, kinds, last } = await follow(fixture)
  await heard('inbox')
  let ms = 1_000
  const withRate = (calls: number) => {
    ms += 250
    return [{ ...server, calls: { ...server.calls, calls, perSecond: (calls * 1000) / ms } }]
  }
  fixture.admin.servers = () => withRate(server.calls.calls)
  await pass(fixture, 3_000)
  await heard('overview', 4)
  expect(kinds().filter((kind) => kind === 'servers')).toHaveLength(1)
  fixture.admin.servers = () => withRate(server.calls.calls + 1)
  await pass(fixture, 1_000)
  await heard('servers', 2)
  expect(last('servers')).toMatchObject([{ calls: { calls: server.calls.calls + 1 } }])
})
