import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import type { ExecutionOutcome } from '../../core/executor.ts'
import { type CallStatus, codeAnswer, type InnerCall } from './answer.ts'

/** Any half of a character: cheaper to make than whole ones, and worse. */
const anyUnit = fc.nat(0xffff).map((code) => String.fromCharCode(code))

const ok: ExecutionOutcome = { status: 'ok', logs: '', truncated: [], isolation: 'bwrap', durationMs: 12.4 }
const call = (tool: string, status: CallStatus = 'ok', code?: string): InnerCall => ({
  tool,
  status,
  ...(code && { code }),
  durationMs: 1.25,
})

test('S7: a small outcome is complete, without empty members', () => {
  expect(codeAnswer({ ...ok, value: '{"a":[1,null]}' }, [])).toEqual({
    status: 'ok',
    value: { a: [1, null] },
    isolation: 'bwrap',
    durationMs: 12,
  })
  const failed: ExecutionOutcome = {
    ...ok,
    status: 'error',
    logs: 'hello\n',
    truncated: ['The log was cut.'],
    error: { name: 'TypeError', message: 'x is not a function', line: 3, column: 7 },
    reset: 'Its engine had failed.',
  }
  expect(codeAnswer(failed, [call('s.t', 'unknown', 'TIMEOUT')])).toEqual({
    status: 'error',
    error: { name: 'TypeError', message: 'x is not a function', line: 3, column: 7 },
    logs: 'hello\n',
    calls: [{ tool: 's.t', status: 'unknown', code: 'TIMEOUT', durationMs: 1 }],
    reset: 'Its engine had failed.',
    truncated: ['The log was cut.'],
    isolation: 'bwrap',
    durationMs: 12,
  })
})

test('V5: numbers in the value keep all their digits', () => {
  const value = '[9007199254740993,{"n":1267650600228229401496703205376},1e400,"\\ud800"]'
  expect(JSON.stringify(codeAnswer({ ...ok, value }, []).value)).toBe(value.replace('\\ud800', '\ufffd'))
})

describe('at most 24,000 characters reach a model', () => {
  test('S7: a long value is cut in the middle and says so; beginning and end stay', () => {
    const value = JSON.stringify(Array.from({ length: 5000 }, (_, row) => ({ row })))
    const answer = codeAnswer({ ...ok, value }, [])
    expect(JSON.stringify(answer).length).toBeLessThanOrEqual(24_000)
    expect(JSON.stringify(answer).length).toBeGreaterThan(22_000)
    expect(answer.value).toMatch(/^\[\{"row":0\}.*characters left out\] … .*\{"row":4999\}\]$/)
    expect(answer.truncated).toEqual([expect.stringContaining(`(${value.length} characters)`)])
  })

  test('S7: a long log leaves space for the value, and a short one leaves it its own', () => {
    const answer = codeAnswer({ ...ok, value: '"v"', logs: 'l'.repeat(60_000) }, [])
    expect(answer.value).toBe('v')
    expect(answer.logs?.length).toBeGreaterThan(20_000)
    expect(answer.truncated).toEqual([expect.stringContaining('printed')])
    const both = codeAnswer({ ...ok, value: JSON.stringify('v'.repeat(60_000)), logs: 'l'.repeat(60_000) }, [])
    expect(String(both.value).length).toBeGreaterThan(3 * (both.logs?.length ?? 0) - 1000)
  })

  test('S7: for any value, output, error and calls', () => {
    const words = fc.oneof(
      fc.string({ unit: anyUnit, maxLength: 300 }),
      fc
        .tuple(fc.constantFrom('"', '\\', '\n', '\ud800', 'ü', '😀', '\u0000', 'a'), fc.nat(30_000))
        .map(([one, times]) => one.repeat(times)),
    )
    const calls = fc.array(
      fc.tuple(
        fc.constantFrom('s.t', '\ud800', 'é'.repeat(300), '\\'.repeat(300)),
        fc.constantFrom<CallStatus>('ok', 'error', 'refused', 'unknown'),
      ),
      {
        maxLength: 200,
      },
    )
    fc.assert(
      fc.property(words, words, words, calls, (value, logs, message, made) => {
        const outcome: ExecutionOutcome = {
          ...ok,
          value: JSON.stringify(value),
          logs,
          status: 'error',
          error: { name: 'Error', message },
          truncated: [message, message],
          reset: message,
        }
        const answer = codeAnswer(
          outcome,
          made.map(([tool, status]) => call(tool, status)),
        )
        const text = JSON.stringify(answer)
        expect(text.length).toBeLessThanOrEqual(24_000)
        expect(/[^\\](\\\\)*\\ud[89a-f]/i.test(text)).toBe(false)
      }),
      runs(3, 15),
    )
  })

  test('S7: a value that cannot be read, or is nested too deeply to be written out, is text', () => {
    expect(codeAnswer({ ...ok, value: '{"a":' }, []).value).toBe('{"a":')
    const deep = '['.repeat(100_000) + ']'.repeat(100_000)
    expect(codeAnswer({ ...ok, value: deep }, []).value).toMatch(/^\[+ … \[\d+ of 200000 characters left out\] … \]+$/)
  })
})

test('S7: many calls are summarized by count, equal ones together, in order', () => {
  const made = [
    ...Array(70).fill(call('db.insert')),
    call('db.insert', 'error', 'TOOL_ERROR'),
    ...Array(29).fill(call('db.insert')),
  ]
  expect(codeAnswer(ok, made).calls).toEqual([
    { tool: 'db.insert', status: 'ok', count: 70, durationMs: 88 },
    { tool: 'db.insert', status: 'error', code: 'TOOL_ERROR', durationMs: 1 },
    { tool: 'db.insert', status: 'ok', count: 29, durationMs: 36 },
  ])
})

test('S7: calls that are not listed are counted by what came of them', () => {
  const made = Array.from({ length: 200 }, (_, at) => call(`s.t${at}`, at % 2 ? 'ok' : 'unknown'))
  const { calls, truncated } = codeAnswer(ok, made)
  expect(calls).toHaveLength(60)
  expect(truncated).toEqual(['140 more calls are not listed: 70 unknown, 70 ok.'])
})
