import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import type { Call, Handler } from '../core/call.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import type { Observed, Observer, Tracing } from '../core/observer.ts'
import { resultOf, textResult } from '../core/result.ts'
import type { TraceContext } from '../core/trace-context.ts'
import { Json } from '../json/json.ts'
import { attemptInSteps } from './attempt.ts'
import { recordedBy } from './pipeline.fixture.ts'

const clock = createManualClock()

/** Runs one call under the eyes of an observer. */
async function watched(run: Handler, { call = callOf(), tracing }: { call?: Call; tracing?: Tracing } = {}) {
  const began: Call[] = []
  const seen: Observed[] = []
  const observer: Observer = { began: (one) => void began.push(one), ended: (one) => void seen.push(one) }
  const watch = { observers: [observer], tracing, clock }
  const answer = await recordedBy(watch, attemptInSteps(watch, [], run))(call).catch((thrown: unknown) => thrown)
  return { answer, began, observed: seen[0] as Observed, times: seen.length }
}

const failing = (thrown: unknown) => async () => {
  throw thrown
}

describe('what an observer gets', () => {
  test.each<[string, Handler, Observed['outcome']]>([
    ['an answer', async () => textResult('x'), { kind: 'answered' }],
    ["a tool's own failure", async () => resultOf({ isError: true }), { kind: 'tool_error' }],
    [
      'a refusal',
      failing(new ToolwayError('TOOL_BLOCKED', 'No.', { rule: 'r' })),
      { kind: 'denied', code: 'TOOL_BLOCKED' },
    ],
    [
      'a refusal in the form of a result',
      async () => ({ ...textResult('no'), refusal: new ToolwayError('NAMESPACE_NOT_ALLOWED', 'No.') }),
      { kind: 'denied', code: 'NAMESPACE_NOT_ALLOWED' },
    ],
    ['a limit', failing(new ToolwayError('RATE_LIMITED', 'Later.')), { kind: 'denied', code: 'RATE_LIMITED' }],
    ['a failure', failing(new ToolwayError('TIMEOUT', 'Too late.')), { kind: 'failed', code: 'TIMEOUT' }],
    [
      "a server's own error",
      failing(new ServerError(Json.of({ code: -32602, message: 'x' }))),
      { kind: 'failed', code: 'rpc -32602' },
    ],
    [
      "a server's error that is none",
      failing(new ServerError(Json.raw(Buffer.from('null')))),
      { kind: 'failed', code: 'rpc unknown' },
    ],
    ['what nobody expected', failing(new TypeError('x')), { kind: 'failed', code: 'INTERNAL' }],
  ])('F15: %s', async (_, run, outcome) => {
    const { observed, times } = await watched(run)
    expect(observed.outcome).toEqual(outcome)
    expect(times).toBe(1)
  })

  test('F15: the call, the operation and its times', async () => {
    const call = callOf()
    const { observed, began } = await watched(async () => textResult('x'), { call })
    expect(began).toMatchObject([call])
    expect(observed).toMatchObject({ call, operation: 'call_tool', at: clock.now() })
    expect(observed.ms).toBeGreaterThanOrEqual(0)
    expect(observed.start).toBeLessThanOrEqual(performance.now())
  })

  test('observing does not change the result or error of a call', async () => {
    const result = textResult('x')
    const error = new TypeError('x')
    expect((await watched(async () => result)).answer).toBe(result)
    expect((await watched(failing(error))).answer).toBe(error)
  })

  test('each attempt is a step, with the code of what ended it', async () => {
    const { observed } = await watched(failing(new ToolwayError('SERVER_UNAVAILABLE', 'x')))
    const [step] = observed.trail.steps
    expect(step).toMatchObject({ name: 'attempt', error: 'SERVER_UNAVAILABLE' })
    expect(step?.end).toBeGreaterThanOrEqual(step?.start as number)
  })

  test('a call that only carries others makes no attempt', async () => {
    const entry = entryOf({ traits: { readOnly: true, idempotent: true, timeoutMs: 1, carries: true } })
    const { observed } = await watched(async () => textResult('x'), { call: callOf({ entry }) })
    expect(observed.trail.steps).toEqual([])
  })
})

describe('F16: the trace context of a call', () => {
  const place = (traceparent: string): TraceContext => ({ traceparent })
  const tracing: Tracing = { enter: () => place('own'), attempt: () => place('attempt') }

  test('is set for the handler of each attempt and for the observers', async () => {
    const seen: Call[] = []
    const run: Handler = async (call) => {
      seen.push(call)
      return textResult('x')
    }
    const { observed } = await watched(run, { tracing, call: callOf({ trace: place('parent') }) })
    expect(seen[0]?.trace).toEqual(place('attempt'))
    expect(observed.call.trace).toEqual(place('parent'))
    expect(observed.trail.trace).toEqual(place('own'))
    expect(observed.trail.steps[0]?.trace).toEqual(place('attempt'))
  })

  test('an attempt without its own context has that of its call', async () => {
    const seen: Call[] = []
    const run: Handler = async (call) => {
      seen.push(call)
      return textResult('x')
    }
    await watched(run, { tracing: { ...tracing, attempt: () => undefined } })
    expect(seen[0]?.trace).toEqual(place('own'))
  })

  test('is undefined without tracing', async () => {
    const seen: Call[] = []
    const { observed } = await watched(async (call) => {
      seen.push(call)
      return textResult('x')
    })
    expect(seen[0]).not.toHaveProperty('trace')
    expect(observed.trail).toEqual({
      decided: expect.any(Number),
      steps: [expect.not.objectContaining({ trace: expect.anything() })],
    })
  })
})

test('F16: without observers, a call has no trail', async () => {
  const seen: Call[] = []
  await recordedBy({ observers: [], clock }, async (call) => {
    seen.push(call)
    return textResult('x')
  })(callOf())
  expect(seen.map(({ trail }) => trail)).toEqual([undefined])
})
