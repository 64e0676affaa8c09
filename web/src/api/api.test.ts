import { describe, expect, test } from 'vitest'
import type { CallView, ServerView, SessionView } from '../../../src/admin/contract.ts'
import { mergeCalls } from './call-log.ts'
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
