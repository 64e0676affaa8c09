import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { callOf } from '../core/call.fixture.ts'
import type { Decide } from '../core/decision.ts'
import { silentLog } from '../core/log.ts'
import { textResult } from '../core/result.ts'
import { createPipeline } from './index.ts'

const pipeline = (decide: Decide, log = silentLog) => createPipeline({ decide, clock: createManualClock(), log }).handle

test('F7: a denied call never reaches its entry, and the error names the rule', async () => {
  let ran = false
  const run = async () => {
    ran = true
    return textResult('ran')
  }
  const entry = { ...callOf().entry, run }
  const deny: Decide = () => ({ allowed: false, code: 'TOOL_BLOCKED', rule: 'policy.blockedTools[0]', reason: 'No.' })
  await expect(pipeline(deny)(callOf({ entry }))).rejects.toMatchObject({
    code: 'TOOL_BLOCKED',
    data: { code: 'TOOL_BLOCKED', rule: 'policy.blockedTools[0]', server: 'files' },
  })
  expect(ran).toBe(false)
})

test('every call leaves one line in the log, however it ended', async () => {
  const lines: unknown[] = []
  const log = { ...silentLog, debug: (facts: object, message: string) => lines.push({ ...facts, message }) }
  await pipeline(() => ({ allowed: true }), log)(callOf())
  await pipeline(
    () => ({ allowed: false, code: 'TOOL_BLOCKED', rule: 'r', reason: 'No.' }),
    log,
  )(callOf()).catch(() => {})
  expect(lines).toMatchObject([
    { call: 'c1', agent: 'default', server: 'files', tool: 'read', message: 'call answered' },
    { call: 'c1', error: 'TOOL_BLOCKED', message: 'call failed' },
  ])
})
