import fc from 'fast-check'
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

const yes = { action: 'accept', content: { approve: true } }

/** What a person was shown of these arguments. */
async function shown(args: Record<string, unknown>): Promise<string> {
  const { asked, call } = asking(yes, args)
  await openPipeline({ needsApproval }).handle(call)
  return /wants to call files\.read with (.*)\. Allow this once\?$/s.exec(String(asked[0]?.params.message))?.[1] ?? ''
}

test('approve: a long argument hides none that comes after it: each is shortened on its own', async () => {
  const text = await shown({ note: 'x'.repeat(100_000), path: '/etc/passwd', force: true })
  expect(text).toBe(`{"note":"${'x'.repeat(200)}"… (100000 characters),"path":"/etc/passwd","force":true}`)
})

test('approve: what is nested is cut as the JSON that it is, and absurd names are cut too', async () => {
  const nested = { deep: ['y'.repeat(1_000)] }
  const json = JSON.stringify(nested)
  expect(await shown({ nested, small: { a: [1, null] }, ['k'.repeat(500)]: 1 })).toBe(
    `{"nested":${json.slice(0, 200)}… (${json.length} characters),"small":{"a":[1,null]},"${'k'.repeat(100)}"… (500 characters):1}`,
  )
})

test('approve: no text can pose as the end of an argument, and what hides in one is spelt out wherever it stands', async () => {
  expect(await shown({ a: '"… (9 characters),"b":1', 'c\u200bd': ['\u202e'] })).toBe(
    '{"a":"\\"… (9 characters),\\"b\\":1","c\\u{200b}d":["\\u{202e}"]}',
  )
  // A character of two halves is not cut in two.
  expect(await shown({ a: `${'x'.repeat(199)}😀!` })).toBe(`{"a":"${'x'.repeat(199)}"… (202 characters)}`)
})

test('approve: the name of a tool cannot pose as its arguments, or push them out of sight', async () => {
  const asked = async (name: string) => {
    const { asked, call } = asking(yes, { path: '/etc/passwd' })
    await openPipeline({ needsApproval }).handle({ ...call, entry: { ...call.entry, name } })
    return String(asked[0]?.params.message)
  }
  expect(await asked('notes/read:v1.2-x')).toContain('files.notes/read:v1.2-x with {"path":"/etc/passwd"}. Allow')
  expect(await asked('read with {"path":"/a"}. Allow this once?')).toContain(
    'files."read with {\\"path\\":\\"/a\\"}. Allow this once?" with {"path":"/etc/passwd"}. Allow',
  )
  const long = await asked('read '.repeat(10_000))
  expect(long).toContain('… (50000 characters) with {"path":"/etc/passwd"}. Allow')
  expect(long.length).toBeLessThan(300)
})

test('approve: more arguments than a person can be shown are refused without asking', async () => {
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`key${index}`, index]))
  const { asked, call } = asking(yes, { ...many, force: true })
  const refused = openPipeline({ needsApproval }).handle(call)
  await expect(refused).rejects.toMatchObject({
    ...refusal,
    message: expect.stringMatching(/too long to show/),
  })
  expect(asked).toEqual([])
})

test('approve: a property: whatever else is sent, every name is shown or nobody is asked', async () => {
  const args = fc.dictionary(fc.stringMatching(/^[a-z]{1,12}$/), fc.jsonValue(), { maxKeys: 40 })
  await fc.assert(
    fc.asyncProperty(args, async (given) => {
      const { asked, call } = asking(yes, given)
      await openPipeline({ needsApproval })
        .handle(call)
        .catch(() => {})
      const [question] = asked
      if (question) for (const name of Object.keys(given)) expect(question.params.message).toContain(`"${name}":`)
    }),
  )
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
  await expect(openPipeline({ needsApproval }).handle(onlyRoots)).rejects.toThrow('elicitation')
})

test('V4: a person who does not answer has not said yes', async () => {
  const { call } = asking({})
  const silent = { ...call.peer, ask: (_: string, __: Json, signal: AbortSignal) => unanswered(signal) }
  const { handle, clock } = openPipeline({ needsApproval })
  const caught = expect(handle({ ...call, peer: silent })).rejects.toMatchObject({
    ...refusal,
    message: expect.stringContaining('600 s (a fixed limit)'),
  })
  await clock.pass(600_000)
  await caught
  expect(clock.pending).toBe(0)
})

const unanswered = (signal: AbortSignal) =>
  new Promise<Json>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
