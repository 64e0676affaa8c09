import { expect, test } from 'vitest'
import type { Config } from '../config/schema.ts'
import { entryOf } from '../core/call.fixture.ts'
import { conditionsOf } from './explanation.ts'

const config = {
  approvals: { wait: 300_000, by: ['admins'] },
  agents: { team: { perMinute: 60 }, 'team.junior': {} },
  limits: { tools: { 'files.read': 1 }, servers: {} },
  mcpServers: { files: { approve: ['x', 'wri*'] } },
} as unknown as Config

test('B11: an allowed call still has its limits, each with its rule and its number', () => {
  expect(conditionsOf(config, 'team.junior', entryOf())).toEqual([
    { step: 'limit', rule: 'limits.tools.files.read', outcome: 'passes', note: '1 call per minute to files.read' },
    { step: 'limit', rule: 'agents.team.perMinute', outcome: 'passes', note: '60 calls per minute in total' },
  ])
})

test('B11: it needs a person’s yes where the configuration wants one, and says which line does', () => {
  expect(conditionsOf(config, 'other', entryOf({ name: 'write' }))).toMatchObject([
    { step: 'approval', rule: 'mcpServers.files.approve[1]', outcome: 'passes' },
  ])
  expect(conditionsOf(config, 'other', entryOf({ kind: 'prompt', name: 'write' }))).toEqual([])
  expect(conditionsOf(config, 'other', entryOf({ name: 'delete' }))).toEqual([])
})
