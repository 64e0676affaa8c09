import { expect, test } from 'vitest'
import type { ServerView } from '../../../../src/serve/admin/contract.ts'
import { unlistedServers } from './unlisted-servers.ts'

test('V2: servers whose tools are not listed yet are named, not those that have none or a stored list', () => {
  const servers = [
    { name: 'new', health: 'stale', tools: 0 },
    { name: 'soon', health: 'starting', tools: 0 },
    { name: 'stored', health: 'stale', tools: 7 },
    { name: 'empty', health: 'healthy', tools: 0 },
    { name: 'off', health: 'disabled', tools: 0 },
  ] as ServerView[]
  expect(unlistedServers(servers)).toEqual(['new', 'soon'])
})
