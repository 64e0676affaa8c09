import { expect, test } from 'vitest'
import { ServerHistory } from './server-control.ts'

test('G10: the history of a server is bounded, newest first, and counts failures that repeat', () => {
  let now = 0
  const history = new ServerHistory({ now: () => ++now })
  history.record('started', { pid: 7 })
  history.record('lost', { pid: 7, reason: 'ended (exit code 3)' })
  for (let attempt = 0; attempt < 3; attempt++) history.record('failed', { reason: 'no such file' })
  history.record('failed', { reason: 'timed out' })
  expect(history.events()).toEqual([
    { at: 6, kind: 'failed', reason: 'timed out', times: 1 },
    { at: 5, kind: 'failed', reason: 'no such file', times: 3 },
    { at: 2, kind: 'lost', pid: 7, reason: 'ended (exit code 3)', times: 1 },
    { at: 1, kind: 'started', pid: 7, times: 1 },
  ])
  for (let pid = 0; pid < 200; pid++) history.record('started', { pid, reason: 'x'.repeat(10_000) })
  expect(history.events()).toHaveLength(100)
  expect(history.events()[0]).toMatchObject({ pid: 199, reason: 'x'.repeat(500) })
})
