import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import type { Call, Peer } from '../core/call.ts'
import { type RpcErrorObject, ServerError, ToolwayError } from '../core/errors.ts'
import type { CapturedCall } from '../core/history.ts'
import { silentLog } from '../core/log.ts'
import { textResult } from '../core/result.ts'
import { Json } from '../json/json.ts'
import { type CaptureOptions, capture } from './capture.ts'
import { openPipeline } from './pipeline.fixture.ts'

function open(changes: Partial<CaptureOptions> = {}) {
  const kept: CapturedCall[] = []
  const interceptor = capture({
    wants: ({ entry }) => entry.server === 'files',
    store: { put: (call) => void kept.push(call), find: () => undefined },
    json: (value, maxBytes) => ({
      ...{ text: value.bytes.toString().slice(0, maxBytes), bytes: value.bytes.length },
      ...{ truncated: value.bytes.length > maxBytes, redacted: false },
    }),
    redact: (text) => text.replace('hunter2', '[redacted]'),
    maxBytesPerCall: 1_000,
    clock: createManualClock(),
    log: silentLog,
    ...changes,
  })
  return { kept, ...openPipeline({ capture: interceptor }) }
}

const running = (run: (call: Call) => ReturnType<Call['entry']['run']>, changes: Partial<Call> = {}) =>
  callOf({ entry: entryOf({ run }), input: { arguments: Json.of({ path: '/a' }), meta: {} }, ...changes })

test('V11: the arguments are captured when the call begins, the result when it ends', async () => {
  const { handle, kept } = open()
  let during: CapturedCall | undefined
  await handle(
    running(async () => {
      during = kept[0]
      return textResult('done')
    }),
  )
  expect(during).toMatchObject({ id: 'c1', arguments: { text: '{"path":"/a"}' }, result: undefined })
  expect(kept[1]).toMatchObject({ id: 'c1', server: 'files', name: 'read', agent: 'default', principal: 'test' })
  expect(kept[1]?.result?.text).toContain('done')
})

test('V11: nothing is captured of calls that did not opt in, nor of completions', async () => {
  const { handle, complete, kept } = open()
  await handle(callOf({ entry: entryOf({ server: 'other' }) }))
  await complete(callOf())
  expect(kept).toEqual([])
})

test('V11: errors are captured with their redacted text', async () => {
  const { handle, kept } = open()
  const failing = (error: unknown) => handle(running(() => Promise.reject(error))).catch(() => {})
  await failing(new ToolwayError('TIMEOUT', 'no answer for hunter2'))
  await failing(new ServerError(Json.of<RpcErrorObject>({ code: -32602, message: 'bad' })))
  expect(kept[1]?.error).toEqual({ code: 'TIMEOUT', message: 'no answer for [redacted]' })
  expect(kept[3]?.error).toEqual({ code: 'rpc -32602', message: 'bad' })
})

test('V11: progress is captured, also for callers that did not ask for it; they still get none', async () => {
  const { handle, kept } = open()
  const heard: string[] = []
  const peer = { ...callOf().peer, notify: (method: string) => void heard.push(method) }
  const report = async ({ peer, input }: Call) => {
    const { progressToken } = input.meta
    expect(progressToken).toBeDefined()
    for (let progress = 1; progress <= 120; progress++) {
      peer.notify('notifications/progress', Json.of({ progressToken, progress, total: 120, message: 'hunter2' }))
    }
    peer.notify('notifications/message', Json.of({}))
    return textResult('x')
  }
  await handle(running(report, { peer }))
  expect(heard).toEqual(['notifications/message'])
  const { progress, droppedProgress } = kept[1] as CapturedCall
  expect({ count: progress.length, droppedProgress }).toEqual({ count: 100, droppedProgress: 20 })
  expect(progress.at(-1)).toMatchObject({ progress: 120, total: 120, message: '[redacted]' })
  const input = { arguments: Json.of({}), meta: { progressToken: 7 } }
  await handle(running(report, { peer, input }))
  expect(heard.filter((method) => method === 'notifications/progress')).toHaveLength(120)
})

test('V11: the parts of one call share its limit', async () => {
  const { handle, kept } = open()
  const input = { arguments: Json.of({ text: 'x'.repeat(5_000) }), meta: {} }
  await handle(running(async () => textResult('y'.repeat(5_000)), { input }))
  const { arguments: args, result } = kept[1] as CapturedCall
  expect(args).toMatchObject({ truncated: true, bytes: 5_011 })
  expect(args.text.length + (result?.text.length ?? 0)).toBeLessThanOrEqual(1_000)
})

test('V11: a failure to capture does not affect the call', async () => {
  const store = {
    put() {
      throw new Error('full')
    },
    find: () => undefined,
  }
  const { handle } = open({ store })
  expect((await handle(running(async () => textResult('done')))).isError).toBe(false)
})

test.each([
  ['without a progress token', undefined],
  ['with a progress token', 'p'],
])(
  'V11: a captured call passes on who asks a question and which request it belongs to, %s',
  async (_, progressToken) => {
    const { handle } = open()
    const from: unknown[] = []
    let request: unknown
    const peer = {
      ...callOf().peer,
      request: { id: 7, revision: '2025-11-25' },
      ask: async (...params: Parameters<Peer['ask']>) => {
        from.push(params[3])
        return Json.of({})
      },
    }
    const ask = async ({ peer, signal }: Call) => {
      request = peer.request
      await peer.ask('elicitation/create', Json.of({}), signal, 'toolway')
      await peer.ask('elicitation/create', Json.of({}), signal)
      return textResult('done')
    }
    const caller = { ...callOf().caller, capabilities: { elicitation: {} } }
    await handle(running(ask, { caller, peer, input: { arguments: Json.of({}), meta: { progressToken } } }))
    expect(from).toEqual(['toolway', undefined])
    expect(request).toEqual({ id: 7, revision: '2025-11-25' })
  },
)
