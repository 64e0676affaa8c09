import { expect, test } from 'vitest'
import type { Caller } from '../../core/call.ts'
import type { CallsQuery, CallView } from '../../serve/admin/contract.ts'
import { fits, type RecordFilter } from '../../telemetry/calls/call-records.ts'
import type { AuditQueries } from './audit-queries.ts'
import { createCallsAdmin } from './calls.ts'
import type { AdminContext } from './context.ts'

const call = (id: string, at: number, agent = 'dev'): CallView => ({
  ...{ id, parent: null, at, ms: 5, agent, principal: 'key:dev', operation: 'call_tool', server: 'files' },
  ...{ name: 'read', outcome: 'answered', code: null, cache: null },
})

const listOf =
  (calls: readonly CallView[]) =>
  (filter: RecordFilter, limit: number): CallView[] =>
    calls.filter((one) => fits(one, filter)).slice(0, limit)

/** The admin's calls, with some in memory and all of them in the history, newest first. */
function openCalls(inMemory: readonly CallView[], all: readonly CallView[]) {
  const list = listOf(inMemory)
  const find = (id: string) => {
    const found = all.find((one) => one.id === id)
    return found && { ...found, steps: [], children: [] }
  }
  const history = { shared: false, past: { calls: async (...query: Parameters<typeof list>) => listOf(all)(...query) } }
  const context = { calls: { list, find }, history } as unknown as AdminContext
  return createCallsAdmin(context, {} as AuditQueries)
}

const admin = { admin: true } as Caller

test('V12: calls that are no longer in memory are listed from the history, also without a time', async () => {
  const all = [call('e', 5), call('d', 4, 'ci'), call('c', 3), call('b', 2), call('a', 1)]
  const calls = openCalls(all.slice(0, 2), all)
  const ids = async (query: CallsQuery) => (await calls.pastCalls(admin, query)).map(({ id }) => id)
  expect(await ids({ agent: 'dev', limit: 10 })).toEqual(['e', 'c', 'b', 'a'])
  expect(await ids({ agent: 'dev', limit: 2 })).toEqual(['e', 'c'])
  expect(await ids({ limit: 2 })).toEqual(['e', 'd'])
  expect(await ids({ agent: 'dev', to: 3, limit: 1 })).toEqual(['b'])
})

test('G10: users who are not admins see the calls of all agents that their key names, and of no other', async () => {
  const all = [call('d', 4, 'ops'), call('c', 3, 'ci'), call('b', 2), call('a', 1, 'ci')]
  const calls = openCalls(all.slice(0, 2), all)
  const user = { admin: false, agent: 'dev', agents: ['dev', 'ci'] } as unknown as Caller
  const ids = async (query: Partial<CallsQuery>) =>
    (await calls.pastCalls(user, { limit: 10, ...query })).map(({ id }) => id)
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
