import { expect, test } from 'vitest'
import { find, locationOf, type SourceFile, toPlain } from '../tree.ts'
import { parseDocument, syntaxOf } from './document.ts'

const file = (path: string, text: string): SourceFile => ({ path, text })
const value = async (path: string, text: string) => {
  const { tree, problems } = await parseDocument(file(path, text))
  expect(problems).toEqual([])
  return toPlain(tree)
}
const complaints = async (path: string, text: string) =>
  (await parseDocument(file(path, text))).problems.map(
    ({ line, column, key, message }) => `${line}:${column} ${key}: ${message}`,
  )

const meaning = { server: { port: 1, host: 'x' }, mcpServers: { a: { command: 'c', args: ['1', '2'] } } }

test('YAML, JSON with comments and TOML are read alike', async () => {
  expect(
    await value('a.yaml', 'server: { port: 1, host: x }\nmcpServers:\n  a:\n    command: c\n    args: ["1", "2"]\n'),
  ).toEqual(meaning)
  expect(
    await value(
      'a.jsonc',
      '{ // here\n "server": {"port": 1, "host": "x",}, /* and */ "mcpServers": {"a": {"command": "c", "args": ["1", "2",]}} }',
    ),
  ).toEqual(meaning)
  expect(
    await value('a.toml', '[server]\nport = 1\nhost = "x"\n[mcpServers.a]\ncommand = "c"\nargs = ["1", "2"]\n'),
  ).toEqual(meaning)
})

test('the extension decides on the syntax, and a brace where there is none', () => {
  expect(syntaxOf(file('a.yml', '{'))).toBe('yaml')
  expect(syntaxOf(file('a.JSON', ''))).toBe('json')
  expect(syntaxOf(file('/dev/fd/63', ' {"a": 1}'))).toBe('json')
  expect(syntaxOf(file('/dev/fd/63', '// hello\n{}'))).toBe('json')
  expect(syntaxOf(file('config', 'a: 1'))).toBe('yaml')
})

test.each([
  ['a.yaml', ''],
  ['a.yaml', '# nothing\n'],
  ['a.yaml', 'null'],
  ['a.json', ''],
  ['a.json', ' // nothing\n'],
  ['a.toml', ''],
  ['a.toml', '# nothing'],
])('an empty %s means the defaults: %j', async (path, text) => {
  expect(await value(path, text)).toEqual({})
})

test.each([
  ['a.yaml', 'a: 1\nb: [1\nc: 2\n', /^3:1 : not valid YAML: flow sequence/],
  ['a.yaml', 'a: 1\n---\nb: 2\n', /^2:1 : not valid YAML: .*only one document/],
  ['a.yaml', 'a: !vault b\n', /^1:4 : not valid YAML: unresolved tag/],
  ['a.yaml', 'a: *nobody\n', /^1:4 : not valid YAML: unknown anchor nobody/],
  ['a.yaml', 'a:\n\t- b\n', /^2:\d+ : not valid YAML/],
  ['a.yaml', 'a: 1\nb: 2\na: 3\n', /^3:1 a: duplicate key/],
  ['a.yaml', 'a: { <<: 5 }\n', /^1:6 a\["<<"\]: only maps can be merged/],
  ['a.yaml', '? [a, b]\n: 1\n', /^1:3 : a key must be a scalar/],
  ['a.json', '{"a": 1,\n "b" 2}', /^2:6 : not valid JSON: a colon is expected here/],
  ['a.json', '{"a": {\n "b": 1', /^2:\d+ : not valid JSON: a closing } is missing/],
  ['a.json', '{"a": tru}', /^1:7 : not valid JSON/],
  ['a.json', '{"a": 1,\n "a": 2}', /^2:2 a: duplicate key/],
  ['a.json', '{} {}', /^1:4 : not valid JSON: unexpected text/],
  ['a.toml', '[a]\nb = \n', /^2:\d+ : not valid TOML/],
  ['a.toml', 'a = 1\na = 2\n', /^2:1 : not valid TOML: trying to redefine/],
  ['a.yaml', '- a\n', /^1:1 : expected keys such as mcpServers at the top, found a list/],
  ['a.yaml', 'hello\n', /^1:1 : expected keys such as mcpServers at the top, found a single value/],
  ['a.json', '[1]', /^1:1 : expected keys such as mcpServers at the top, found a list/],
  ['a.json', '{"a": {"__proto__": {}}}', /__proto__ is not allowed as a key/],
  ['a.yaml', '__proto__: { a: 1 }', /__proto__ is not allowed as a key/],
])('%s %j is refused at its place', async (path, text, expected) => {
  const found = await complaints(path, text)
  expect(found).toHaveLength(1)
  expect(found[0]).toMatch(expected)
})

test('anchors, aliases and merge keys work, and what a map says itself comes first', async () => {
  const text = 'a: &a { x: 1, y: 2 }\nb: { <<: *a, y: 3 }\nc: *a\nd: { <<: [*a, { z: 4 }] }\n'
  expect(await value('a.yaml', text)).toEqual({
    a: { x: 1, y: 2 },
    b: { x: 1, y: 3 },
    c: { x: 1, y: 2 },
    d: { x: 1, y: 2, z: 4 },
  })
})

test('an anchor that is set again means what it meant where it is used', async () => {
  expect(await value('a.yaml', 'a: &x 1\nb: &y [*x]\nc: &x 2\nd: [*x]\ne: *y\n')).toEqual({
    a: 1,
    b: [1],
    c: 2,
    d: [2],
    e: [1],
  })
})

test('an alias bomb and an alias of itself are refused', async () => {
  const level = (name: string, from: string) => `${name}: &${name} [${Array(10).fill(`*${from}`).join(', ')}]\n`
  const bomb = `a: &a [1]\n${level('b', 'a')}${level('c', 'b')}${level('d', 'c')}${level('e', 'd')}${level('f', 'e')}${level('g', 'f')}`
  expect(await complaints('a.yaml', bomb)).toEqual([expect.stringContaining('expands to more than')])
  expect(await complaints('a.yaml', 'a: &a [*a]\n')).toEqual([expect.stringContaining('nested deeper than')])
})

test.each(['a.json', 'a.yaml', 'a.toml'])('%s that is nested without end is refused', async (path) => {
  const text = (path === 'a.toml' ? 'a = ' : '') + '['.repeat(20_000) + ']'.repeat(20_000)
  expect(await complaints(path, text)).toEqual([expect.stringMatching(/nested/)])
})

test('numbers and flags keep their spelling for places that want text', async () => {
  const { tree } = await parseDocument(file('a.yaml', 'a: 1.10\nb: 007\nc: 0x1F\n'))
  expect(['a', 'b', 'c'].map((key) => find(tree, [key]))).toMatchObject([
    { written: '1.10' },
    { written: '007' },
    { written: '0x1F' },
  ])
})

test.each([
  ['a.yaml', 'a:\n  b:\n    - c: 1\n      d: 2\n', 4, 7],
  ['a.json', '{\n "a": {"b": [\n  {"c": 1,\n   "d": 2}]}}', 4, 4],
  ['a.toml', '# x\n[[a.b]]\nc = 1\nd = 2\n', 4, 1],
])('%s: a key knows its line and column', async (path, text, line, column) => {
  const { tree } = await parseDocument(file(path, text))
  const { offset, key } = locationOf(tree, ['a', 'b', 0, 'd'])
  const before = text.slice(0, offset).split('\n')
  expect([before.length, (before.at(-1) as string).length + 1, key]).toEqual([line, column, 'a.b[0].d'])
})
