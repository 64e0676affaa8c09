import { expect, test } from 'vitest'
import { ToolwayError } from '../../core/errors.ts'
import { assessHealth, type ServerCondition } from './health.ts'

const connected: ServerCondition = {
  disabled: false,
  paused: false,
  connected: true,
  failure: undefined,
  pauseMs: 0,
  lost: undefined,
  listFailure: undefined,
  missing: [],
  degradation: undefined,
  unknownProtocol: undefined,
  starting: false,
  heard: true,
  knownSince: 0,
}
const open = { state: 'open', reason: '5 calls in a row failed', retryAfterMs: 14_200 } as const

test('T4, J3: a server whose breaker is open is unhealthy, and the reason says why and when it is tried again', () => {
  expect(assessHealth(connected, { state: 'closed' })).toEqual({ health: 'healthy', reason: '' })
  expect(assessHealth(connected, open)).toEqual({
    health: 'unhealthy',
    reason: expect.stringMatching(/breaker open: 5 calls in a row failed.*15 s/),
    heldBack: true,
  })
  const asleep = { ...connected, connected: false }
  expect(assessHealth(asleep, open)).toMatchObject({ health: 'unhealthy', heldBack: true })
})

test('T4, J3: while one call tries it again, it is degraded', () => {
  const tried = assessHealth(connected, { state: 'half-open', reason: 'a call failed' })
  expect(tried).toEqual({ health: 'degraded', reason: expect.stringContaining('a call failed') })
})

test('T4: what refuses calls before the breaker keeps its own status', () => {
  const failure = new ToolwayError('SERVER_UNAVAILABLE', 'files is down.')
  const down = { ...connected, connected: false, failure }
  expect(assessHealth(down, open)).toMatchObject({
    health: 'unhealthy',
    reason: expect.stringContaining('files is down.'),
  })
  expect(assessHealth(down, open).heldBack).toBeUndefined()
  expect(assessHealth({ ...connected, disabled: true }, open).health).toBe('disabled')
})
