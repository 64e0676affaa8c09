import { expect, test } from 'vitest'
import { withPart } from '../../fixtures/with-part.ts'
import { killUnderLoad } from './kills.ts'

withPart('redis-server', 'B10, F11: a replica that is killed under load', () => {
  test('only calls in flight at it fail, sessions continue, and answered calls are in PostgreSQL', async () => {
    const { answered, lost, unexplained, faults } = await killUnderLoad(1, { calls: 50, pauseMs: 120 })
    expect(unexplained).toEqual([])
    expect(faults).toEqual([])
    expect(lost.length).toBeLessThanOrEqual(16)
    expect(answered).toBeGreaterThan(100)
  })
})
