import { expect, test } from 'vitest'
import { callOf, entryOf } from '../core/call.fixture.ts'
import { ToolwayError } from '../core/errors.ts'
import { textResult } from '../core/result.ts'
import { Json } from '../json/json.ts'
import { approvalBy, openPipeline, unchanged } from './pipeline.fixture.ts'

const denial = { allowed: false, code: 'DENIED_BY_POLICY', rule: 'agents.a.deny.servers[0]', reason: 'No.' } as const

test('G8: a call that becomes denied while a person is asked does not run, even if they approve it', async () => {
  let ran = 0
  let changed = false
  const run = async () => {
    ran++
    return textResult('ran')
  }
  const ask = async () => {
    changed = true
    return Json.of({ action: 'accept', content: { approve: true } })
  }
  const { caller, peer } = callOf()
  const call = callOf({
    caller: { ...caller, capabilities: { elicitation: {} } },
    peer: { ...peer, ask },
    entry: entryOf({ run }),
  })
  const { handle, ends } = openPipeline({
    approval: approvalBy('mcpServers.files.approve[0]'),
    recheck: { ...unchanged, decide: () => (changed ? denial : undefined) },
  })
  await expect(handle(call)).rejects.toMatchObject({ code: 'DENIED_BY_POLICY', details: { rule: denial.rule } })
  expect(ran).toBe(0)
  expect(ends()).toMatchObject([{ decision: 'DENY', rule: denial.rule }])
})

test('G8: a caller that may no longer read a resource gets no more updates of it', async () => {
  let update = () => {}
  const entry = entryOf({
    kind: 'resource',
    subscribe: async (_caller, _uri, updated) => {
      update = updated
      return { async [Symbol.asyncDispose]() {} }
    },
  })
  let heard = 0
  let denied = false
  const { subscribe } = openPipeline({ recheck: { ...unchanged, decide: () => (denied ? denial : undefined) } })
  await subscribe(callOf().caller, { name: 'r', entry, definition: {} }, () => heard++)
  update()
  denied = true
  update()
  expect(heard).toBe(1)
})

test('G6: what a front end wants to see of a tool is looked at only once the tool is allowed', async () => {
  const admit = () => {
    throw new ToolwayError('INVALID_ARGUMENTS', 'A header is missing.')
  }
  const refusing = openPipeline({ decide: () => denial })
  await expect(refusing.handle(callOf({ admit }))).rejects.toMatchObject({ code: 'DENIED_BY_POLICY' })
  await expect(openPipeline().handle(callOf({ admit }))).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
})
