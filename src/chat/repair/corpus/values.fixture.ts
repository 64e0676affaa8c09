import { type Case, casesOf, cutOff } from './case.fixture.ts'

/** Words and numbers as other languages write them, and texts that end too early. */
export const values: readonly Case[] = [
  ...casesOf(
    'Python words',
    ["{'a': True, 'b': False, 'c': None}", { a: true, b: false, c: null }],
    ['[True, None]', [true, null]],
    ['{"a": TRUE, "b": Null}', { a: true, b: null }],
  ),
  ...casesOf('JavaScript words', ['{"a": undefined, "b": 1}', { a: null, b: 1 }], ['{"a": void 0}', { a: null }]),
  ...casesOf(
    'not a number',
    ['{"a": NaN, "b": Infinity, "c": -Infinity}', { a: null, b: null, c: null }],
    ['[nan, -inf]', [null, null]],
  ),
  ...casesOf(
    'numbers as others write them',
    ['{"a": .5, "b": 5., "c": +3, "d": -.25}', { a: 0.5, b: 5, c: 3, d: -0.25 }],
    ['{"a": 0x1F, "b": 1_000_000, "c": 10n}', { a: 31, b: 1_000_000, c: 10 }],
    ['{"a": 1,234, "b": 12,345,678}', { a: 1234, b: 12_345_678 }],
    ['{"zip": 02134}', { zip: '02134' }],
    ['{"a": 50%, "b": $5, "c": 1/2}', { a: '50%', b: '$5', c: '1/2' }],
  ),
  ...casesOf('tuples', ["{'a': (1, 2), 'b': ('x',)}", { a: [1, 2], b: ['x'] }]),
  ...casesOf('calls', [
    '{"id": ObjectId("5f"), "n": Decimal(\'1.5\'), "d": new Date("2026")}',
    { id: '5f', n: '1.5', d: '2026' },
  ]),
  ...cutOff(
    'cut off in a container',
    ['{"a": 1, "b": [1, 2', { a: 1, b: [1, 2] }],
    ['{"a": {"b": {"c": [', { a: { b: { c: [] } } }],
    ['[{"a": 1}, {"a": 2}', [{ a: 1 }, { a: 2 }]],
    ['{"a": 1,', { a: 1 }],
    ['{', {}],
    ['```json\n{"a": [1,\n```', { a: [1] }],
    ['{"a": [1, 2<|im_end|>', { a: [1, 2] }],
  ),
  ...cutOff(
    'cut off in a string',
    ['{"a": "hello wor', { a: 'hello wor' }],
    ['{"a": "one\\', { a: 'one' }],
    ['{"a": "one \\u00', { a: 'one ' }],
    ['{"a": ["x", "y', { a: ['x', 'y'] }],
    ['{"a": "hello<|endoftext|>', { a: 'hello' }],
    ['{"a": "x \\ud83d', { a: 'x ' }],
  ),
  ...cutOff(
    'cut off in a key',
    ['{"a": 1, "b', { a: 1 }],
    ['{"a": 1, "b"', { a: 1 }],
    ['{"a": 1, "b":', { a: 1 }],
    ['{"a": 1, b', { a: 1 }],
  ),
  ...cutOff(
    'cut off in a word',
    ['{"a": tr', { a: true }],
    ['{"a": fals', { a: false }],
    ['[1, nul', [1, null]],
    ["{'a': Tru", { a: true }],
  ),
  ...cutOff('cut off in a number', ['{"a": 12.', { a: 12 }], ['{"a": 1, "b": -', { a: 1 }], ['[1, 2e', [1, 2]]),
  ...casesOf(
    'a key that is no ordinary one',
    [`{'__proto__': {'x': 1}, 'b': 2}`, JSON.parse('{"__proto__": {"x": 1}, "b": 2}')],
    ['{constructor: {prototype: 1}}', { constructor: { prototype: 1 } }],
  ),
  ...casesOf(
    'everything at once',
    [
      "Sure!\n```json\n{reasoning: 'it's the best', // why\n 'selected_tools': [\"a\", 'b',],}\n```",
      { reasoning: "it's the best", selected_tools: ['a', 'b'] },
    ],
    ['<think>hm</think>Answer: {\'a\': True, "b": [1, 2, }', { a: true, b: [1, 2] }],
    [
      '{"tool_calls": [{name: "get", arguments: {"city": \'Paris\', days: 3,}}]',
      { tool_calls: [{ name: 'get', arguments: { city: 'Paris', days: 3 } }] },
    ],
  ).map((one) => (one.broken.endsWith(']') ? { ...one, complete: false } : one)),
]
