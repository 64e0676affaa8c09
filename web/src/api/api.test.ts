import { describe, expect, test } from 'vitest'
import type { CallView, ServerView, SessionView } from '../../../src/serve/admin/contract.ts'
import { filterCalls, withCalls } from './call-log.ts'
import { heardOf, liveServers, stateAfter, waitBefore } from './live.ts'
import { ownAgents, session, tokenIn } from './session.ts'

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
  test('the newest come first, and only so many are kept', () => {
    const known = withCalls([], [call('a', 1), call('b', 2)], 3)
    expect(ids(withCalls(known, [call('c', 3), call('d', 4)], 3))).toEqual(['d', 'c', 'b'])
  })

  test('a call that ends takes the place of the one that began, and never runs again', () => {
    const began = call('a', 1, { outcome: 'running', ms: null })
    const ended = withCalls([began], [call('a', 1, { ms: 9 })], 10)
    expect(ended).toMatchObject([{ id: 'a', ms: 9, outcome: 'answered' }])
    expect(withCalls(ended, [began], 10)).toMatchObject([{ outcome: 'answered' }])
  })

  test('no news keeps the list itself, so that nothing is drawn anew', () => {
    const known = [call('a', 1)]
    expect(withCalls(known, [], 10)).toBe(known)
  })

  test('every condition of a filter must hold', () => {
    const calls = [
      call('a', 3, { agent: 'ci' }),
      call('b', 2, { outcome: 'denied', code: 'TOOL_BLOCKED' }),
      call('c', 1, { server: 'memory' }),
    ]
    const all = { agent: '', server: '', outcome: '', text: '' }
    expect(ids(filterCalls(calls, all))).toEqual(['a', 'b', 'c'])
    expect(ids(filterCalls(calls, { ...all, agent: 'dev', server: 'github' }))).toEqual(['b'])
    expect(ids(filterCalls(calls, { ...all, text: ' blocked ' }))).toEqual(['b'])
    expect(ids(filterCalls(calls, { ...all, outcome: 'failed' }))).toEqual([])
  })
})

describe('G10: a stream that breaks', () => {
  test('is tried again, more and more slowly, but never too slowly', () => {
    expect([1, 2, 3, 4, 20].map(waitBefore)).toEqual([500, 1000, 2000, 4000, 15_000])
  })

  test('is called offline when the network is down or attempts keep failing', () => {
    expect(stateAfter(1, true)).toBe('reconnecting')
    expect(stateAfter(3, true)).toBe('offline')
    expect(stateAfter(1, false)).toBe('offline')
  })
})

describe('G10: a token in the address', () => {
  test('is found behind the hash, also when it has unusual characters', () => {
    expect(tokenIn('#token=tw_a-b%2Bc')).toBe('tw_a-b+c')
    expect(tokenIn('#section')).toBeUndefined()
    expect(tokenIn('#token=')).toBeUndefined()
    expect(tokenIn('')).toBeUndefined()
  })
})

test('G10: whoever may act as every agent and is none of them chooses one of them', () => {
  const as = (agent: string): SessionView => ({
    ...{ principal: 'token', agent, authenticated: true, admin: true, agents: '*' },
  })
  session.value = as('(none)')
  expect(ownAgents(['dev', 'ci'])).toEqual(['dev', 'ci'])
  expect(ownAgents([])).toEqual(['(none)'])
  session.value = as('ci')
  expect(ownAgents(['dev', 'ci'])).toEqual(['ci', 'dev'])
  session.value = 'unknown'
})

test('G10: what was done to a server is seen before the stream tells of it', () => {
  const server = (name: string, paused: boolean) => ({ name, paused }) as ServerView
  liveServers.value = [server('files', false), server('memory', false)]
  heardOf(server('memory', true))
  expect(liveServers.value).toEqual([server('files', false), server('memory', true)])
  liveServers.value = undefined
  heardOf(server('memory', true))
  expect(liveServers.value).toBeUndefined()
})
