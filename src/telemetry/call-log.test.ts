import { expect, test } from 'vitest'
import { entryOf } from '../core/call.fixture.ts'
import { silentLog } from '../core/log.ts'
import { callLog, createLog, logsCalls } from './log.ts'
import { type Told, tell } from './metrics/observed.fixture.ts'

function logged(...all: Told[]) {
  const lines: object[] = []
  const log = { ...silentLog, debug: (facts: object, message: string) => void lines.push({ ...facts, message }) }
  tell(
    callLog(log, (text) => text.replaceAll('hunter2', '[redacted]')),
    ...all,
  )
  return lines
}

test('one line for each call says how it ended', () => {
  const lines = logged(
    { ms: 1.23456 },
    { outcome: { kind: 'tool_error' } },
    { outcome: { kind: 'denied', code: 'TOOL_BLOCKED' }, call: { parent: 'c0' } },
  )
  expect(lines).toEqual([
    { call: 'c1', agent: 'default', server: 'files', tool: 'read', ms: 1.23, message: 'call answered' },
    expect.objectContaining({ message: expect.stringContaining('tool error') }),
    expect.objectContaining({ message: 'call failed', error: 'TOOL_BLOCKED', parent: 'c0' }),
  ])
})

test.each<[string, Told]>([
  ['answered', {}],
  ['failed', { outcome: { kind: 'failed', code: 'TIMEOUT' } }],
])('B6: the log has no secret in any name of a call that %s', (_, told) => {
  const entry = entryOf({ kind: 'resource', server: 'hunter2', name: 'postgres://me:hunter2@h/db' })
  expect(logged({ ...told, agent: 'hunter2', call: { entry } })).toMatchObject([
    { agent: '[redacted]', server: '[redacted]', resource: 'postgres://me:[redacted]@h/db', call: 'c1' },
  ])
})

test.each([
  ['trace', true],
  ['debug', true],
  ['info', false],
  ['silent', false],
])('F16: a log of the level %s wants a line for each call: %s', (level, wanted) => {
  expect(logsCalls(createLog({ level }))).toBe(wanted)
  expect(logsCalls(silentLog)).toBe(true)
})
