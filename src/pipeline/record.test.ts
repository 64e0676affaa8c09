import { expect, test } from 'vitest'
import { callOf, entryOf } from '../core/call.fixture.ts'
import { ToolwayError } from '../core/errors.ts'
import { silentLog } from '../core/log.ts'
import { textResult } from '../core/result.ts'
import { record } from './record.ts'

test.each([
  ['answered', async () => textResult('x')],
  ['failed', () => Promise.reject(new ToolwayError('TIMEOUT', 'x'))],
])('B6: the log has no secret in any name of a call that %s', async (_, run) => {
  const lines: object[] = []
  const log = { ...silentLog, debug: (facts: object) => void lines.push(facts) }
  const redact = (text: string) => text.replaceAll('hunter2', '[redacted]')
  const entry = entryOf({ kind: 'resource', server: 'hunter2', name: 'postgres://me:hunter2@h/db' })
  const call = callOf({ entry, caller: { ...callOf().caller, agent: 'hunter2' } })
  await record(log, redact)(call, run).catch(() => {})
  expect(lines).toMatchObject([
    { agent: '[redacted]', server: '[redacted]', resource: 'postgres://me:[redacted]@h/db', call: 'c1' },
  ])
})
