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
  const history = { shared: false, past: { calls: async (...query: Parameters<typeof list>) => listOf(all)(...query) } }
  const context = { calls: { list }, history } as unknown as AdminContext
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
