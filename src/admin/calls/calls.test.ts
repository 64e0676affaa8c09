import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { temporaryFolder } from '../../../tests/fixtures/folders.ts'
import type { Access } from '../../core/access.ts'
import { callOf } from '../../core/call.fixture.ts'
import type { Call, Caller } from '../../core/call.ts'
import type { CallFilter } from '../../core/call-query.ts'
import { systemClock } from '../../core/clock.ts'
import type { HistoryStore, StoredCall } from '../../core/history.ts'
import { Json } from '../../json/json.ts'
import { openHistoryDatabase } from '../../stores/sqlite/history-database.ts'
import { fits } from '../../telemetry/calls/call-records.ts'
import { createCallHistory } from '../../telemetry/history/call-history.ts'
import type { AuditQueries } from '../audit/audit.ts'
import type { AdminContext } from '../context.ts'
import type { CallsQuery, CallView } from '../contract.ts'
import { createCallsAdmin, perform } from './calls.ts'

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})

const call = (id: string, at: number, agent = 'dev', changes: Partial<CallView> = {}): CallView => ({
  ...{ id, parent: null, at, ms: 5, agent, principal: 'key:dev', operation: 'call_tool', server: 'files' },
  ...{ name: 'read', outcome: 'answered', code: null, cache: null },
  ...changes,
})

/** The admin's calls, with some in memory and some in the history; both have the latest of those that have ended. */
async function openCalls(inMemory: readonly CallView[], stored: readonly CallView[]) {
  const folder = stack.use(await temporaryFolder())
  const bounds = { keepMs: 2 * Date.now(), maxBytes: 1e9, captures: { keepMs: 1, maxBytes: 1 }, startedAt: 0 }
  const path = join(folder.path, 'history.sqlite')
  const store = stack.use(openHistoryDatabase({ path, ...bounds, clock: systemClock, say: () => {} }))
  store.write({
    tallies: [],
    calls: stored.map((one) => ({ ...one, steps: [] }) as unknown as StoredCall),
    captures: [],
  })
  const history = {
    past: createCallHistory({
      store: store as unknown as HistoryStore,
      recorder: { flush: async () => {} },
      clock: systemClock,
      redact: (text) => text,
    }),
  }
  const list = (filter: CallFilter, limit: number) => inMemory.filter((one) => fits(one, filter)).slice(0, limit)
  const find = (id: string) => {
    const found = [...inMemory, ...stored].find((one) => one.id === id)
    return found && { ...found, steps: [], children: [] }
  }
  return createCallsAdmin({ calls: { list, find }, history } as unknown as AdminContext, {} as AuditQueries)
}

const admin = { admin: true } as Caller
const usual = { limit: 10, sort: '-time' } as const

test('G10: calls are sorted, counted and paged over everything that is kept, not only the latest', async () => {
  const stored = Array.from({ length: 3_000 }, (_, n) =>
    call(`c${n}`, n, n % 2 === 0 ? 'ci' : 'dev', { ms: n === 7 ? 90_000 : n % 50 }),
  )
  const running = call('r', 4_000, 'dev', { ms: null, outcome: 'running' })
  const calls = await openCalls([running, ...stored.slice(-1_000).reverse()], stored)
  const page = (query: Partial<CallsQuery>) => calls.pastCalls(admin, { ...usual, ...query })
  const ids = async (query: Partial<CallsQuery>) => (await page(query)).calls.map(({ id }) => id)
  expect(await ids({ sort: '-duration', limit: 2 })).toEqual(['c7', 'c999'])
  expect(await page({ limit: 1 })).toMatchObject({ calls: [{ id: 'r' }], total: 3_001 })
  expect(await page({ agent: 'ci', slowerThan: 40 })).toMatchObject({ total: 300 })
  expect(await ids({ sort: 'duration', agent: 'dev', from: 2_998 })).toEqual(['c2999', 'r'])
  for (const sort of ['-time', 'time', '-duration', 'target', 'outcome', '-cache', 'agent'] as const) {
    const seen: string[] = []
    for (let cursor: string | undefined; ; ) {
      const { calls: part, total, nextCursor } = await page({ sort, cursor, limit: 700 })
      seen.push(...part.map(({ id }) => id))
      expect(total).toBe(3_001)
      // A cursor that is ignored would lead here again and again.
      expect(seen.length).toBeLessThanOrEqual(total)
      if (nextCursor === null) break
      cursor = nextCursor
    }
    expect([seen.length, new Set(seen).size], sort).toEqual([3_001, 3_001])
  }
  await expect(page({ cursor: 'x' })).rejects.toThrow('Invalid cursor')
})

test('G10: filters offer what the calls of the whole range have, and search text like the list in memory', async () => {
  const denied = { outcome: 'denied', code: 'TOOL_BLOCKED', name: 'wipe' } as const
  const stored = [call('a', 1, 'old', { server: 'git' }), call('b', 2, 'dev', denied), call('c', 3, 'ops')]
  const calls = await openCalls([call('d', 4, 'new', { ms: null, outcome: 'running' }), call('c', 3, 'ops')], stored)
  expect(await calls.callChoices(admin, {})).toEqual({
    agent: ['dev', 'new', 'old', 'ops'],
    ...{ server: ['files', 'git'], name: ['read', 'wipe'], operation: ['call_tool'], code: ['TOOL_BLOCKED'] },
  })
  expect(await calls.callChoices(admin, { from: 2, to: 3 })).toMatchObject({ agent: ['dev'], name: ['wipe'] })
  expect((await calls.callChoices({ admin: false, agents: ['ops'], agent: 'ops' } as never, {})).agent).toEqual(['ops'])
  const ids = async (text: string) =>
    (await calls.pastCalls(admin, { ...usual, text })).calls.map(({ id }) => id).join('')
  expect([await ids(' blocked '), await ids('FILES.r'), await ids('key:'), await ids('%')]).toEqual([
    'b',
    'dc',
    'dcba',
    '',
  ])
})

test('V12: calls that are no longer in memory are listed from the history, also without a time', async () => {
  const all = [call('e', 5), call('d', 4, 'ci'), call('c', 3), call('b', 2), call('a', 1)]
  const calls = await openCalls(all.slice(0, 2), all)
  const ids = async (query: Partial<CallsQuery>) =>
    (await calls.pastCalls(admin, { ...usual, ...query })).calls.map(({ id }) => id)
  expect(await ids({ agent: 'dev' })).toEqual(['e', 'c', 'b', 'a'])
  expect(await ids({ agent: 'dev', limit: 2 })).toEqual(['e', 'c'])
  expect(await ids({ limit: 2 })).toEqual(['e', 'd'])
  expect(await ids({ agent: 'dev', to: 3, limit: 1 })).toEqual(['b'])
})

test('G10: users who are not admins see the calls of all agents that their key names, and of no other', async () => {
  const all = [call('d', 4, 'ops'), call('c', 3, 'ci'), call('b', 2), call('a', 1, 'ci')]
  const calls = await openCalls(all.slice(0, 2), all)
  const user = { admin: false, agent: 'dev', agents: ['dev', 'ci'] } as unknown as Caller
  const ids = async (query: Partial<CallsQuery>) =>
    (await calls.pastCalls(user, { ...usual, ...query })).calls.map(({ id }) => id)
  expect(await ids({})).toEqual(['c', 'b', 'a'])
  expect(await ids({ limit: 2 })).toEqual(['c', 'b'])
  expect(await ids({ agent: 'ci' })).toEqual(['c', 'a'])
  expect(await ids({ agent: 'ops' })).toEqual([])
  expect(calls.calls(user, { limit: 10 }).map(({ id }) => id)).toEqual(['c'])
  const found = async (id: string, agents: Caller['agents']) => (await calls.call({ ...user, agents }, id))?.id
  expect(await found('c', ['dev', 'ci'])).toBe('c')
  expect(await found('d', ['dev', 'ci'])).toBeUndefined()
  expect(await found('c', '*')).toBeUndefined()
})

test('G9, G10: the duration of a call from the dashboard leaves out the time that people took', async () => {
  using time = vi.spyOn(performance, 'now').mockReturnValue(0)
  const handle = async ({ trail }: Call) => {
    time.mockReturnValue(60_005)
    if (trail) trail.waits = { endedMs: 60_000, open: 0, since: 0 }
    return { body: Json.of({ content: [] }) }
  }
  expect(await perform({ handle } as unknown as Access, callOf())).toMatchObject({ ms: 5, error: null })
})
