import { describe, expect, test } from 'vitest'
import { createKeptLog } from '../../tests/fixtures/log.ts'
import type { Access, Served, View } from '../core/access.ts'
import type { Call, Caller } from '../core/call.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import { type Result, resultOf, textResult } from '../core/result.ts'
import { Json } from '../json/json.ts'
import { programAccess } from './program-access.ts'

const caller: Caller = {
  agent: 'default',
  agents: '*',
  principal: 'local',
  authenticated: true,
  admin: true,
  session: 'local',
  capabilities: {},
}

/** A program's access to one tool, which does what `run` does. */
function programWith(run: (call: Call) => Promise<Result> | Result, { isClosed = false } = {}) {
  const log = createKeptLog()
  const served = { entry: { kind: 'tool', server: 's', name: 't', definition: {} } } as Served
  const found = { resolve: async () => served, find: async () => served }
  const view: Partial<View> = { ...found, ready: async () => {}, shown: () => [served] }
  const access: Pick<Access, 'view' | 'handle'> = { view: () => view as View, handle: async (call) => run(call) }
  return { log, ...programAccess({ access, localAs: () => caller, isClosed: () => isClosed, log }) }
}

const echo = ({ input }: Call) => resultOf({ content: [], structuredContent: input.arguments.value })

describe('V26: the calls of a program', () => {
  test.each([{ agnet: 'a' }, { agent: 5 }, { agent: '' }, { principal: '' }, { timeout: 5 }, 'a', null])(
    'options that would be ignored are refused: %j',
    async (options) => {
      const { list, call, batch } = programWith(echo)
      await expect(list(options as never)).rejects.toThrow(TypeError)
      await expect(call('t', {}, options as never)).rejects.toThrow(TypeError)
      await expect(batch([], options as never)).rejects.toThrow(TypeError)
    },
  )

  test('null is an absent option', async () => {
    const { list, call } = programWith(({ caller }) => resultOf({ content: [], structuredContent: caller.principal }))
    const absent = { agent: null, principal: null, timeoutMs: null } as never
    expect(await call('t', {}, absent)).toMatchObject({ structuredContent: 'local' })
    expect(await list({ server: null } as never)).toHaveLength(1)
  })

  test('what is not a call is refused in a batch, and the others run', async () => {
    const { batch } = programWith(echo)
    await expect(batch('x' as never)).rejects.toThrow(TypeError)
    const { results } = await batch([{ tool: 't' } as never, null as never, { server: 's', tool: 't' }])
    const refused = { ok: false, error: { code: 'INVALID_ARGUMENTS' } }
    expect(results).toMatchObject([refused, refused, { ok: true }])
  })

  test('V5: arguments are what their JSON says, when the call is made', async () => {
    const { call } = programWith(echo)
    const at = new Date(0)
    const args = { at, none: undefined, not: Number.NaN, own: { toJSON: () => 'short' }, list: [1] }
    const answer = call('t', args)
    args.list.push(2)
    const { structuredContent } = await answer
    expect(structuredContent).toEqual({ at: at.toISOString(), not: null, own: 'short', list: [1] })
    expect(Object.keys(structuredContent as object)).not.toContain('none')
  })

  const circle: Record<string, unknown> = {}
  circle.circle = circle
  const getter = {
    get a() {
      throw new Error('no')
    },
  }
  test.each<[string, unknown]>([
    ['a circle', circle],
    ['a bigint', { n: 1n }],
    ['a getter that throws', getter],
    ['a list', [1]],
    ['text', 'x'],
    ['null', null],
    ['an object that is text in JSON', { toJSON: () => 'x' }],
    ['an object that is nothing in JSON', { toJSON: () => undefined }],
  ])('%s is refused as arguments, in a batch as well', async (_, args) => {
    const { call, batch } = programWith(echo)
    await expect(call('t', args as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
    const { results } = await batch([{ server: 's', tool: 't', args: args as never }])
    expect(results).toMatchObject([{ ok: false, error: { code: 'INVALID_ARGUMENTS' } }])
  })

  test('each call gets its own copy of the result, as clients do', async () => {
    const kept = resultOf({ content: [], structuredContent: { at: new Date(0), list: [1] } })
    const { call } = programWith(() => kept)
    const read = async () => (await call('t')).structuredContent as { at: string; list: number[] }
    const first = await read()
    first.list.push(2)
    expect([first.at, (await read()).list]).toEqual([new Date(0).toISOString(), [1]])
  })

  test('a listener for progress that fails changes no outcome', async () => {
    const { call, batch, log } = programWith(({ peer, input }) => {
      peer.notify('notifications/progress', Json.of({ progressToken: input.meta.progressToken, progress: 1 }))
      return textResult('done')
    })
    const failing = () => {
      throw new Error('a bug in the listener')
    }
    const rejecting: () => void = async () => failing()
    for (const onProgress of [failing, rejecting]) {
      expect(await call('t', {}, { onProgress })).toMatchObject({ content: [{ text: 'done' }] })
      const { results } = await batch([{ server: 's', tool: 't' }], { onProgress })
      expect(results).toMatchObject([{ ok: true }])
    }
    expect(log.lines).toHaveLength(4)
    expect(log.lines[0]).toMatchObject({ level: 'error', facts: { err: { message: 'a bug in the listener' } } })
  })

  test('E2: every failure is a ToolwayError, whose cause is logged if it was unexpected', async () => {
    const unexpected = new TypeError('a bug in a schema')
    const failing = programWith(() => Promise.reject(unexpected))
    await expect(failing.call('t')).rejects.toMatchObject({ code: 'INTERNAL', cause: unexpected })
    expect(failing.log.lines).toMatchObject([{ level: 'error', facts: { err: unexpected } }])
    for (const thrown of [new ToolwayError('TIMEOUT', 'late'), new ServerError(Json.of({ code: 1, message: 'no' }))]) {
      const { call, log } = programWith(() => Promise.reject(thrown))
      await expect(call('t')).rejects.toBe(thrown)
      expect(log.lines).toEqual([])
    }
  })

  test('a gateway that was disposed of says so', async () => {
    const { call, batch, list } = programWith(echo, { isClosed: true })
    for (const refused of [call('t'), batch([]), list()])
      await expect(refused).rejects.toMatchObject({
        code: 'SERVER_UNAVAILABLE',
        message: expect.stringContaining('disposed'),
      })
  })

  test.each([Number.NaN, 0, -1, '50'])('F10: a timeout of %s is refused', async (timeoutMs) => {
    const { call, batch } = programWith(echo)
    const wrong = { timeoutMs: timeoutMs as number }
    await expect(call('t', {}, wrong)).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
    await expect(batch([], wrong)).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })
})
