import { type Case, casesOf } from './case.fixture.ts'

/** Commas, colons, brackets and comments. */
export const structure: readonly Case[] = [
  ...casesOf(
    'trailing commas',
    ['{"a": 1, "b": [1, 2, ], }', { a: 1, b: [1, 2] }],
    ['[1,2,3,]', [1, 2, 3]],
    ['{"a": {"b": 1,},}', { a: { b: 1 } }],
    ['{"a": "x",\n}', { a: 'x' }],
  ),
  ...casesOf(
    'missing commas',
    ['{"a": 1 "b": 2}', { a: 1, b: 2 }],
    ['{\n"a": "x"\n"b": "y"\n}', { a: 'x', b: 'y' }],
    ['["a" "b" "c"]', ['a', 'b', 'c']],
    ['[{"a": 1} {"a": 2}]', [{ a: 1 }, { a: 2 }]],
    ['{"a": [1, 2] "b": {"c": 3} "d": true}', { a: [1, 2], b: { c: 3 }, d: true }],
    ['[1 2 3]', [1, 2, 3]],
    ['{"a": "x" "b": "y"}', { a: 'x', b: 'y' }],
  ),
  ...casesOf('too many commas', ['{"a": 1,, "b": 2}', { a: 1, b: 2 }], ['[,1,,2]', [1, 2]], ['{, "a": 1}', { a: 1 }]),
  ...casesOf('semicolons', ['{"a": 1; "b": 2;}', { a: 1, b: 2 }], ['["x"; "y"]', ['x', 'y']]),
  ...casesOf(
    'missing colons',
    ['{"a" 1, "b" "c"}', { a: 1, b: 'c' }],
    ['{"a" [1], "b" {"c": 2}}', { a: [1], b: { c: 2 } }],
  ),
  ...casesOf(
    'other signs for a colon',
    ['{"a" = 1, b = "x"}', { a: 1, b: 'x' }],
    ["{'a' => 1, 'b' => ['c']}", { a: 1, b: ['c'] }],
    ['{"a" := 1}', { a: 1 }],
  ),
  ...casesOf('full-width signs', ['{"a"：1，"b"：［"x"，2］}', { a: 1, b: ['x', 2] }], ['｛"a"： "b"｝', { a: 'b' }]),
  ...casesOf(
    'comments',
    [
      '{\n  // the city\n  "city": "Paris", # where\n  /* units */ "units": "metric" // how\n}',
      { city: 'Paris', units: 'metric' },
    ],
    ['[1, /* two */ 2, // three\n 3]', [1, 2, 3]],
    ['{"url": "http://x.org/#a" // kept: "//"\n}', { url: 'http://x.org/#a' }],
    ['# result\n{"a": 1}', { a: 1 }],
    ['{"a": 1, <!-- note --> "b": 2}', { a: 1, b: 2 }],
  ),
  ...casesOf('ellipses', ['[1, 2, ...]', [1, 2]], ['{"a": 1, ...}', { a: 1 }], ['["a", …, "z"]', ['a', 'z']]),
  ...casesOf(
    'a missing opening brace',
    ['"a": 1, "b": {"c": 2}}', { a: 1, b: { c: 2 } }],
    ['"reasoning": "because", "selected_tools": ["x", "y"]}', { reasoning: 'because', selected_tools: ['x', 'y'] }],
    ['```json\n"a": [1],\n"b": 2\n}\n```', { a: [1], b: 2 }],
  ),
  ...casesOf('both braces missing', ['"a": 1,\n"b": "c"', { a: 1, b: 'c' }]),
  ...casesOf(
    'a missing bracket in the middle',
    ['{"a": [1, 2, "b": 3}', { a: [1, 2], b: 3 }],
    ['{"a": [1, 2}', { a: [1, 2] }],
    ['{"a": {"b": [1, 2}, "c": 3}', { a: { b: [1, 2] }, c: 3 }],
    ['[{"a": 1, {"a": 2}]', [{ a: 1 }, { a: 2 }]],
    ['{"tools": ["x", "y", "n": 1}', { tools: ['x', 'y'], n: 1 }],
  ),
  ...casesOf(
    'the wrong bracket',
    ['{"a": [1, 2), "b": 3}', { a: [1, 2], b: 3 }],
    ['[1, 2}', [1, 2]],
    ['{"a": {"b": 1], "c": 2}', { a: { b: 1 }, c: 2 }],
  ),
  ...casesOf(
    'too many brackets',
    ['{"a": 1}}', { a: 1 }],
    ['[1, 2]]]', [1, 2]],
    ['{"a": {"b": 1}}, "c": 2}', { a: { b: 1 }, c: 2 }],
    ['{"a": [1]], "b": 2}', { a: [1], b: 2 }],
  ),
  ...casesOf(
    'no value',
    ['{"a": , "b": 2}', { a: null, b: 2 }],
    ['{"a":}', { a: null }],
    ['{"a", "b": 1}', { a: null, b: 1 }],
  ),
]
