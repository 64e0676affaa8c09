import { expect, test } from 'vitest'
import type { ServerView } from '../../../../src/serve/admin/contract.ts'
import { unlistedServers } from './unlisted-servers.ts'

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
