import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../tests/fixtures/any-character.ts'
import { isSampled, readTraceContext, spanIdOf, traceFlags, traceIdOf } from './trace-context.ts'

const trace = '0af7651916cd43dd8448eb211c80319c'
const span = 'b7ad6b7169203331'
const traceparent = `00-${trace}-${span}-01`

describe('F16: a trace context is parsed strictly', () => {
  test('traceparent, tracestate and baggage are read, with trace id, span id and flags', () => {
    const context = readTraceContext({ traceparent, tracestate: 'rojo=00f067aa0ba902b7', baggage: 'user=me' })
    expect(context).toEqual({ traceparent, tracestate: 'rojo=00f067aa0ba902b7', baggage: 'user=me' })
    expect(context && [traceIdOf(context), spanIdOf(context), traceFlags(context), isSampled(context)]).toEqual([
      trace,
      span,
      1,
      true,
    ])
  })

  test.each([
    ['nothing', undefined],
    ['no text', 7],
    ['empty text', ''],
    ['capital letters', traceparent.toUpperCase()],
    ['no trace', `00-${'0'.repeat(32)}-${span}-01`],
    ['no span', `00-${trace}-${'0'.repeat(16)}-01`],
    ['a short trace id', `00-${trace.slice(1)}-${span}-01`],
    ['more than version 00 has', `${traceparent}-x`],
    ['a version that can never be', `ff-${trace}-${span}-01`],
    ['a space before it', ` ${traceparent}`],
    ['a line behind it', `${traceparent}\n`],
    ['two of them, as HTTP joins them', `${traceparent}, ${traceparent}`],
  ])('%s is not a trace context', (_, malformed) => {
    expect(readTraceContext({ traceparent: malformed, tracestate: 'a=1', baggage: 'b=2' })).toBeUndefined()
  })

  test('of a later version, the part that this version defines is read', () => {
    expect(readTraceContext({ traceparent: `cc-${trace}-${span}-01-what-the-future-brings` })).toEqual({ traceparent })
  })

  test.each(['00', '02', 'fe'])('the flags %s do not mean sampled', (flags) => {
    expect(isSampled({ traceparent: `00-${trace}-${span}-${flags}` })).toBe(false)
  })

  test.each([
    ['tracestate', 'Capital=1'],
    ['tracestate', 'a=1,b'],
    ['tracestate', 'a=1\r\nx-injected: 1'],
    ['tracestate', `a=${'x'.repeat(512)}`],
    ['tracestate', Array.from({ length: 33 }, (_, index) => `k${index}=1`).join(',')],
    ['tracestate', ' , '],
    ['tracestate', { a: 1 }],
    ['baggage', 'no value'],
    ['baggage', 'a=1\u0000'],
    ['baggage', 'a=ü'],
    ['baggage', `a=${'x'.repeat(8_192)}`],
    ['baggage', ['a=1']],
  ])('a malformed %s is left out: %j', (key, value) => {
    expect(readTraceContext({ traceparent, [key]: value })).toEqual({ traceparent })
  })

  test.each([
    ['tracestate', 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE'],
    ['tracestate', ' 1tenant@vendor=a b , foo=2,'],
    ['baggage', 'userId=alice,serverNode=DF%2028,isProduction=false'],
    ['baggage', 'key1=value1;property1;property2, key2 = value2, key3='],
  ])('a well-formed %s is passed on unchanged: %j', (key, value) => {
    expect(readTraceContext({ traceparent, [key]: value })).toEqual({ traceparent, [key]: value })
  })

  test('every accepted value is valid in a header, and hostile text is parsed quickly', () => {
    const spaces = `a=${' '.repeat(8_000)}"`
    expect(readTraceContext({ traceparent, baggage: spaces })).toEqual({ traceparent })
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), fc.string(), (tracestate, baggage) => {
        const context = readTraceContext({ traceparent, tracestate, baggage })
        for (const value of Object.values(context ?? {})) expect(value).toMatch(/^[\x20-\x7e\t]+$/)
      }),
    )
  })
})
