import { describe, expect, test } from 'vitest'
import type { CallView, ServerView, SessionView } from '../../../src/serve/admin/contract.ts'
import { filterCalls, mergeCalls } from './call-log.ts'
import { holdCalls, updateHeld } from './held-calls.ts'
import { liveServers, reconnectDelay, streamStateAfter, updateLiveServer } from './live.ts'
import { selectableAgents, session, tokenFromHash } from './session.ts'

const call = (id: string, at: number, more: Partial<CallView> = {}): CallView => ({
  id,
  parent: null,
  at,
  ms: 5,
  agent: 'dev',
  principal: 'token',
  operation: 'call_tool',
  server: 'github',
  name: 'search_issues',
  outcome: 'answered',
  code: null,
  cache: null,
  ...more,
})

const ids = (calls: readonly CallView[]) => calls.map(({ id }) => id)

describe('G10: live calls', () => {
  test('are sorted newest first and limited in number', () => {
    const known = mergeCalls([], [call('a', 1), call('b', 2)], 3)
    expect(ids(mergeCalls(known, [call('c', 3), call('d', 4)], 3))).toEqual(['d', 'c', 'b'])
  })

  test('a finished call replaces the running one and is not replaced by it', () => {
    const began = call('a', 1, { outcome: 'running', ms: null })
    const ended = mergeCalls([began], [call('a', 1, { ms: 9 })], 10)
    expect(ended).toMatchObject([{ id: 'a', ms: 9, outcome: 'answered' }])
    expect(mergeCalls(ended, [began], 10)).toMatchObject([{ outcome: 'answered' }])
  })

  test('without updates the same list is returned, so that nothing renders', () => {
    const known = [call('a', 1)]
    expect(mergeCalls(known, [], 10)).toBe(known)
  })

  test('a call must match all conditions of a filter', () => {
    const calls = [
      call('a', 3, { agent: 'ci' }),
      call('b', 2, { outcome: 'denied', code: 'TOOL_BLOCKED' }),
      call('c', 1, { server: 'memory' }),
    ]
    const all = {
      ...{
        agent: '',
        server: '',
        name: '',
        operation: '',
        outcome: '',
        code: '',
        parent: '',
        slowerThan: '',
        text: '',
      },
      ...{ from: undefined, to: undefined },
    }
    expect(ids(filterCalls(calls, all))).toEqual(['a', 'b', 'c'])
    expect(ids(filterCalls(calls, { ...all, agent: 'dev', server: 'github' }))).toEqual(['b'])
    expect(ids(filterCalls(calls, { ...all, text: ' blocked ' }))).toEqual(['b'])
    expect(ids(filterCalls(calls, { ...all, text: 'token' }))).toEqual(['a', 'b', 'c'])
    expect(ids(filterCalls(calls, { ...all, outcome: 'failed' }))).toEqual([])
    expect(ids(filterCalls(calls, { ...all, code: 'TOOL_BLOCKED', slowerThan: '5', from: 2, to: 3 }))).toEqual(['b'])
    expect(ids(filterCalls(calls, { ...all, slowerThan: '6' }))).toEqual([])
  })

  test('V11: a held list keeps its calls, updates those that run, and counts new ones', () => {
    const held = holdCalls([call('b', 2, { outcome: 'running', ms: null }), call('a', 1)])
    const { calls, fresh } = updateHeld(held, [call('c', 3), call('b', 2, { ms: 7 })], [])
    expect(ids(calls)).toEqual(['b', 'a'])
    expect(calls[0]).toMatchObject({ outcome: 'answered', ms: 7 })
    expect(ids(fresh)).toEqual(['c'])
    expect(held.newestAt).toBe(2)
  })

  test('V11: a held list drops running calls that the gateway does not know any more', () => {
    const running = { outcome: 'running', ms: null } as const
    const held = holdCalls([call('c', 3, running), call('b', 2, running), call('a', 1)])
    expect(ids(updateHeld(held, [], [call('b', 2, running)]).calls)).toEqual(['b', 'a'])
    // Older ones may still run.
    expect(ids(updateHeld(held, [], [call('d', 4), call('c', 3)], undefined, false).calls)).toEqual(['c', 'b', 'a'])
  })

  test('V11: a held list shows the call that is open, also if it came later', () => {
    const held = holdCalls([call('a', 1)])
    const { calls, fresh } = updateHeld(held, [call('d', 4), call('c', 3), call('b', 2)], [], 3)
    expect(calls.map(({ id }) => id)).toEqual(['c', 'b', 'a'])
    expect(fresh.map(({ id }) => id)).toEqual(['d'])
  })
})

describe('G10: a broken event stream', () => {
  test('reconnects with capped exponential backoff', () => {
    expect([1, 2, 3, 4, 20].map(reconnectDelay)).toEqual([500, 1000, 2000, 4000, 15_000])
  })

  test('is offline when the network is down or attempts keep failing', () => {
    expect(streamStateAfter(1, true)).toBe('reconnecting')
    expect(streamStateAfter(3, true)).toBe('offline')
    expect(streamStateAfter(1, false)).toBe('offline')
  })
})

describe('G10: a token in the address', () => {
  test('is read from the fragment, including special characters', () => {
    expect(tokenFromHash('#token=tw_a-b%2Bc')).toBe('tw_a-b+c')
    expect(tokenFromHash('#section')).toBeUndefined()
    expect(tokenFromHash('#token=')).toBeUndefined()
    expect(tokenFromHash('')).toBeUndefined()
  })
})

test('G10: a user who may act as any agent and has none selects one', () => {
  const as = (agent: string): SessionView => ({
    ...{ principal: 'token', agent, authenticated: true, admin: true, agents: '*' },
  })
  session.value = as('(none)')
  expect(selectableAgents(['dev', 'ci'])).toEqual(['dev', 'ci'])
  expect(selectableAgents([])).toEqual(['(none)'])
  session.value = as('ci')
  expect(selectableAgents(['dev', 'ci'])).toEqual(['ci', 'dev'])
  session.value = 'unknown'
})

test('G10: the result of a server action is applied before the event stream reports it', () => {
  const server = (name: string, paused: boolean) => ({ name, paused }) as ServerView
  liveServers.value = [server('files', false), server('memory', false)]
  updateLiveServer(server('memory', true))
  expect(liveServers.value).toEqual([server('files', false), server('memory', true)])
  liveServers.value = undefined
  updateLiveServer(server('memory', true))
  expect(liveServers.value).toBeUndefined()
})
