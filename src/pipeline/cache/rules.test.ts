import { describe, expect, test } from 'vitest'
import { entryOf } from '../../core/call.fixture.ts'
import type { Entry } from '../../core/entry.ts'
import { type Changes, readTool, rulesOf } from './cache.fixture.ts'

/** What is done with a call of this entry. */
function treatment(entry: Entry, changes: Changes = {}): 'kept' | 'kept if hinted' | 'writes' | 'nothing' {
  const plan = rulesOf(changes)?.(entry)
  if (plan === undefined) return 'nothing'
  if (plan === 'writes') return 'writes'
  return plan.hinted ? 'kept if hinted' : 'kept'
}

const listed = (...tools: string[]) => ({ cache: { tools } })

describe('F13: which results are kept', () => {
  test('nothing where the cache is off', () => {
    expect(rulesOf({ cache: { enabled: false, tools: ['*'] } })).toBeUndefined()
  })

  test('those of tools that the operator declared reads, or listed', () => {
    expect(treatment(readTool())).toBe('kept')
    expect(treatment(entryOf())).toBe('writes')
    expect(treatment(entryOf(), listed('files.read'))).toBe('kept')
    expect(treatment(entryOf(), listed('files.r*'))).toBe('kept')
    expect(treatment(entryOf(), listed('mail.*'))).toBe('writes')
  })

  test('never those of a tool that needs approval, which still counts as a write', () => {
    const needsApproval = () => 'mcpServers.files.approve[0]'
    expect(treatment(readTool(), { needsApproval })).toBe('nothing')
    expect(treatment(entryOf(), { needsApproval, ...listed('files.read') })).toBe('writes')
  })

  test('a wildcard does not list a tool that says it changes things; its whole name does', () => {
    for (const annotations of [{ readOnlyHint: false }, { destructiveHint: true }]) {
      const write = entryOf({ name: 'write', definition: { annotations } })
      expect(treatment(write, listed('files.*', '*'))).toBe('writes')
      expect(treatment(write, listed('files.write'))).toBe('kept')
    }
    const mistaken = readTool({ definition: { annotations: { readOnlyHint: false } } })
    expect(treatment(mistaken, listed('files.*'))).toBe('kept')
  })

  test('those of native tools only if they are listed with their source', () => {
    const time = readTool({ server: 'native', name: 'time' })
    expect(treatment(time)).toBe('nothing')
    expect(treatment(time, listed('*', '*.time', 'n*'))).toBe('nothing')
    expect(treatment(time, listed('native.time'))).toBe('kept')
    expect(treatment(time, listed('native.*'))).toBe('kept')
  })

  test('never those of meta-tools and sinks, nor of what only carries calls', () => {
    for (const server of ['toolway', 'sink']) {
      const entry = readTool({ server })
      expect(treatment(entry, listed(`${server}.read`, '*'))).toBe('nothing')
    }
    const traits = { readOnly: true, idempotent: true, timeoutMs: 1, carries: true as const }
    expect(treatment(readTool({ traits }), listed('files.read'))).toBe('nothing')
  })

  test.each(['resource', 'template', 'prompt'] as const)('those of a %s as its server says', (kind) => {
    expect(treatment(readTool({ kind }))).toBe('kept if hinted')
    expect(treatment(readTool({ kind, server: 'native' }))).toBe('nothing')
  })
})
