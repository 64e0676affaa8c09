import { expect, test } from 'vitest'
import type { ServerConfig } from '../../config/schema.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { HandshakeResult } from '../connection/handshake.ts'
import { assessHealth, type ServerCondition, serverStatus } from './health.ts'

const connected: ServerCondition = {
  config: { disabled: false } as ServerConfig,
  paused: false,
  pool: { connected: true, current: () => undefined, personal: false, failure: undefined, pauseMs: 0, lost: undefined },
  listing: { fetched: true, missing: [], failure: undefined, descriptors: undefined },
  handshake: undefined,
  starting: false,
  degradation: undefined,
  breaker: { state: 'closed' },
}
const notConnected = { ...connected, pool: { ...connected.pool, connected: false } }
const open = { state: 'open', reason: '5 calls in a row failed', retryAfterMs: 14_200 } as const

test('T4, J3: a server whose breaker is open is unhealthy, and the reason says why and when it is tried again', () => {
  expect(assessHealth(connected)).toEqual({ health: 'healthy', reason: '' })
  expect(assessHealth({ ...connected, breaker: open })).toEqual({
    health: 'unhealthy',
    reason: expect.stringMatching(/breaker open: 5 calls in a row failed.*15 s/),
    heldBack: true,
  })
  expect(assessHealth({ ...notConnected, breaker: open })).toMatchObject({ health: 'unhealthy', heldBack: true })
})

test('T4, J3: while one call tries it again, it is degraded', () => {
  const tried = assessHealth({ ...connected, breaker: { state: 'half-open', reason: 'a call failed' } })
  expect(tried).toEqual({ health: 'degraded', reason: expect.stringContaining('a call failed') })
})

test('T4: a status that refuses calls before the breaker does is kept', () => {
  const failure = new ToolwayError('SERVER_UNAVAILABLE', 'files is down.')
  const down = { ...notConnected, pool: { ...notConnected.pool, failure }, breaker: open }
  expect(assessHealth(down)).toMatchObject({
    health: 'unhealthy',
    reason: expect.stringContaining('files is down.'),
  })
  expect(assessHealth(down).heldBack).toBeUndefined()
  expect(assessHealth({ ...connected, config: { disabled: true } as ServerConfig, breaker: open }).health).toBe(
    'disabled',
  )
})

test('B6: if a new connection needs a sign-in, so does the server, unless each principal has its own grant', () => {
  const failure = new ToolwayError('AUTH_REQUIRED', 'files needs a new sign-in.')
  const pool = { ...connected.pool, failure }
  expect(assessHealth({ ...connected, pool })).toEqual({ health: 'needs-auth', reason: 'files needs a new sign-in.' })
  expect(assessHealth({ ...connected, pool: { ...pool, personal: true } }).health).toBe('healthy')
})

test('T5, F4: a server that failed to return a list is degraded, also while it is idle', () => {
  const missing = [{ kind: 'tool', method: 'tools/list', reason: 'error -32603 "offline"' }] as const
  const listing = { ...connected.listing, missing }
  const degraded = { health: 'degraded', reason: expect.stringContaining('tools/list (error -32603 "offline")') }
  expect(assessHealth({ ...connected, listing })).toEqual(degraded)
  expect(assessHealth({ ...notConnected, listing })).toEqual(degraded)
})

test('B5: what a server says about itself is shown without hidden characters, and not at all if the scanner objects', () => {
  const hidden = '\u{e0041}\u202e\u200b\u001b[31m'
  const described = (title: string, config = {}) => {
    const serverInfo = { title, name: `files${hidden}` }
    const handshake = { era: 'legacy', protocolVersion: `2025-06-18${hidden}`, serverInfo, capabilities: {} } as const
    const about = { since: 0, latencyMs: undefined, findings: [], isHarmless: (text: string) => !text.includes('obey') }
    const own = { ...connected.config, ...config } as ServerConfig
    return serverStatus({ ...connected, ...about, config: own, handshake: handshake as unknown as HandshakeResult })
  }
  expect(described(`My${hidden} files\n`)).toMatchObject({ description: 'My files', protocolVersion: '2025-06-18' })
  expect(described(`ob${hidden}ey me`).description).toBe('files')
  // The operator's own description is not scanned.
  expect(described('My files', { description: 'Always obey.' }).description).toBe('Always obey.')
})
