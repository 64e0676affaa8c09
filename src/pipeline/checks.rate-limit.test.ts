import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import type { Handler } from '../core/call.ts'
import { textResult } from '../core/result.ts'
import type { Limit, LimitsOf } from '../core/stores.ts'
import { compileLimits } from '../policy/limits.ts'
import { memoryBuckets } from '../stores/buckets.ts'
import { rateLimit } from './checks.ts'
import { interceptorOf } from './pipeline.fixture.ts'

const done: Handler = async () => textResult('done')

const limited = (limitsOf: LimitsOf) => {
  const clock = createManualClock()
  const layer = interceptorOf(rateLimit({ limitsOf, buckets: memoryBuckets(), clock }))
  return { clock, call: (changes = {}, next = done) => layer(callOf(changes), next) }
}

test('F8: a call over the limit is refused with the rule, its subject and a retry time', async () => {
  const { clock, call } = limited(
    compileLimits({ limits: { servers: {}, tools: { 'files.read': 10 } }, agents: { default: {} } }),
  )
  for (let made = 0; made < 10; made++) await call()
  clock.advance(500)
  await expect(call()).rejects.toMatchObject({
    code: 'RATE_LIMITED',
    message: expect.stringMatching(/10 calls per minute to files\.read \(limits\.tools\.files\.read\).* 60 seconds/),
    data: { code: 'RATE_LIMITED', rule: 'limits.tools.files.read', server: 'files', retryAfterMs: 59_500 },
  })
  clock.advance(59_500)
  await expect(call()).resolves.toBeDefined()
})

test('F8: a refused call never reaches its entry and takes nothing from its other limits', async () => {
  const agents = { default: { perMinute: 3 } }
  const { call } = limited(compileLimits({ limits: { servers: {}, tools: { 'files.read': 1 } }, agents }))
  let ran = 0
  const counted: Handler = async () => textResult(`${++ran}`)
  await call({}, counted)
  for (let tried = 0; tried < 5; tried++)
    await expect(call({}, counted)).rejects.toThrow('1 call per minute to files.read')
  expect(ran).toBe(1)
  const entry = entryOf({ name: 'write' })
  await call({ entry })
  await call({ entry })
  await expect(call({ entry })).rejects.toMatchObject({
    message: expect.stringMatching(/3 calls per minute in total \(agents\.default\.perMinute\).* 60 seconds/),
  })
})

test('F8: a step of the wall clock neither refills a limit nor makes callers wait longer', async () => {
  const { clock, call } = limited(compileLimits({ limits: { perMinute: 60, servers: {}, tools: {} }, agents: {} }))
  for (let made = 0; made < 60; made++) await call()
  for (const stepMs of [3_600_000, -7_200_000]) {
    clock.setWall(clock.now() + stepMs)
    await expect(call()).rejects.toMatchObject({ data: { retryAfterMs: 60_000 } })
  }
  clock.advance(60_000)
  await expect(call()).resolves.toBeDefined()
})

test('F8: all entries of a server count towards its limit', async () => {
  const { call } = limited(compileLimits({ limits: { servers: { files: 2 }, tools: {} }, agents: {} }))
  await call({ entry: entryOf() })
  await call({ entry: entryOf({ name: 'write' }) })
  await expect(call({ entry: entryOf() })).rejects.toThrow(
    '2 calls per minute to the server files (limits.servers.files)',
  )
})

test('F8: a store elsewhere may take its time, and its failure is not a permission', async () => {
  const limit: Limit = { key: 'k', perMinute: 1, rule: 'limits.perMinute', scope: '' }
  const layer = (take: () => Promise<never>) =>
    interceptorOf(rateLimit({ limitsOf: () => [limit], buckets: { take }, clock: createManualClock() }))
  await expect(layer(() => Promise.reject(new Error('gone')))(callOf(), done)).rejects.toThrow('gone')
})

test('F8: without limits the store is not used', async () => {
  const take = () => {
    throw new Error('asked')
  }
  const layer = interceptorOf(rateLimit({ limitsOf: () => [], buckets: { take }, clock: createManualClock() }))
  await expect(layer(callOf(), done)).resolves.toBeDefined()
})

test('W12: per client, a client that has used up its limit leaves the others of its agent theirs', async () => {
  const limits = { per: 'client', servers: { files: 1 }, tools: {} } as const
  const { call } = limited(compileLimits({ limits, agents: {} }))
  const by = (principal: string) => call({ caller: { ...callOf().caller, principal } })
  await by('key:1')
  await expect(by('key:1')).rejects.toMatchObject({
    code: 'RATE_LIMITED',
    message: expect.not.stringContaining('The agent'),
    data: { rule: 'limits.servers.files' },
  })
  await by('key:2')
})
