import { expect, test } from 'vitest'
import type { ServerView } from '../../../../src/admin/contract.ts'
import { someNames, unlistedServers } from './unlisted-servers.ts'

test('V2: servers whose tools are not listed yet are named, not those that have none or a stored list', () => {
  const servers = [
    { name: 'new', health: 'stale', reason: 'not connected yet' },
    { name: 'soon', health: 'starting', reason: '' },
    { name: 'stored', health: 'stale', reason: 'not connected yet; using the listing of 2026-01-01' },
    { name: 'empty', health: 'healthy', reason: '' },
    { name: 'off', health: 'disabled', reason: '' },
  ] as ServerView[]
  expect(unlistedServers(servers)).toEqual(['new', 'soon'])
})

test('of many servers, only the first are named', () => {
  const names = Array.from({ length: 200 }, (_, index) => `s${index}`)
  expect(someNames(names)).toBe('s0, s1, s2, s3, s4 and 195 more')
  expect(someNames(names.slice(0, 6))).toBe('s0, s1, s2, s3, s4, s5')
})
