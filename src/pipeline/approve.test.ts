import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { until } from '../../tests/fixtures/until.ts'
import { callOf } from '../core/call.fixture.ts'
import type { Call } from '../core/call.ts'
import { createBudgets } from '../core/limits/budget.ts'
import { Json } from '../json/json.ts'
import { type Approvals, createApprovals } from './approvals.ts'
import { approvalBy, openPipeline } from './pipeline.fixture.ts'

const approval = approvalBy('mcpServers.files.approve[0]')

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

test('a tool that needs approval runs after a person has approved the call as shown', async () => {
  const { asked, call } = asking({ action: 'accept', content: { approve: true } }, { to: '/etc/x\u202e' })
  await expect(openPipeline({ approval }).handle(call)).resolves.toMatchObject({ isError: false })
  expect(asked).toMatchObject([
    { method: 'elicitation/create', params: { requestedSchema: { required: ['approve'] } } },
  ])
  expect(asked[0]?.params.message).toContain('wants to call files.read with {"to":"/etc/x\\u{202e}"}')
})

const yes = { action: 'accept', content: { approve: true } }

/** What a person was shown of these arguments. */
async function shown(args: Record<string, unknown>): Promise<string> {
  const { asked, call } = asking(yes, args)
  await openPipeline({ approval }).handle(call)
  return /wants to call files\.read with (.*)\. Allow this once\?$/s.exec(String(asked[0]?.params.message))?.[1] ?? ''
}

const digest = (text: string) => createHash('sha256').update(text).digest('hex')

test('V8: approve: arguments of a few kilobytes are shown in full, the long ones last', async () => {
  const note = `${'x'.repeat(6_000)}; rm -rf /`
  const nested = { deep: ['y'.repeat(1_000)] }
  expect(await shown({ note, nested, path: '/etc/passwd', force: true })).toBe(
    `{"path":"/etc/passwd","force":true,"note":"${note}","nested":${JSON.stringify(nested)}}`,
  )
})

test('V8: approve: of longer arguments, beginning and end are shown, with the length and the digest of what is not', async () => {
  const note = `begin${'x'.repeat(100_000)}end`
  const text = await shown({ note, path: '/etc/passwd', force: true })
  const left = 100_008 - 2_000
  expect(text).toBe(
    `{"path":"/etc/passwd","force":true,"note":"${note.slice(0, 1_000)}"… (${left} of 100008 characters left out, SHA-256 of all: ${digest(note)}) …"${note.slice(-1_000)}"}`,
  )
  const changed = await shown({ note: note.replace('xxx', 'xyx'), path: '/etc/passwd', force: true })
  expect(changed).not.toBe(text)
  // Ten such values are shortened more, and so are names.
  const name = 'k'.repeat(9_000)
  const many = await shown({
    ...Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`n${at}`, note])),
    [name]: 1,
  })
  expect(many.match(/99808 of 100008 characters left out/g)).toHaveLength(10)
  expect(many).toContain(`(8900 of 9000 characters left out, SHA-256 of all: ${digest(name)}) …"${'k'.repeat(50)}":1`)
  expect(many.length).toBeLessThan(8_000)
})

test('V8: approve: the client learns that the inbox has the rest, if there is one', async () => {
  const approvals = createApprovals({ budget: createBudgets().approvals, clock: createManualClock() })
  const message = async (length: number, at: typeof approval) => {
    const { asked, call } = asking(yes, { note: 'x'.repeat(length) })
    await openPipeline({ approval: at }).handle(call)
    return String(asked[0]?.params.message)
  }
  expect(await message(20_000, approval)).not.toContain('toolway approvals')
  approvals.accept()
  const shared = approvalBy('agents.dev.approve[0]', { approvals, by: ['admins', 'client'] })
  expect(await message(20_000, shared)).toContain('toolway approvals')
  expect(await message(100, shared)).not.toContain('toolway approvals')
  // What the inbox cannot show either is not announced there.
  expect(await message(100_000, shared)).not.toContain('toolway approvals')
})

test('approve: no text can pose as the end of an argument, and hidden characters are escaped everywhere', async () => {
  expect(await shown({ a: '"… (9 characters),"b":1', 'c\u200bd': ['\u202e'] })).toBe(
    '{"a":"\\"… (9 characters),\\"b\\":1","c\\u{200b}d":["\\u{202e}"]}',
  )
  // Both parts of a shortened value are quoted, and a character of two halves is not cut in two.
  const list = [`${'x'.repeat(997)}😀${'\u202e'.repeat(9_000)}😀${'x'.repeat(997)}`]
  const json = JSON.stringify(list)
  expect(await shown({ a: list })).toBe(
    `{"a":"[\\"${'x'.repeat(997)}"… (9004 of ${json.length} characters left out, SHA-256 of all: ${digest(json)}) …"${'x'.repeat(997)}\\"]"}`,
  )
})

test('approve: the name of a tool cannot pose as its arguments, or push them out of sight', async () => {
  const asked = async (name: string) => {
    const { asked, call } = asking(yes, { path: '/etc/passwd' })
    await openPipeline({ approval }).handle({ ...call, entry: { ...call.entry, name } })
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
  const refused = openPipeline({ approval }).handle(call)
  await expect(refused).rejects.toMatchObject({
    ...refusal,
    message: expect.stringMatching(/too long to show/),
  })
  expect(asked).toEqual([])
})

test('approve: a property: if a question is asked, it shows the name of every argument', async () => {
  const args = fc.dictionary(fc.stringMatching(/^[a-z]{1,12}$/), fc.jsonValue(), { maxKeys: 40 })
  await fc.assert(
    fc.asyncProperty(args, async (given) => {
      const { asked, call } = asking(yes, given)
      await openPipeline({ approval })
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
])('an answer without approve: true is a refusal: %j', async (answer) => {
  const { call } = asking(answer)
  await expect(openPipeline({ approval }).handle(call)).rejects.toMatchObject(refusal)
})

test('a call is refused if the client cannot be asked', async () => {
  await expect(openPipeline({ approval }).handle(callOf())).rejects.toMatchObject(refusal)
  const { caller } = callOf()
  const onlyRoots = callOf({ caller: { ...caller, capabilities: { roots: {} } } })
  await expect(openPipeline({ approval }).handle(onlyRoots)).rejects.toThrow('elicitation')
})

test('V8: a client that can only open URLs is not asked with a form', async () => {
  const { asked, call } = asking(yes)
  const onlyUrls = { ...call, caller: { ...call.caller, capabilities: { elicitation: { url: {} } } } }
  await expect(openPipeline({ approval }).handle(onlyUrls)).rejects.toMatchObject(refusal)
  expect(asked).toEqual([])
})

test('V4: a question without an answer in time is a refusal', async () => {
  const { call } = asking({})
  const silent = { ...call.peer, ask: (_: string, __: Json, signal: AbortSignal) => unanswered(signal) }
  const { handle, clock } = openPipeline({ approval })
  const caught = expect(handle({ ...call, peer: silent })).rejects.toMatchObject({
    ...refusal,
    message: expect.stringContaining('300 s (approvals.wait)'),
  })
  await clock.pass(300_000)
  await caught
  expect(clock.pending).toBe(0)
})

const unanswered = (signal: AbortSignal) =>
  new Promise<Json>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

describe('V8: people who answer outside the client', () => {
  /** A pipeline whose calls wait for people, and one call of a client without elicitation. */
  const waiting = (by = ['admins', 'client'], changes: Parameters<typeof callOf>[0] = {}) => {
    const budgets = createBudgets()
    const approvals = createApprovals({ budget: budgets.approvals, clock: createManualClock() })
    const people = approvals.accept()
    const observers = [{ ended() {} }]
    const clock = createManualClock()
    const pipeline = openPipeline({
      approval: approvalBy('agents.dev.approve[0]', { approvals, by }),
      watch: { observers, clock },
      clock,
    })
    const call = callOf(changes)
    return { ...pipeline, approvals, people, budgets, call, clock }
  }
  const only = ({ approvals }: { approvals: Approvals }) => {
    const [first, ...more] = approvals.list()
    expect(more).toEqual([])
    return first!
  }
  const waits = (approvals: Approvals) => until(() => approvals.list().length > 0, { what: 'an approval' })

  test('a call of a client without elicitation waits, is shown in full and runs once allowed', async () => {
    const args = Json.of({ path: '/etc/x\u202e', note: 'x'.repeat(10_000) })
    const at = waiting(undefined, { input: { arguments: args, meta: {} } })
    const result = at.handle(at.call)
    await waits(at.approvals)
    const approval = only(at)
    expect(approval).toMatchObject({
      ...{ call: 'c1', agent: 'default', principal: 'test', session: 's1', server: 'files', tool: 'read' },
      rule: 'agents.dev.approve[0]',
    })
    expect(approval.until - approval.askedAt).toBe(300_000)
    expect(JSON.parse(approval.arguments.replace('\\u{202e}', ''))).toEqual({
      path: '/etc/x',
      note: 'x'.repeat(10_000),
    })
    expect(at.approvals.answer(approval.id, { decision: 'once', by: 'key:alice' })).toBe(true)
    expect(at.approvals.answer(approval.id, { decision: 'deny', by: 'key:bob' })).toBe(false)
    await expect(result).resolves.toMatchObject({ isError: false })
    expect(at.ends()).toMatchObject([{ decision: 'ALLOW', approval: 'once', approver: 'key:alice' }])
    expect([at.approvals.list(), at.budgets.approvals.used, at.clock.pending]).toEqual([[], 0, 0])
  })

  test('a denial is recorded, and the model reads the reason as the words of a person', async () => {
    const at = waiting()
    const result = at.handle(at.call)
    await waits(at.approvals)
    at.approvals.answer(only(at).id, { decision: 'deny', by: 'token', reason: 'Not on "Fridays"\u202e' })
    await expect(result).rejects.toMatchObject({
      code: 'DENIED_BY_POLICY',
      message: expect.stringContaining('"Not on \\"Fridays\\"\\u{202e}"'),
    })
    expect(at.ends()).toMatchObject([
      { decision: 'DENY', reason: 'not_approved', approval: 'deny', approver: 'token', rule: 'agents.dev.approve[0]' },
    ])
  })

  test('an approval for the session covers the same caller, session and tool until it is forgotten', async () => {
    const at = waiting()
    const first = at.handle(at.call)
    await waits(at.approvals)
    at.approvals.answer(only(at).id, { decision: 'session', by: 'token' })
    await first
    await at.handle(at.call)
    expect(at.ends()[1]).toMatchObject({ approval: 'session', approver: 'token' })
    const { caller, entry } = at.call
    const others: Partial<Call>[] = [
      { caller: { ...caller, session: 's2' } },
      { caller: { ...caller, principal: 'other' } },
      { caller: { ...caller, agent: 'other' } },
      { entry: { ...entry, name: 'write' } },
    ]
    for (const other of others) {
      const stop = new AbortController()
      const refused = expect(at.handle(callOf({ ...other, signal: stop.signal }))).rejects.toThrow('enough')
      await waits(at.approvals)
      stop.abort(new Error('enough'))
      await refused
    }
    at.approvals.sessionEnded('s1')
    const again = at.handle(at.call)
    await waits(at.approvals)
    at.approvals.answer(only(at).id, { decision: 'session', by: 'token' })
    await again
    at.approvals.forgetGrants()
    const last = expect(at.handle(at.call)).rejects.toMatchObject({ code: 'OVERLOADED' })
    await waits(at.approvals)
    at.people[Symbol.dispose]()
    await last
  })

  test('the wait is limited, and the client gets progress', async () => {
    const told: unknown[] = []
    const { peer } = callOf()
    const at = waiting(undefined, {
      peer: { ...peer, notify: (_, params) => void told.push(params.value) },
      input: { arguments: Json.of({}), meta: { progressToken: 'p' } },
    })
    const refused = expect(at.handle(at.call)).rejects.toMatchObject({
      code: 'DENIED_BY_POLICY',
      message: expect.stringContaining('300 s (approvals.wait)'),
    })
    await at.clock.pass(2_000)
    expect(told).toMatchObject([
      { progressToken: 'p' },
      { progressToken: 'p', message: expect.stringContaining('2 s') },
    ])
    await at.clock.pass(298_000)
    await refused
    expect([at.approvals.list(), at.budgets.approvals.used, at.clock.pending]).toEqual([[], 0, 0])
  })

  test('V6: one caller may have a limited number of waiting calls', async () => {
    const at = waiting()
    const stop = new AbortController()
    const calls = Array.from({ length: at.budgets.approvals.perCaller }, () =>
      at.handle(callOf({ signal: stop.signal })).catch(() => 'stopped'),
    )
    await until(() => at.budgets.approvals.used === calls.length, { what: 'all to wait' })
    await expect(at.handle(at.call)).rejects.toMatchObject({ code: 'OVERLOADED' })
    stop.abort()
    await Promise.all(calls)
    expect(at.budgets.approvals.used).toBe(0)
  })

  test('the first answer counts: the question to the client is withdrawn, and a client that fails decides nothing', async () => {
    const { caller, peer } = callOf()
    const capable = { ...caller, capabilities: { elicitation: {} } }
    let withdrawn = false
    const silent = {
      ...peer,
      ask: (_: string, __: Json, signal: AbortSignal) =>
        unanswered(signal).finally(() => {
          withdrawn = true
        }),
    }
    const at = waiting(undefined, { caller: capable, peer: silent })
    const result = at.handle(at.call)
    await waits(at.approvals)
    at.approvals.answer(only(at).id, { decision: 'once', by: 'token' })
    await result
    expect(withdrawn).toBe(true)

    const failing = waiting(undefined, { caller: capable })
    const second = failing.handle(failing.call)
    await waits(failing.approvals)
    failing.approvals.answer(only(failing).id, { decision: 'once', by: 'token' })
    await expect(second).resolves.toMatchObject({ isError: false })

    const { asked, call } = asking(yes)
    const third = waiting()
    await third.handle(call)
    expect([asked.length, third.approvals.list()]).toEqual([1, []])
    expect(third.ends()).toMatchObject([{ approval: 'once', approver: 'client' }])
  })

  test('the client is not asked if its user may not answer, and arguments too long to be shown are refused', async () => {
    const { asked, call } = asking(yes)
    const at = waiting(['key:boss'])
    const result = at.handle(call)
    await waits(at.approvals)
    expect(asked).toEqual([])
    at.approvals.answer(only(at).id, { decision: 'once', by: 'key:boss' })
    await result
    const long = callOf({ input: { arguments: Json.of({ text: 'x'.repeat(70_000) }), meta: {} } })
    await expect(at.handle(long)).rejects.toMatchObject({ message: expect.stringContaining('too long') })
    at.people[Symbol.dispose]()
    await expect(at.handle(call)).rejects.toMatchObject({ code: 'DENIED_BY_POLICY' })
  })
})
