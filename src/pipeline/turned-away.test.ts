import { expect, test } from 'vitest'
import { openPipeline } from './pipeline.fixture.ts'

test('F11: whoever is turned away at a door is written down', () => {
  const { turnedAway, ends } = openPipeline()
  turnedAway({ address: '192.0.2.1', code: 'AUTH_REQUIRED' })
  turnedAway({ principal: 'key:ci', code: 'INVALID_AGENT_ID' })
  expect(ends()).toMatchObject([
    {
      operation: 'authenticate',
      decision: 'DENY',
      reason: 'auth_required',
      principal: 'unknown',
      address: '192.0.2.1',
    },
    { operation: 'authenticate', decision: 'DENY', reason: 'invalid_agent_id', principal: 'key:ci' },
  ])
})

test('F11: a flood at the door does not fill the disk', () => {
  const { turnedAway, ends, clock } = openPipeline()
  for (let count = 0; count < 1_000; count++) turnedAway({ code: 'AUTH_REQUIRED' })
  expect(ends()).toHaveLength(10)
  clock.advance(1_000)
  turnedAway({ code: 'AUTH_REQUIRED' })
  expect(ends()).toHaveLength(11)
})
