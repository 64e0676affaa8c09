import { expect, test } from 'vitest'
import { actionOutcome } from './action-outcome.ts'

const process = (pid: number) => ({ pid, startedAt: 1, restarts: 0 })
const healthy = { name: 'memory', health: 'healthy', reason: '', transport: 'stdio', tools: 9 } as const

test('G10: the message of a restart has the new process, or why there is none', () => {
  expect(actionOutcome('restart', { process: process(1) }, { ...healthy, process: process(2) })).toMatch(/2.*1/)
  const failed = { ...healthy, health: 'unhealthy' as const, reason: 'exit code 3', process: null }
  expect(() => actionOutcome('restart', { process: process(1) }, failed)).toThrow(/unhealthy.*exit code 3/)
  expect(actionOutcome('restart', { process: null }, { ...healthy, health: 'starting', process: null })).toMatch(
    /still starting/,
  )
  expect(actionOutcome('restart', { process: null }, { ...healthy, transport: 'http', process: null })).not.toMatch(
    /process/,
  )
})

test('G10: a refresh that failed is not reported as done', () => {
  const down = { ...healthy, health: 'degraded' as const, reason: 'Listing failed', process: null }
  expect(() => actionOutcome('refresh', { process: null }, down)).toThrow(/Listing failed/)
  expect(actionOutcome('refresh', { process: null }, { ...healthy, process: null })).toContain('9 tools')
})
