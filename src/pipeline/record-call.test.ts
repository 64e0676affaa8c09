import { describe, expect, test, vi } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import type { View } from '../core/access.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import type { Observer } from '../core/observer.ts'
import { resultOf, textResult } from '../core/result.ts'
import { Json } from '../json/json.ts'
import { approvalBy, emptyView, keptAudit, openPipeline, refusing } from './pipeline.fixture.ts'

const reading = { readOnly: true, idempotent: true, timeoutMs: 30_000 }

test('F11: a call is recorded before and after, with its caller, its subject, and the rule that allowed it', async () => {
  const { handle, records } = openPipeline()
  const seen: number[] = []
  const run = async () => {
    seen.push(records.length)
    return textResult('done')
  }
  const caller = { ...callOf().caller, address: '192.0.2.7' }
  const input = { arguments: Json.of({ path: '/tmp/x' }), meta: {} }
  await handle(callOf({ parent: 'c0', caller, input, entry: entryOf({ run }) }))
  const subject = {
    call: 'c1',
    parent: 'c0',
    agent: 'default',
    principal: 'test',
    address: '192.0.2.7',
    operation: 'call_tool',
    kind: 'tool',
    server: 'files',
    tool: 'read',
    write: true,
  }
  expect(seen).toEqual([1])
  expect(records).toEqual([
    { ...subject, arguments: { path: '/tmp/x' } },
    { ...subject, decision: 'ALLOW', rule: 'everything', is_error: false, latency_ms: expect.any(Number) },
  ])
})

test('F11: an anonymous caller is recorded as one, and a resource under the URI that was asked for', async () => {
  const { handle, records } = openPipeline()
  const caller = { ...callOf().caller, authenticated: false }
  const entry = entryOf({ kind: 'template', name: 'db://{table}', traits: reading })
  await handle(callOf({ caller, entry, input: { arguments: Json.of({}), uri: 'db://users', meta: {} } }))
  expect(records[0]).toMatchObject({
    anonymous: true,
    operation: 'read_resource',
    kind: 'template',
    tool: 'db://{table}',
    write: false,
    arguments: { uri: 'db://users' },
  })
})

const failing = (error: unknown) => entryOf({ run: () => Promise.reject(error) })

describe('F11: how a call ended', () => {
  const end = async (error: unknown) => {
    const { handle, ends } = openPipeline()
    await handle(callOf({ entry: failing(error) })).catch(() => {})
    return ends()[0]
  }

  test('a refusal is a denial with its reason and rule', async () => {
    const details = { rule: 'agents.a.deny.servers[0]', auditReason: 'server_not_allowed' }
    expect(await end(new ToolwayError('DENIED_BY_POLICY', 'No.', details))).toMatchObject({
      decision: 'DENY',
      reason: 'server_not_allowed',
      rule: 'agents.a.deny.servers[0]',
      code: 'DENIED_BY_POLICY',
    })
    expect(await end(new ToolwayError('RATE_LIMITED', 'No.'))).toMatchObject({
      decision: 'DENY',
      reason: 'rate_limited',
    })
  })

  test('F11, F15: a call whose inner call is refused is a denial too, with the same code', async () => {
    const outcomes: unknown[] = []
    const observer: Observer = { ended: ({ call, outcome }) => outcomes.push([call.id, outcome]) }
    const clock = createManualClock()
    const { handle, ends } = openPipeline({
      watch: { observers: [observer], clock },
      decide: (_, { server }) =>
        server === 'toolway'
          ? { allowed: true, rule: 'everything' }
          : { allowed: false, code: 'TOOL_BLOCKED', rule: 'policy.blockedTools[0]', reason: 'No.' },
    })
    const run = () => handle(callOf({ id: 'inner', parent: 'outer' }))
    const refused = handle(callOf({ id: 'outer', entry: entryOf({ server: 'toolway', name: 'execute_tool', run }) }))
    await expect(refused).rejects.toMatchObject({
      code: 'TOOL_BLOCKED',
      data: { rule: 'policy.blockedTools[0]', server: 'files' },
    })
    expect(ends()).toMatchObject([
      { call: 'inner', decision: 'DENY', code: 'TOOL_BLOCKED' },
      { call: 'outer', decision: 'DENY', code: 'TOOL_BLOCKED', is_error: true },
    ])
    expect(outcomes).toEqual([
      ['inner', { kind: 'denied', code: 'TOOL_BLOCKED' }],
      ['outer', { kind: 'denied', code: 'TOOL_BLOCKED' }],
    ])
  })

  test('F11: the records of a meta-tool name the server that it was asked about', async () => {
    const { handle, records } = openPipeline()
    const entry = entryOf({ server: 'toolway', name: 'get_server_tools' })
    await handle(callOf({ entry, input: { arguments: Json.of({ server: 'files' }), meta: {} } }))
    await handle(callOf({ input: { arguments: Json.of({ server: 'other' }), meta: {} } }))
    expect(records.map(({ target }) => target)).toEqual(['files', 'files', undefined, undefined])
  })

  test('so is a call whose inner call names something that is denied, hidden or not', async () => {
    const denial = new ToolwayError('DENIED_BY_POLICY', 'No.', { auditReason: 'server_not_allowed' })
    for (const thrown of [denial, new ToolwayError('TOOL_NOT_FOUND', 'Nothing.').concealing(denial)]) {
      const view: View = { ...emptyView, find: () => Promise.reject(thrown) }
      const { handle, ends, view: audited } = openPipeline({ view: () => view })
      const { caller } = callOf()
      const run = async () => {
        await audited(caller).find('tool', 'files', 'read', { parent: 'outer' })
        return textResult('found')
      }
      await handle(callOf({ id: 'outer', entry: entryOf({ run }) })).catch(() => {})
      expect(ends()).toMatchObject([
        { parent: 'outer', decision: 'DENY', reason: 'server_not_allowed' },
        { call: 'outer', decision: 'DENY', reason: 'server_not_allowed' },
      ])
    }
  })

  test('a failure is an error, a timeout a timeout, a bug an internal error', async () => {
    expect(await end(new ToolwayError('SERVER_UNAVAILABLE', 'x'))).toMatchObject({
      decision: 'ERROR',
      reason: 'server_unavailable',
    })
    expect(await end(new ToolwayError('TIMEOUT', 'x'))).toMatchObject({ decision: 'TIMEOUT', code: 'TIMEOUT' })
    expect(await end(new TypeError('x'))).toMatchObject({ decision: 'ERROR', reason: 'internal', code: 'INTERNAL' })
    expect(await end(new ServerError(Json.of({ code: -1, message: 'x' })))).toMatchObject({
      decision: 'ERROR',
      reason: 'server_error',
      is_error: true,
    })
  })

  test('a result with isError is recorded as allowed, with is_error', async () => {
    const { handle, ends } = openPipeline()
    await handle(callOf({ entry: entryOf({ run: async () => resultOf({ content: [], isError: true }) }) }))
    expect(ends()[0]).toMatchObject({ decision: 'ALLOW', is_error: true })
  })

  test('a server cannot pose as a denial: a result with our error object is recorded as what ran', async () => {
    const _meta = { 'dev.toolway/error': { code: 'DENIED_BY_POLICY', rule: 'agents.a.deny.servers[0]' } }
    const { handle, ends } = openPipeline()
    await handle(callOf({ entry: entryOf({ run: async () => resultOf({ content: [], isError: true, _meta }) }) }))
    expect(ends()[0]).toMatchObject({ decision: 'ALLOW', is_error: true })
    expect(ends()[0]).not.toMatchObject({ rule: 'agents.a.deny.servers[0]' })
  })

  test('a result that contains a refusal is a denial', async () => {
    const refusal = new ToolwayError('DENIED_BY_POLICY', 'No.', { rule: 'r', auditReason: 'server_not_allowed' })
    const run = async () => ({ ...resultOf({ content: [], isError: true }), refusal, listing: { returned: 0 } })
    const { handle, ends } = openPipeline()
    await handle(callOf({ entry: entryOf({ run }) }))
    expect(ends()[0]).toMatchObject({ decision: 'DENY', reason: 'server_not_allowed', rule: 'r', returned: 0 })
  })

  test('the record of a listing has the numbers of requested and returned entries, and of tokens', async () => {
    const run = async () => ({ ...textResult('x'), listing: { requested: 3, returned: 2, tokens: 40 } })
    const { handle, ends } = openPipeline()
    await handle(callOf({ entry: entryOf({ run }) }))
    expect(ends()[0]).toMatchObject({ requested: 3, returned: 2, tokens: 40 })
  })
})

describe('F11: the answer', () => {
  const unavailable = () => new ToolwayError('AUDIT_UNAVAILABLE', 'The disk is full.')

  test('waits for its record, a denial too', async () => {
    const written = Promise.withResolvers<void>()
    const audit = keptAudit({ end: () => written.promise })
    let answered = 0
    const count = () => answered++
    const allowed = openPipeline({ audit }).handle(callOf()).then(count)
    const refused = openPipeline({ audit }).handle(callOf({ entry: failing(new ToolwayError('TOOL_BLOCKED', 'x')) }))
    const caught = refused.catch(count)
    await new Promise(setImmediate)
    expect(answered).toBe(0)
    written.resolve()
    await Promise.all([allowed, caught])
    expect(answered).toBe(2)
  })

  test('is withheld if its record cannot be written', async () => {
    const audit = keptAudit({ end: () => Promise.reject(unavailable()) })
    await expect(openPipeline({ audit }).handle(callOf())).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' })
  })

  test('a call whose first record cannot be written does not run', async () => {
    let ran = false
    const run = async () => {
      ran = true
      return textResult('x')
    }
    const audit = keptAudit({
      begin() {
        throw unavailable()
      },
    })
    await expect(openPipeline({ audit }).handle(callOf({ entry: entryOf({ run }) }))).rejects.toMatchObject({
      code: 'AUDIT_UNAVAILABLE',
    })
    expect([ran, audit.records]).toEqual([false, []])
  })
})

test('F11: each refusal of the operator is recorded, however many there are', async () => {
  const denial = { allowed: false, code: 'TOOL_BLOCKED', rule: 'r', reason: 'No.' } as const
  const { handle, ends } = openPipeline({ decide: () => denial })
  const caller = { ...callOf().caller, admin: true }
  for (let count = 0; count < 700; count++) await handle(callOf({ caller })).catch(() => {})
  expect(ends().filter(({ code }) => code === 'TOOL_BLOCKED')).toHaveLength(700)
})

test('F11: a call that only carries others is not a write, nor are subscribing and completing', async () => {
  const { handle, complete, relay, subscribe, ends } = openPipeline()
  const call = callOf()
  await handle(callOf({ entry: entryOf({ traits: { ...entryOf().traits, carries: true } }) }))
  await complete(call)
  await relay('tasks/cancel', callOf({ entry: entryOf({ relay: async () => textResult('x') }) }))
  await subscribe(call.caller, { name: 'r', entry: call.entry, definition: {}, uri: 'x://1' }, () => {})
  expect(ends().map(({ operation, write }) => [operation, write])).toEqual([
    ['call_tool', false],
    ['complete', false],
    ['tasks/cancel', true],
    ['subscribe', false],
  ])
})

describe('F11: a view', () => {
  test('records its lists', () => {
    const { view, ends } = openPipeline()
    expect(view(callOf().caller).page('tool').count).toBe(2)
    expect(ends()).toMatchObject([
      { operation: 'list', kind: 'tool', decision: 'ALLOW', returned: 2, tokens: 2, write: false, agent: 'default' },
    ])
  })

  test('records failed lookups', async () => {
    const { view, ends } = openPipeline()
    const seen = view(callOf().caller)
    await expect(seen.resolve('tool', 'x'.repeat(900))).rejects.toMatchObject({ code: 'TOOL_NOT_FOUND' })
    await expect(seen.find('prompt', 'files', 'hello')).rejects.toMatchObject({ code: 'TOOL_NOT_FOUND' })
    expect(ends()).toMatchObject([
      { operation: 'call_tool', tool: 'x'.repeat(900), brief: true, decision: 'ERROR', reason: 'tool_not_found' },
      { operation: 'get_prompt', server: 'files', tool: 'hello', decision: 'ERROR' },
    ])
  })

  test('names the server that a failed lookup was for, even if the response does not', async () => {
    const down = new ToolwayError('SERVER_UNHEALTHY', 'It cannot be reached.', { server: 'down' })
    const denial = new ToolwayError('DENIED_BY_POLICY', 'Not for you.', { server: 'vault', rule: 'agents.a' })
    const errors = [down, new ToolwayError('TOOL_NOT_FOUND', 'There is no such tool.').concealing(denial)]
    const resolve = () => Promise.reject(errors.shift())
    const ownName: View['ownName'] = (_, server, spelling) => spelling.split(`${server}__`)[1]
    const { view, ends } = openPipeline({ view: () => ({ ...emptyView, resolve, ownName }) })
    const seen = view(callOf().caller)
    await expect(seen.resolve('tool', 'down__x')).rejects.toBe(down)
    await expect(seen.resolve('tool', 'vault__x')).rejects.toMatchObject({ data: { server: undefined } })
    expect(ends()).toMatchObject([
      { operation: 'call_tool', server: 'down', tool: 'x', decision: 'ERROR', reason: 'server_unhealthy' },
      { operation: 'call_tool', server: 'vault', tool: 'x', decision: 'DENY' },
    ])
  })

  test('F15: counts lookups that the policy refuses, hidden or not, but not those that find nothing', async () => {
    const denial = new ToolwayError('DENIED_BY_POLICY', 'Not for you.')
    const hidden = new ToolwayError('TOOL_NOT_FOUND', 'There is no such tool.').concealing(denial)
    const errors = [denial, hidden, new ToolwayError('TOOL_NOT_FOUND', 'There is no such tool.')]
    const counted: string[] = []
    const resolve = () => Promise.reject(errors.shift())
    const denied = (code: string) => void counted.push(code)
    const { view } = openPipeline({ view: () => ({ ...emptyView, resolve }), denied })
    for (const parent of [undefined, 'outer', undefined]) {
      await expect(view(callOf().caller).resolve('tool', 'vault__x', { parent })).rejects.toThrow()
    }
    expect(counted).toEqual(['DENIED_BY_POLICY', 'DENIED_BY_POLICY'])
  })

  test('records a failed lookup under the operation that it was for', async () => {
    const { view, ends } = openPipeline()
    const seen = view(callOf().caller)
    await expect(seen.resolve('tool', 'x', { operation: 'find' })).rejects.toMatchObject({ code: 'TOOL_NOT_FOUND' })
    await expect(seen.find('tool', 'files', 'x', { operation: 'tasks/get' })).rejects.toThrow()
    expect(ends()).toMatchObject([{ operation: 'find' }, { operation: 'tasks/get' }])
  })

  test('records a list that fails because of an invalid cursor', () => {
    const page = () => {
      throw new ToolwayError('INVALID_ARGUMENTS', 'This cursor is unknown.')
    }
    const { view, ends } = openPipeline({ view: () => ({ ...emptyView, page }) })
    expect(() => view(callOf().caller).page('tool', 'nonsense')).toThrow('This cursor is unknown.')
    expect(ends()).toMatchObject([
      { operation: 'list', kind: 'tool', decision: 'ERROR', reason: 'invalid_arguments', is_error: true, write: false },
    ])
  })
})

test('F11: the record has the rule that allowed the call, even if the rules change before it ends', async () => {
  let rule = 'first'
  const decide = () => ({ allowed: true, rule }) as const
  const run = async () => {
    rule = 'second'
    return textResult('x')
  }
  const { handle, ends } = openPipeline({ decide })
  await handle(callOf({ entry: entryOf({ run }) }))
  expect(ends()).toMatchObject([{ decision: 'ALLOW', rule: 'first' }])
})

test('F11, B7: both records of a denied call are brief, those of an allowed one are not', async () => {
  const { allowed, denied, records } = refusing()
  await expect(denied('test', { text: 'x' })).rejects.toMatchObject({ code: 'TOOL_BLOCKED' })
  await allowed()
  expect(records.map(({ brief }) => brief)).toEqual([true, true, undefined, undefined])
})

test('F11: a decision that throws lets nothing run and leaves a record', async () => {
  const decide = () => {
    throw new Error('a rule is broken')
  }
  let ran = false
  const run = async () => {
    ran = true
    return textResult('done')
  }
  const { handle, records } = openPipeline({ decide })
  await expect(handle(callOf({ entry: entryOf({ run }) }))).rejects.toMatchObject({ code: 'INTERNAL' })
  expect(ran).toBe(false)
  expect(records).toMatchObject([
    { operation: 'call_tool', tool: 'read', decision: 'ERROR', reason: 'decision_failed', code: 'INTERNAL' },
  ])
})

test('F11: a call waits for the record of its beginning where the log wants that, and does not run without it', async () => {
  let ran = false
  const run = async () => {
    ran = true
    return textResult('done')
  }
  const refused = new ToolwayError('AUDIT_UNAVAILABLE', 'The disk fails.')
  const { handle } = openPipeline({ audit: keptAudit({ begin: () => Promise.reject(refused) }) })
  await expect(handle(callOf({ entry: entryOf({ run }) }))).rejects.toBe(refused)
  expect(ran).toBe(false)
})

test('F11: how each attempt of a repeated call ended is in its record', async () => {
  const clock = createManualClock()
  const { handle, ends } = openPipeline({
    watch: { observers: [{ ended() {} }], clock },
    retry: async (call, next) => next(call).catch(() => next(call)),
  })
  let tried = 0
  const run = async () => {
    tried++
    if (tried === 1) throw new ToolwayError('SERVER_UNAVAILABLE', 'It is down.')
    return textResult('done')
  }
  await handle(callOf({ entry: entryOf({ run }) }))
  expect(ends()).toMatchObject([{ decision: 'ALLOW', attempts: ['SERVER_UNAVAILABLE', 'ok'] }])
  await handle(callOf({ entry: entryOf() }))
  expect(ends()[1]).not.toHaveProperty('attempts')
})

test('F11, G9: the latency in the record leaves out the time that a person took to approve the call', async () => {
  using time = vi.spyOn(performance, 'now').mockReturnValue(0)
  const watch = { observers: [{ ended() {} }], clock: createManualClock() }
  const { handle, ends } = openPipeline({ watch, approval: approvalBy('approve[0]') })
  const { caller, peer } = callOf()
  const ask = async () => {
    await new Promise((resolve) => setImmediate(resolve))
    time.mockReturnValue(60_000)
    return Json.of({ action: 'accept', content: { approve: true } })
  }
  await handle(callOf({ caller: { ...caller, capabilities: { elicitation: {} } }, peer: { ...peer, ask } }))
  expect(ends()).toMatchObject([{ approver: 'client', latency_ms: 0 }])
})

test('F11: a denial that is hidden from the caller is recorded as a denial', async () => {
  const missing = new ToolwayError('TOOL_NOT_FOUND', 'There is no tool "read".')
  const { handle, ends } = openPipeline({
    hideDenied: true,
    decide: () => ({ allowed: false, code: 'TOOL_BLOCKED', rule: 'policy.blockedTools', reason: 'It is blocked.' }),
    view: () => ({ ...emptyView, find: () => Promise.reject(missing) }),
  })
  const told = await handle(callOf()).catch((thrown: ToolwayError) => thrown)
  expect(told).toMatchObject({ message: missing.message, data: missing.data })
  expect(ends()).toMatchObject([{ decision: 'DENY', code: 'TOOL_BLOCKED', rule: 'policy.blockedTools' }])
})

test('F11: a call is recorded and observed as the agent that its agent_id names', async () => {
  const clock = createManualClock()
  const observed: string[] = []
  const { handle, records } = openPipeline({
    watch: { observers: [{ ended: ({ call }) => void observed.push(call.caller.agent) }], clock },
    actAs({ caller }, asked) {
      if (asked !== 'researcher') throw new ToolwayError('INVALID_AGENT_ID', 'You may not be that one.')
      return { ...caller, agent: asked }
    },
  })
  const call = (server: string, agent_id: unknown) => {
    const input = { arguments: Json.of({ agent_id }), meta: {} }
    const caller = { ...callOf().caller, agent: '(none)' }
    return handle(callOf({ caller, input, entry: entryOf({ server }) }))
  }
  await call('toolway', 'researcher')
  await call('toolway', 'root')
  await call('toolway', 7)
  // Arguments of other servers' tools mean nothing to us.
  await call('files', 'researcher')
  const expected = ['researcher', '(none)', '(none)', '(none)']
  expect(observed).toEqual(expected)
  expect(records.map(({ agent }) => agent)).toEqual(expected.flatMap((agent) => [agent, agent]))
})

test("V15: the first check sees the caller's arguments; all else and the record have those that the server gets", async () => {
  const seen: [string, unknown][] = []
  const see = (what: string) => (call: { input: { arguments: Json } }) => {
    seen.push([what, call.input.arguments.value])
    return undefined
  }
  const { handle, records } = openPipeline({
    validate: (_, args) => void seen.push(['validate', args]),
    guards: new Map([['files', (args) => void seen.push(['guard', args])]]),
    cache: (call, next) => {
      see('cache')(call)
      return next(call)
    },
  })
  const override = {
    ...{ name: 'look', hidden: false, tags: [] },
    check: (args: object) => void seen.push(['check', args]),
    complete: () => Json.of<Record<string, unknown>>({ a: 1, b: 2 }),
  }
  const run = async (call: { input: { arguments: Json } }) => {
    see('run')(call)
    return textResult('done')
  }
  const input = { arguments: Json.of({ a: 1 }), meta: {} }
  await handle(callOf({ input, entry: entryOf({ run, override, definition: { inputSchema: { type: 'object' } } }) }))
  const all = { a: 1, b: 2 }
  expect(seen.slice(0, 4)).toEqual([
    ['check', { a: 1 }],
    ['validate', { a: 1 }],
    ['guard', all],
    ['cache', all],
  ])
  expect(seen.at(-1)).toEqual(['run', all])
  expect(records).toMatchObject([
    { tool: 'read', served: 'look', arguments: all },
    { tool: 'read', served: 'look', decision: 'ALLOW' },
  ])
})
