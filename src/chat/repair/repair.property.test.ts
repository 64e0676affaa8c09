import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { parseObject } from '../parse-answer.ts'
import { documents, flawed, pairs } from './flaws.fixture.ts'
import type { RepairResult } from './reader.ts'
import { repair } from './repair.ts'
import { containers, isPrefix, sloppiness, written } from './sloppy.fixture.ts'

const container = fc.oneof(containers.object, containers.array)
const each = runs(30, 10_000)

const repaired = (text: string): RepairResult => {
  const found = repair(text)
  expect(found, text).toHaveProperty('value')
  return found as RepairResult
}

const same = (value: unknown, text: string): void => {
  expect(JSON.stringify(repaired(text).value), text).toBe(JSON.stringify(value))
}

test('S4: valid JSON is returned unchanged', () => {
  fc.assert(
    fc.property(container, fc.constantFrom(undefined, 2), (value, indent) => {
      const { repairs, complete, ...found } = repaired(` ${JSON.stringify(value, null, indent)}\n`)
      expect([repairs, complete]).toEqual([[], true])
      expect(JSON.stringify(found.value)).toBe(JSON.stringify(value))
    }),
    each,
  )
})

const prose = fc
  .array(
    fc.constantFrom(
      "Here's",
      'the',
      'my "answer":',
      'you',
      'asked',
      'for,',
      '(see',
      '[note])',
      'it’s',
      '100%',
      '\n',
      '- so',
      '{it}',
      'e.g.',
      '`x`',
    ),
    {
      maxLength: 12,
    },
  )
  .map((words) => words.join(' '))

test('S4: prose around a value does not hide it', () => {
  const filled = containers.object.filter((value) => JSON.stringify(value).length > 12)
  fc.assert(
    fc.property(prose, filled, prose, fc.constantFrom(undefined, 2), (before, value, after, indent) => {
      same(value, `${before}\n${JSON.stringify(value, null, indent)}\n${after}`)
    }),
    each,
  )
})

test('S4: fences, thoughts and tokens around a value do not hide it', () => {
  const around = fc.constantFrom(
    ['```json\n', '\n```'],
    ['Sure:\n```\n', '\n```\nThere you are.'],
    ['<think>Is it {"a": 1}? No, it\'s [2].</think>\n', ''],
    ['hm, {"b": 2}\n</think>\n```json\n', '\n```'],
    ['', '<|im_end|>\n'],
    ['<tool_call>', '</tool_call>'],
    ['\ufeff', ' </s>'],
  )
  fc.assert(
    fc.property(around, container, ([before, after], value) =>
      same(value, `${before}${JSON.stringify(value, null, 1)}${after}`),
    ),
    each,
  )
})

test('S4: quotes, keys, commas, comments and words of other languages are understood', () => {
  fc.assert(
    fc.property(container, sloppiness, (value, how) => same(value, written(value, how))),
    runs(60, 10_000),
  )
})

test('S4: truncated text gives a partial value, marked as incomplete', () => {
  fc.assert(
    fc.property(
      container,
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.constantFrom(undefined, 2),
      (value, share, indent) => {
        const text = JSON.stringify(value, null, indent)
        const cut = text.slice(0, 1 + Math.floor(share * (text.length - 1)))
        const found = repaired(cut)
        expect(isPrefix(found.value, value), `${cut} became ${JSON.stringify(found.value)}`).toBe(true)
        expect(found.complete).toBe(cut.length === text.length)
      },
    ),
    runs(60, 10_000),
  )
})

test('S4: a repaired value can be written as JSON and read again', () => {
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    "'",
    ',',
    ':',
    '\\',
    'a',
    '1',
    'true',
    '\n',
    ' ',
    '```',
    '//',
    '/*',
    '<think>',
    '“',
    '=>',
    'f(',
    '...',
    '-',
    '\ud83d',
  )
  const text = fc
    .array(fc.oneof(pieces, pieces, fc.string({ maxLength: 4 })), { maxLength: 60 })
    .map((all) => all.join(''))
  fc.assert(
    fc.property(text, (given) => {
      const found = repair(given)
      if (!('value' in found)) return
      const again = JSON.stringify(found.value)
      expect(JSON.stringify(repaired(again).value)).toBe(again)
    }),
    runs(160, 30_000),
  )
})

test.each(pairs)('S4: two flaws at once are repaired: %s and %s', (...pair) => {
  fc.assert(
    fc.property(documents, fc.integer({ min: 1, max: 1_000_000 }), (value, seed) => {
      const text = flawed(value, pair, seed)
      fc.pre(text !== undefined)
      const read = parseObject(text, { accepts: () => true, ended: true })
      if ('problem' in read && isUnclear(pair)) expect(read.problem, text).toContain('unclear')
      else expect(read, text).toEqual({ value })
    }),
    runs(3, 500),
  )
})

/** If a quote is missing and another quote or comma, too, it may be unclear where a string ends. */
const isUnclear = (pair: readonly string[]): boolean =>
  pair.includes('missing closing quote') && (pair.includes('missing opening quote') || pair.includes('missing comma'))

test('S4: a truncated value is not acted upon; one that lacks only brackets is', () => {
  fc.assert(
    fc.property(documents, fc.double({ min: 0, max: 1, noNaN: true }), (value, share) => {
      const text = JSON.stringify(value)
      const cut = text.slice(0, 1 + Math.floor(share * (text.length - 1)))
      const read = parseObject(cut, { accepts: () => true })
      const closed = ['', '}', ']}', '}}'].some((end) => isJson(cut + end))
      expect('value' in read, cut).toBe(closed && !/[\d{[]$/.test(cut))
    }),
    runs(60, 10_000),
  )
})

function isJson(text: string): boolean {
  try {
    jsonValue(text)
    return true
  } catch {
    return false
  }
}
