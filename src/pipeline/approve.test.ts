import { expect, test } from 'vitest'
import { callOf } from '../core/call.fixture.ts'
import { Json } from '../core/json.ts'
import { openPipeline } from './pipeline.fixture.ts'

const needsApproval = () => 'mcpServers.files.approve[0]'

function asking(answer: unknown, args: Record<string, unknown> = {}) {
  const asked: { method: string; params: Record<string, unknown> }[] = []
  const ask = async (method: string, params: Json) => {
    asked.push({ method, params: params.value as Record<string, unknown> })
    return Json.of(answer)
  }
  const { caller, peer } = callOf()
  const call = callOf({
    caller: { ...caller, capabilities: { elicitation: {} } },
    peer: { ...peer, ask },
    input: { arguments: Json.of(args), meta: {} },
  })
  return { asked, call }
}

const refusal = {
  code: 'DENIED_BY_POLICY',
  details: { rule: 'mcpServers.files.approve[0]', auditReason: 'not_approved' },
}

test('a tool that needs a yes runs when a person has said it, having seen what is to be done', async () => {
  const { asked, call } = asking({ action: 'accept', content: { approve: true } }, { to: '/etc/x\u202e' })
  await expect(openPipeline({ needsApproval }).handle(call)).resolves.toMatchObject({ isError: false })
  expect(asked).toMatchObject([
    { method: 'elicitation/create', params: { requestedSchema: { required: ['approve'] } } },
  ])
  expect(asked[0]?.params.message).toContain('wants to call files.read with {"to":"/etc/x\\u{202e}"}')
})

test.each([
  { action: 'accept', content: { approve: false } },
  { action: 'accept', content: { approve: 'true' } },
  { action: 'accept' },
  { action: 'decline' },
  { action: 'cancel' },
  {},
])('anything but a yes is a no: %j', async (answer) => {
  const { call } = asking(answer)
  await expect(openPipeline({ needsApproval }).handle(call)).rejects.toMatchObject(refusal)
})

test('where nobody can be asked it is refused', async () => {
  await expect(openPipeline({ needsApproval }).handle(callOf())).rejects.toMatchObject(refusal)
  const { caller } = callOf()
  const onlyRoots = callOf({ caller: { ...caller, capabilities: { roots: {} } } })
  await expect(openPipeline({ needsApproval }).handle(onlyRoots)).rejects.toThrow('cannot ask anybody')
})

test('a person who does not answer has not said yes', async () => {
  const { call } = asking({})
  const silent = { ...call.peer, ask: (_: string, __: Json, signal: AbortSignal) => unanswered(signal) }
  const { handle, clock } = openPipeline({ needsApproval })
  const caught = expect(handle({ ...call, peer: silent })).rejects.toMatchObject(refusal)
  await clock.pass(600_000)
  await caught
  expect(clock.pending).toBe(0)
})

const unanswered = (signal: AbortSignal) =>
  new Promise<Json>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
