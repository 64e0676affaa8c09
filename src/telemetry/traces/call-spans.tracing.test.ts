import { describe, expect, test } from 'vitest'
import { callOf } from '../../core/call.fixture.ts'
import type { Call } from '../../core/call.ts'
import { isSampled, readTraceContext, spanIdOf, traceIdOf } from '../../core/trace-context.ts'
import { createTracing, everything, type TraceSampling } from './call-spans.ts'

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const unsampled = traceparent.replace(/1$/, '0')
const tracing = (sampling: TraceSampling = everything) => createTracing(sampling, (server) => server === 'files')
const saying = (meta: Call['input']['meta']): Call => callOf({ input: { ...callOf().input, meta } })

describe('F16: the position of a call in a trace', () => {
  test('as a child of the client span in `_meta`, with the rest of the trace context', () => {
    const place = tracing().enter(saying({ traceparent, tracestate: 'a=1', baggage: 'b=2', other: 3 }))
    expect(place).toEqual({ traceparent: expect.any(String), tracestate: 'a=1', baggage: 'b=2' })
    expect(traceIdOf(place)).toBe('0af7651916cd43dd8448eb211c80319c')
    expect(spanIdOf(place)).not.toBe('b7ad6b7169203331')
    expect(isSampled(place)).toBe(true)
  })

  test('as a child of the call that made it, even if the client sent another context', () => {
    const trace = { traceparent: '00-11111111111111111111111111111111-2222222222222222-01' }
    expect(traceIdOf(tracing().enter({ ...saying({ traceparent }), trace }))).toBe('1'.repeat(32))
  })

  test.each([{}, { traceparent: 'nonsense', tracestate: 'a=1' }])('as the root of a new trace with %j', (meta) => {
    const [one, other] = [tracing().enter(saying(meta)), tracing().enter(saying(meta))]
    expect(readTraceContext(one)).toEqual(one)
    expect(Object.keys(one)).toEqual(['traceparent'])
    expect(traceIdOf(one)).not.toBe(traceIdOf(other))
  })

  test.each([everything, { parentBased: true, ratio: 0 }])(
    'keeps baggage that comes without a trace: %j',
    (sampling) => {
      const { baggage, tracestate } = tracing(sampling).enter(saying({ baggage: 'b=2', tracestate: 'a=1' }))
      expect({ baggage, tracestate }).toEqual({ baggage: 'b=2', tracestate: undefined })
      expect(tracing(sampling).enter(saying({ baggage: 'not a list' }))).not.toHaveProperty('baggage')
    },
  )

  test('an attempt has its own span below the call if it is exported', () => {
    const own = tracing().enter(callOf())
    const place = tracing().attempt({ ...callOf(), trace: own })
    expect(place && traceIdOf(place)).toBe(traceIdOf(own))
    expect(place && spanIdOf(place)).not.toBe(spanIdOf(own))
    expect(createTracing(everything, () => false).attempt({ ...callOf(), trace: own })).toBeUndefined()
  })

  test('ids are in hex and do not repeat', () => {
    const places = Array.from({ length: 3_000 }, () => tracing().enter(callOf()))
    expect(new Set(places.map(spanIdOf)).size).toBe(3_000)
    expect(new Set(places.map(traceIdOf)).size).toBe(3_000)
    for (const place of places) expect(readTraceContext(place)).toEqual(place)
  })
})

describe('F16: which traces are recorded', () => {
  test('those that their client records, and no others', () => {
    const off = { parentBased: true, ratio: 0 }
    expect(isSampled(tracing(off).enter(saying({ traceparent })))).toBe(true)
    expect(isSampled(tracing(off).enter(callOf()))).toBe(false)
    expect(tracing().enter(saying({ traceparent: unsampled }))).toEqual({ traceparent: unsampled })
  })

  test('an unrecorded call keeps one context throughout, so that no span refers to a missing parent', () => {
    const trace = tracing().enter(saying({ traceparent: unsampled }))
    expect(tracing().attempt({ ...callOf(), trace })).toBeUndefined()
    const begun = tracing({ parentBased: true, ratio: 0 }).enter(callOf())
    expect(readTraceContext(begun)).toEqual(begun)
  })

  test('without parentBased the ratio alone decides, and the flag is passed on', () => {
    const never = tracing({ parentBased: false, ratio: 0 }).enter(saying({ traceparent, tracestate: 'a=1' }))
    expect(never).toEqual({ traceparent: unsampled, tracestate: 'a=1' })
    expect(isSampled(tracing({ parentBased: false, ratio: 1 }).enter(saying({ traceparent: unsampled })))).toBe(true)
  })

  test('a share of them by their ids, so that all come to the same decision', () => {
    const half = tracing({ parentBased: false, ratio: 0.5 })
    const begun = Array.from({ length: 2_000 }, () => half.enter(callOf()))
    const share = begun.filter(isSampled).length / begun.length
    expect(share).toBeGreaterThan(0.4)
    expect(share).toBeLessThan(0.6)
    for (const place of begun) expect(isSampled(half.enter(saying({ ...place })))).toBe(isSampled(place))
  })
})
