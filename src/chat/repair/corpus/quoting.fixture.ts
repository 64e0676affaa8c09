import { type Case, casesOf } from './case.fixture.ts'

const raw = String.raw

/** Strings and keys with the wrong quotes, with too many or too few, and with what should have been escaped. */
export const quoting: readonly Case[] = [
  ...casesOf(
    'single quotes',
    ["{'a': 'b', 'c': ['d', 'e']}", { a: 'b', c: ['d', 'e'] }],
    [raw`{'a': 'it\'s', 'b': 'say "hi"'}`, { a: "it's", b: 'say "hi"' }],
    [`{"a": 'mixed', 'b': "up"}`, { a: 'mixed', b: 'up' }],
  ),
  ...casesOf(
    'a closing quote that was forgotten',
    ['{"city": "New York, "gender": "male"}', { city: 'New York', gender: 'male' }],
    ['{"city": "New York, "age": 7, "tags": ["a"]}', { city: 'New York', age: 7, tags: ['a'] }],
    ["{'city': 'New York, 'gender': 'male'}", { city: 'New York', gender: 'male' }],
    ['{city: "New York, gender: "male"}', { city: 'New York', gender: 'male' }],
  ),
  ...casesOf('apostrophes in single quotes', [
    "{'a': 'it's fine', 'b': 'the dogs' bone'}",
    { a: "it's fine", b: "the dogs' bone" },
  ]),
  ...casesOf(
    'typographic quotes',
    ['{“a”: “b”, “c”: 1}', { a: 'b', c: 1 }],
    ['{‘a’: ‘b’}', { a: 'b' }],
    ['{„a“: „b“}', { a: 'b' }],
    ['{“a": "b”}', { a: 'b' }],
    ['{"a": "she said “no” to it",}', { a: 'she said “no” to it' }],
  ),
  ...casesOf('backticks', ['{`a`: `b\nc`}', { a: 'b\nc' }], ['{"code": `let x = "1"`}', { code: 'let x = "1"' }]),
  ...casesOf(
    'unquoted keys',
    ['{a: 1, b_2: "x", $c: [true]}', { a: 1, b_2: 'x', $c: [true] }],
    ['{user-id: 5, first name: "Ada"}', { 'user-id': 5, 'first name': 'Ada' }],
    ['{1: "one", 2: "two"}', { 1: 'one', 2: 'two' }],
    ['{\n  city: "Paris",\n  units: \'metric\'\n}', { city: 'Paris', units: 'metric' }],
  ),
  ...casesOf(
    'unquoted text',
    ['{"city": Paris, "units": metric}', { city: 'Paris', units: 'metric' }],
    ['[red, dark green, blue]', ['red', 'dark green', 'blue']],
    ['{"url": https://example.com/a?b=1, "n": 1}', { url: 'https://example.com/a?b=1', n: 1 }],
    ['{"date": 2026-11-03, "size": 12px}', { date: '2026-11-03', size: '12px' }],
    ['{"ip": 192.168.0.1}', { ip: '192.168.0.1' }],
  ),
  ...casesOf(
    'quotes inside a string',
    ['{"text": "He said "hello" to me", "n": 1}', { text: 'He said "hello" to me', n: 1 }],
    ['{"text": "the "big, red" one"}', { text: 'the "big, red" one' }],
    ['["a "b" c", "d"]', ['a "b" c', 'd']],
    ['{"html": "<a href="https://x.org">x</a>", "ok": true}', { html: '<a href="https://x.org">x</a>', ok: true }],
    ['{"a": ""quoted"", "b": 1}', { a: '"quoted"', b: 1 }],
    ['{"sql": "SELECT "name" FROM t WHERE x = "y""}', { sql: 'SELECT "name" FROM t WHERE x = "y"' }],
  ),
  ...casesOf(
    'a missing closing quote',
    ['{"a": "hello, "b": 2}', { a: 'hello', b: 2 }],
    ['{"a": "hello\n  "b": 2}', { a: 'hello', b: 2 }],
    ['{"a": "hello}', { a: 'hello' }],
    ['{"a": ["x", "y]}', { a: ['x', 'y'] }],
  ),
  ...casesOf(
    'a missing opening quote',
    ['{a": 1, b": "c"}', { a: 1, b: 'c' }],
    ['{"a": hello", "b": 1}', { a: 'hello', b: 1 }],
  ),
  ...casesOf(
    'raw line breaks and tabs',
    ['{"a": "one\ntwo\tthree"}', { a: 'one\ntwo\tthree' }],
    ['{"code": "def f():\r\n    return 1\r\n"}', { code: 'def f():\r\n    return 1\r\n' }],
    ['{"a": "x\u0001y\u0000z"}', { a: 'x\u0001y\u0000z' }],
  ),
  ...casesOf(
    'backslashes that escape nothing',
    [raw`{"pattern": "\d+\.\w{2,}\s*"}`, { pattern: raw`\d+\.\w{2,}\s*` }],
    [raw`{"path": "C:\Users\ada\notes.txt"}`, { path: raw`C:\Users\ada\notes.txt` }],
    [raw`{"path": "\\server\share", "x": "\q"}`, { path: raw`\server\share`, x: raw`\q` }],
    [raw`{"tex": "\alpha + \sum_{i}", "n": "a\nb\c"}`, { tex: raw`\alpha + \sum_{i}`, n: 'a\nb\\c' }],
    [raw`{"u": "\u12", "v": "\uZZZZ"}`, { u: raw`\u12`, v: raw`\uZZZZ` }],
  ),
  ...casesOf(
    'a backslash before the closing quote',
    [raw`{"path": "C:\dir\", "n": 1}`, { path: 'C:\\dir\\', n: 1 }],
    [raw`{"path": "D:\"}`, { path: 'D:\\' }],
  ),
  ...casesOf(
    'escapes of other languages',
    [raw`{'a': '\x41\'', "b": "\'x\'"}`, { a: "A'", b: "'x'" }],
    ['{"a": "one \\\ntwo"}', { a: 'one two' }],
  ),
  ...casesOf(
    'triple quotes',
    ['{"a": """one "two"\nthree""", "b": 1}', { a: 'one "two"\nthree', b: 1 }],
    ["{'a': '''x'y'''}", { a: "x'y" }],
  ),
  ...casesOf('string prefixes', [`{'a': u'x', 'b': b'y', "c": f"z", "d": r'w'}`, { a: 'x', b: 'y', c: 'z', d: 'w' }]),
  ...casesOf('joined strings', ['{"a": "one " + "two" +\n "three"}', { a: 'one twothree' }]),
]
