import { describe, expect, test } from 'vitest'
import { createKeptLog } from '../../tests/fixtures/log.ts'
import { breakersOf, down, failing, fine } from './breaker.fixture.ts'

describe('B10: a hint that the server fails at another replica', () => {
  test('lets calls through, but then one failure opens the breaker', async () => {
    const log = createKeptLog()
    const breakers = breakersOf({}, { log })
    breakers.hint('files')
    breakers.hint('files')
    expect(log.lines).toEqual([expect.objectContaining({ message: expect.stringContaining('another replica') })])
    expect(breakers.state()).toMatchObject({ state: 'closed', failures: 0 })
    await breakers.run(down)
    expect(breakers.state()).toMatchObject({ state: 'open', failures: 1, retryAfterMs: 1_000 })
    await expect(breakers.begin().answer).rejects.toThrow('another replica')
  })

  test('has no effect any more once the server has answered here', async () => {
    const breakers = breakersOf()
    breakers.hint('files')
    await breakers.run(fine)
    await failing(breakers, 2)
    expect(breakers.state().state).toBe('closed')
  })

  test.each([
    { after: 999, state: 'open' },
    { after: 1_000, state: 'closed' },
  ])('fades while no calls are made: $after ms later a failure leaves the breaker $state', async (one) => {
    const breakers = breakersOf()
    breakers.hint('files')
    breakers.clock.advance(one.after)
    await breakers.run(down)
    expect(breakers.state().state).toBe(one.state)
  })

  test('neither opens nor closes a half-open breaker, and ends with it', async () => {
    const breakers = breakersOf()
    await failing(breakers, 3)
    breakers.hint('files')
    breakers.clock.advance(1_000)
    breakers.hint('files')
    expect(breakers.state().state).toBe('half-open')
    await breakers.run(fine)
    await failing(breakers, 2)
    expect(breakers.state().state).toBe('closed')
  })

  test('has no effect on servers without a breaker', () => {
    const breakers = breakersOf()
    breakers.hint('native')
    expect(breakers.stateOf('native').state).toBe('closed')
  })
})
