import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { callOf, entryOf } from '../core/call.fixture.ts'
import type { Handler } from '../core/call.ts'
import type { ChatRequest } from '../core/chat.ts'
import { systemClock } from '../core/clock.ts'
import { endWith } from '../core/deadline.ts'
import type { Decide } from '../core/decision.ts'
import { type ErrorCode, ToolwayError } from '../core/errors.ts'
import type { Observed } from '../core/observer.ts'
import { textResult } from '../core/result.ts'
import { Json } from '../json/json.ts'
import { approvalBy, keptAudit, openPipeline } from './pipeline.fixture.ts'

const deny: Decide = () => ({ allowed: false, code: 'TOOL_BLOCKED', rule: 'policy.blockedTools[0]', reason: 'No.' })

/** A call that leaves a mark where it arrives. */
function marked() {
  const ran: string[] = []
  const run: Handler = async ({ entry }) => {
    ran.push(entry.name)
    return textResult('ran')
  }
  const schema = { type: 'object' }
  return { ran, call: callOf({ entry: entryOf({ run, definition: { inputSchema: schema } }) }) }
}

test('F7: a denied call never reaches its entry, and the error names the rule', async () => {
  const { ran, call } = marked()
  await expect(openPipeline({ decide: deny }).handle(call)).rejects.toMatchObject({
    code: 'TOOL_BLOCKED',
    data: { code: 'TOOL_BLOCKED', rule: 'policy.blockedTools[0]', server: 'files' },
  })
  expect(ran).toEqual([])
})

test('F15: observers get every call once, however it ended', async () => {
  const told: unknown[] = []
  const watch = { observers: [{ ended: (observed: Observed) => told.push(observed) }], clock: systemClock }
  await openPipeline({ watch }).handle(callOf())
  await openPipeline({ watch, decide: deny })
    .handle(callOf())
    .catch(() => {})
  expect(told).toMatchObject([
    { call: { id: 'c1' }, operation: 'call_tool', outcome: { kind: 'answered' } },
    { call: { id: 'c1' }, outcome: { kind: 'denied', code: 'TOOL_BLOCKED' } },
  ])
})

test('F15: a chat that the policy refuses is counted as a denial, once, but not a failure of its answer', async () => {
  const counted: string[] = []
  const denied = (code: string) => void counted.push(code)
  const { caller, signal, peer } = callOf()
  const request: ChatRequest = { id: 'chat1', caller, signal, peer, model: 'm', messages: [] }
  const refusal = new ToolwayError('DENIED_BY_POLICY', 'No.')
  await expect(openPipeline({ decide: deny, denied }).answerChat(request, async () => {})).rejects.toMatchObject({
    code: 'TOOL_BLOCKED',
  })
  await expect(openPipeline({ denied }).answerChat(request, () => Promise.reject(refusal))).rejects.toBe(refusal)
  expect(counted).toEqual(['TOOL_BLOCKED'])
})

describe('the order', () => {
  const refusing = (code: ErrorCode) => () => {
    throw new ToolwayError(code, 'refused')
  }
  const limits = (asked: string[]) => ({
    limitsOf: () => [{ key: 'k', perMinute: 1, rule: 'limits.perMinute', scope: '' }],
    buckets: {
      take: () => {
        asked.push('limits')
        return { allowed: false as const, key: 'k', retryAfterMs: 5 }
      },
    },
    clock: openPipeline().clock,
  })

  test('F8, F9: a call that is refused by policy, by its arguments or by a guard does not count towards a limit', async () => {
    const asked: string[] = []
    const outcome = async (changes: Parameters<typeof openPipeline>[0]) => {
      const { ran, call } = marked()
      const { code } = await openPipeline({ limits: limits(asked), ...changes })
        .handle(call)
        .then(() => ({ code: 'none' }))
        .catch((error) => error)
      expect(ran).toEqual([])
      return [code, asked.length]
    }
    const guards = new Map([['files', refusing('INVALID_PATH')]])
    expect(await outcome({ decide: deny })).toEqual(['TOOL_BLOCKED', 0])
    expect(await outcome({ validate: refusing('INVALID_ARGUMENTS'), guards })).toEqual(['INVALID_ARGUMENTS', 0])
    expect(await outcome({ guards })).toEqual(['INVALID_PATH', 0])
    expect(await outcome({ approval: approvalBy('r') })).toEqual(['RATE_LIMITED', 1])
  })

  test('F9: a tool that checks its own arguments is not checked twice; prompts have no schema, but guards look at them', async () => {
    const validate = refusing('INVALID_ARGUMENTS')
    const definition = { inputSchema: { type: 'object' } }
    const own = openPipeline({ validate })
    const prompt = callOf({ entry: entryOf({ kind: 'prompt', definition }) })
    await expect(own.handle(prompt)).resolves.toBeDefined()
    const guarded = openPipeline({ validate, guards: new Map([['files', refusing('INVALID_PATH')]]) })
    await expect(guarded.handle(prompt)).rejects.toMatchObject({ code: 'INVALID_PATH' })
    await expect(own.handle(callOf({ entry: entryOf({ definition, checksItself: true }) }))).resolves.toBeDefined()
    await expect(own.handle(callOf({ entry: entryOf({ definition }) }))).rejects.toMatchObject({
      code: 'INVALID_ARGUMENTS',
    })
  })

  test('F9: guards look at the URI of a resource, read or followed, and at its name where none is given', async () => {
    const seen: unknown[] = []
    const guards = new Map([['files', (_: object, uri?: string) => void seen.push(uri)]])
    const { handle, subscribe } = openPipeline({ guards })
    const entry = entryOf({ kind: 'resource', name: 'x://1' })
    const call = callOf({ entry })
    await handle(call)
    await handle({ ...call, input: { ...call.input, uri: 'x://2' } })
    await subscribe(call.caller, { name: 'x', entry, definition: {}, uri: 'x://3' }, () => {})
    await handle(callOf())
    expect(seen).toEqual(['x://1', 'x://2', 'x://3', undefined])
  })

  test('F9: checks that take a while are waited for', async () => {
    const slow = async () => {
      await Promise.resolve()
      throw new ToolwayError('UNSAFE_URL', 'refused')
    }
    const { ran, call } = marked()
    const { handle } = openPipeline({ guards: new Map([['files', slow]]) })
    await expect(handle(call)).rejects.toMatchObject({ code: 'UNSAFE_URL' })
    expect(ran).toEqual([])
  })
})

test('G6: completions, task requests and subscriptions get the same decision as calls', async () => {
  const { complete, relay, subscribe } = openPipeline({ decide: deny })
  const call = callOf()
  for (const attempt of [
    () => complete(call),
    () => relay('tasks/get', call),
    () => subscribe(call.caller, { name: 'r', entry: call.entry, definition: {} }, () => {}),
  ]) {
    await expect(attempt()).rejects.toMatchObject({ code: 'TOOL_BLOCKED', details: { rule: 'policy.blockedTools[0]' } })
  }
})

test('F8: to complete and to follow is counted like a call; to ask after a task is part of the call that has started it', async () => {
  const limits = {
    limitsOf: () => [{ key: 'k', perMinute: 1, rule: 'limits.perMinute', scope: '' }],
    buckets: { take: () => ({ allowed: false as const, key: 'k', retryAfterMs: 5 }) },
    clock: openPipeline().clock,
  }
  const asked: string[] = []
  const entry = entryOf({
    relay: async (method) => {
      asked.push(method)
      return textResult('done')
    },
    subscribe: async (_, uri) => {
      asked.push(uri)
      return { async [Symbol.asyncDispose]() {} }
    },
  })
  const { complete, relay, subscribe } = openPipeline({ limits })
  const call = callOf({ entry })
  await expect(complete(call)).rejects.toMatchObject({ code: 'RATE_LIMITED' })
  const following = subscribe(call.caller, { name: 'r', entry, definition: {} }, () => {})
  await expect(following).rejects.toMatchObject({ code: 'RATE_LIMITED', details: { retryAfterMs: 5 } })
  await relay('tasks/get', call)
  expect(asked).toEqual(['tasks/get'])
})

test('a subscription calls the entry with its URI, and an entry without subscriptions gets an empty one', async () => {
  let disposed = false
  const followed: string[] = []
  const entry = entryOf({
    kind: 'template',
    name: 'x://{id}',
    subscribe: async (_, uri) => {
      followed.push(uri)
      const dispose = async () => {
        disposed = true
      }
      return { [Symbol.asyncDispose]: dispose }
    },
  })
  const { subscribe } = openPipeline()
  const subscription = await subscribe(callOf().caller, { name: 'x', entry, definition: {}, uri: 'x://1' }, () => {})
  await subscription[Symbol.asyncDispose]()
  expect([followed, disposed]).toEqual([['x://1'], true])
  const silent = await subscribe(callOf().caller, { name: 'x', entry: entryOf(), definition: {} }, () => {})
  await expect(silent[Symbol.asyncDispose]()).resolves.toBeUndefined()
})

test('a task request for a tool without tasks is refused', async () => {
  await expect(openPipeline().relay('tasks/get', callOf())).rejects.toThrow('does not support tasks/get')
})

test('an entry without completions returns none', async () => {
  const result = await openPipeline().complete(callOf({ input: { arguments: Json.of({}), meta: {} } }))
  expect(result.body.value).toEqual({ completion: { values: [], total: 0, hasMore: false } })
})

describe('B9: whether a cancelled call has been passed to its server', () => {
  const forever = new Promise<never>(() => {})

  const startedBeforeEnd = async (changes: Parameters<typeof openPipeline>[0]): Promise<boolean> => {
    const leaving = new AbortController()
    let started = false
    const starting = () => {
      started = true
    }
    const entry = entryOf({ run: () => forever })
    const answer = openPipeline(changes).handle(callOf({ entry, signal: leaving.signal, starting }))
    await setImmediate()
    leaving.abort(new ToolwayError('CANCELLED', 'The program ended.'))
    await expect(answer).rejects.toMatchObject({ code: 'CANCELLED' })
    return started
  }

  test('it has not while it waits for approval or in a queue', async () => {
    const approval = approvalBy('r')
    using _accepting = approval.approvals.accept()
    expect(await startedBeforeEnd({ approval })).toBe(false)
    expect(await startedBeforeEnd({ bulkhead: ({ signal }) => endWith(signal, forever) })).toBe(false)
  })

  test('it has while the server works on it', async () => {
    expect(await startedBeforeEnd({})).toBe(true)
  })
})

test('T5: a subscription whose audit record cannot be written is ended', async () => {
  const events: string[] = []
  const entry = entryOf({
    kind: 'resource',
    subscribe: async () => {
      events.push('subscribed')
      return { [Symbol.asyncDispose]: async () => void events.push('ended') }
    },
  })
  const audit = keptAudit({ end: () => Promise.reject(new ToolwayError('AUDIT_UNAVAILABLE', 'The disk is full.')) })
  const { subscribe } = openPipeline({ audit })
  const following = subscribe(callOf().caller, { name: 'r', entry, definition: {} }, () => {})
  await expect(following).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' })
  expect(events).toEqual(['subscribed', 'ended'])
})
