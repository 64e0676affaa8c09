import fc from 'fast-check'
import { parse as parseJson } from 'jsonc-parser'
import { describe, expect, test } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { runs } from '../../../tests/fixtures/runs.ts'
import { jsonValue } from '../../json/parse-json.ts'
import type { Path } from '../tree.ts'
import { changesBetween, contentOf, editText, type TextChange, valueAt } from './edit-text.ts'
import { FileProblem } from './file.ts'

const mine = `# top
version: 1   # aligned

agents:            # who may do what
  coder:
    # the important one
    allow: [ "files.*",  'git.*' ]   # both
    deny:
      # never
      - shell.*
      - "net.*"    # nor this
    limits: { perMinute: 60, concurrency: 2 }
  writer: {}
policy:
  rules:
    - match: a
      effect: allow
    # about b
    - match: b
      effect: deny   # no
# end
`
const yaml = (...changes: TextChange[]) => editText('toolway.yaml', mine, changes)

describe('V9: edits of a YAML configuration keep every other byte', () => {
  test('values are replaced where they are, quoted as before', () => {
    expect(yaml({ path: ['version'], value: 2 })).toBe(mine.replace('version: 1', 'version: 2'))
    expect(yaml({ path: ['agents', 'coder', 'deny', 1], value: 'web.*' })).toBe(mine.replace('"net.*"', '"web.*"'))
    expect(yaml({ path: ['agents', 'coder', 'limits', 'perMinute'], value: 5 })).toBe(mine.replace('60', '5'))
    expect(yaml({ path: ['agents', 'coder', 'allow'], value: ['x'] })).toBe(
      mine.replace(`[ "files.*",  'git.*' ]`, '[x]'),
    )
    expect(yaml({ path: ['policy', 'rules', 0, 'match'], value: 'c' })).toBe(mine.replace('match: a', 'match: c'))
  })

  test('entries and items are added behind the others, inserted and removed', () => {
    expect(yaml({ path: ['agents', 'coder', 'expose'], value: 'code' })).toBe(
      mine.replace('concurrency: 2 }\n', 'concurrency: 2 }\n    expose: code\n'),
    )
    expect(yaml({ path: ['agents', 'coder', 'deny', 0], value: 'new', insert: true })).toBe(
      mine.replace('      - shell.*', '      - new\n      - shell.*'),
    )
    expect(yaml({ path: ['agents', 'coder', 'deny', 2], value: 'new', insert: true })).toBe(
      mine.replace('# nor this\n', '# nor this\n      - new\n'),
    )
    expect(yaml({ path: ['agents', 'coder', 'allow', 1], value: 'new', insert: true })).toBe(
      mine.replace('"files.*",', '"files.*", new,'),
    )
    expect(yaml({ path: ['agents', 'coder', 'allow', 0] })).toBe(mine.replace(`"files.*",  `, ''))
    expect(yaml({ path: ['agents', 'coder', 'deny', 0] })).toBe(mine.replace('      - shell.*\n', ''))
    expect(yaml({ path: ['policy', 'rules', 1, 'match'] })).toBe(mine.replace('match: b\n      ', ''))
    expect(yaml({ path: ['policy', 'rules', 0] })).toBe(mine.replace('    - match: a\n      effect: allow\n', ''))
    expect(yaml({ path: ['policy'] })).toBe(`${mine.slice(0, mine.indexOf('policy:'))}# end\n`)
  })

  test('missing and empty sections are filled, and the last entry leaves an empty one', () => {
    expect(yaml({ path: ['agents', 'writer', 'allow'], value: ['a'] })).toBe(
      mine.replace('writer: {}', 'writer:\n    allow: [a]'),
    )
    expect(yaml({ path: ['limits', 'perMinute'], value: 3 })).toBe(`${mine}\nlimits:\n  perMinute: 3\n`)
    expect(editText('a.yaml', 'agents:\n  a:\n    x: 1 # one\nb: 2\n', [{ path: ['agents', 'a', 'x'] }])).toBe(
      'agents:\n  a: {}\nb: 2\n',
    )
    expect(editText('a.yaml', 'a:\n  - 1\n', [{ path: ['a', 0] }])).toBe('a: []\n')
    expect(editText('a.yaml', 'a:\n', [{ path: ['a'], value: true }])).toBe('a: true\n')
    expect(editText('a.yaml', '{}\n', [{ path: ['a', 'b'], value: 1 }])).toBe('a:\n  b: 1\n')
  })

  test('an entry is renamed with all that is in it', () => {
    expect(yaml({ path: ['agents', 'coder'], rename: 'dev' })).toBe(mine.replace('coder:', 'dev:'))
  })

  test('a whole entry is turned into another one by its differences', () => {
    const content = parseYaml(mine)
    const wanted = structuredClone(content.agents.coder)
    wanted.deny = ['shell.*', 'other', 'net.*']
    wanted.limits.perMinute = 10
    const changes = changesBetween(content.agents.coder, wanted, ['agents', 'coder'])
    expect(yaml(...changes)).toBe(mine.replace('- shell.*\n', '- shell.*\n      - other\n').replace('60', '10'))
  })

  test('an edit that is not safe is refused', () => {
    expect(() => editText('a.yaml', 'a: &x { b: 1 }\nc: *x\n', [{ path: ['c', 'b'], value: 2 }])).toThrow()
    expect(() => editText('a.yaml', 'a: 1\n', [{ path: ['a', 'b'], value: 2 }])).toThrow('a is not a section')
    expect(() => editText('a.yaml', 'a: 1\n', [{ path: ['b'] }])).toThrow('it has no b')
  })
})

test('V9: edits of a JSON configuration keep comments, indentation and trailing commas', () => {
  const text = '{\n  // mine\n  "a": { "list": [1, 2] },\n  "b": [\n    "x", // one\n    "y",\n  ],\n}\n'
  const edit = (...changes: TextChange[]) => editText('toolway.json', text, changes)
  expect(edit({ path: ['a', 'list', 1], value: 3 })).toBe(text.replace('2]', '3]'))
  expect(edit({ path: ['a', 'list', 2], value: 3, insert: true })).toBe(text.replace('2]', '2, 3]'))
  expect(edit({ path: ['b', 1] })).toBe(text.replace('    "y",\n', ''))
  expect(edit({ path: ['b', 2], value: 'z', insert: true })).toBe(text.replace('"y",\n', '"y",\n    "z"\n'))
  expect(edit({ path: ['a'], rename: 'c' })).toBe(text.replace('"a"', '"c"'))
})

test('V9: entries of a TOML configuration can be edited', () => {
  const text = '# mine\n[agents.coder]\nallow = ["a"]\n'
  expect(editText('a.toml', text, [{ path: ['agents', 'coder', 'allow'], value: ['b'] }])).toBe(
    text.replace('"a"', '"b"'),
  )
})

test('V9: edits of a TOML configuration keep comments, and add values, lists and sections', () => {
  const text = `# mine
[mcpServers.one] # first
args = ["../srv.mjs", "1"] # args
env = { A = "1" }

[mcpServers.one.sandbox]
network = false

# other
[mcpServers.two]
command = "x"
`
  const edited = (path: Path, value?: unknown, more = {}) => editText('a.toml', text, [{ path, value, ...more }])
  const one = ['mcpServers', 'one']
  expect(edited([...one, 'args', 1], '2')).toBe(text.replace('"1"]', '"2"]'))
  expect(edited([...one, 'args', 0], 'a', { insert: true })).toBe(text.replace('["..', '["a", "..'))
  expect(edited([...one, 'args', 0])).toBe(text.replace('"../srv.mjs", ', ''))
  expect(edited([...one, 'env', 'A'], '2')).toBe(text.replace('A = "1"', 'A = "2"'))
  expect(edited([...one, 'args'])).toBe(text.replace(/args = .*\n/, ''))
  expect(edited([...one, 'description'], 'd')).toBe(text.replace(/(env = .*\n)/, '$1description = "d"\n'))
  expect(edited(['version'], 1)).toBe(`version = 1\n${text}`)
  expect(edited(['limits'], { maxCalls: 1 })).toBe(`${text}\n[limits]\nmaxCalls = 1\n`)
  expect(edited(['limits', 'maxCalls'], 1)).toBe(`${text}\n[limits]\nmaxCalls = 1\n`)
  expect(edited(['mcpServers', 'three'], { command: 'y' })).toBe(`${text}\n[mcpServers.three]\ncommand = "y"\n`)
  expect(edited([...one, 'env', 'B'], '2')).toContain('# other\n[mcpServers.two]')
  expect(edited(['mcpServers', 'two'], undefined, { rename: 'three' })).toContain('[mcpServers.three]\ncommand = "x"\n')
  expect(() => edited(['version'], null)).toThrow('TOML')
})

const word = fc.string({ unit: fc.constantFrom(...'ab:#{}[]\'"$ -\n&*|,'), maxLength: 6 })
const leaf = fc.oneof(word, fc.integer(), fc.boolean())
const list = fc.array(fc.oneof(leaf, fc.record({ match: word, effect: leaf })), { maxLength: 4 })
const entry = fc.dictionary(
  fc.constantFrom('allow', 'deny', 'limits', 'x y'),
  fc.oneof(leaf, list, fc.dictionary(word, leaf, { maxKeys: 3 })),
)
const config = fc.dictionary(fc.constantFrom('one', 'two', 'three'), entry)

test('V9: any configuration becomes any other by its smallest changes, and comments elsewhere survive', () => {
  fc.assert(
    fc.property(config, config, (before, after) => {
      for (const [file, parse] of [
        ['a.yaml', parseYaml],
        ['a.json', parseJson],
      ] as const) {
        const start = editText(file, file === 'a.yaml' ? '# mine\n' : '// mine\n', [
          { path: ['agents'], value: before },
          { path: ['kept'], value: { list: [1] } },
        ])
        const changes = changesBetween(before, after, ['agents'])
        const result = editText(file, start, changes)
        expect(valueAt(parse(result), ['agents'])).toEqual(after)
        expect(result).toContain('mine')
        expect(valueAt(parse(result), ['kept', 'list'])).toEqual([1])
      }
    }),
    runs(6, 500),
  )
})

describe('V9: inherited properties are not part of a configuration', () => {
  const polluted = () => Object.hasOwn(Object.prototype, 'polluted')

  test.each(['toolway.yaml', 'toolway.json'])('a path through __proto__ changes no prototype (%s)', (file) => {
    for (const path of [
      ['__proto__', 'polluted'],
      ['agents', '__proto__', 'polluted'],
    ]) {
      try {
        editText(file, '{"agents": {}}\n', [{ path, value: true }])
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(FileProblem)
      }
      expect(polluted()).toBe(false)
    }
    expect(() => editText(file, '{"agents": {}}\n', [{ path: ['constructor'], rename: 'x' }])).toThrow(FileProblem)
  })

  test('a key named __proto__ is one change, and is compared with nothing inherited', () => {
    const after = jsonValue('{"__proto__": {"polluted": true}, "constructor": 1}')
    expect(changesBetween({}, after)).toEqual([
      { path: ['__proto__'], value: { polluted: true } },
      { path: ['constructor'], value: 1 },
    ])
    const text = editText('toolway.yaml', 'version: 1\n', changesBetween({}, after))
    expect(valueAt(contentOf('toolway.yaml', text), ['__proto__', 'polluted'])).toBe(true)
    expect(polluted()).toBe(false)
  })
})

describe('V9: an edit is bounded', () => {
  const many = (count: number) =>
    Array.from({ length: count }, (_, index): TextChange => ({ path: ['agents', `a${index}`], value: {} }))

  test('in the number of changes', () => {
    const text = editText('toolway.json', '{}', many(500))
    expect(Object.keys(parseJson(text).agents)).toHaveLength(500)
    expect(() => editText('toolway.json', '{}', many(501))).toThrow(FileProblem)
  })

  test('in the changes of a large file', () => {
    const large = `# ${'x'.repeat(1024 * 1024)}\nversion: 1\n`
    expect(editText('toolway.yaml', large, many(2))).toContain('a1: {}')
    expect(() => editText('toolway.yaml', large, many(20))).toThrow(FileProblem)
  })

  test('and does not change the values that it is given', () => {
    const value = { allow: ['a'] }
    const inside = { path: ['agents', 'x', 'allow', 1], value: 'b', insert: true }
    const text = editText('toolway.yaml', 'version: 1\n', [{ path: ['agents', 'x'], value }, inside])
    expect(parseYaml(text)).toEqual({ version: 1, agents: { x: { allow: ['a', 'b'] } } })
    expect(value).toEqual({ allow: ['a'] })
  })
})

describe('V9: edits keep the comments around what they change', () => {
  const tomlFile = [
    '# first',
    '[mcpServers.files] # header',
    'command = "npx" # command',
    'args = [',
    '  # questions',
    '  "-y", # none',
    '  "server", # package',
    ']',
    '',
    '[mcpServers.files.env] # environment',
    'A = "1" # one',
    '',
    '[mcpServers."other one"]',
    'command = "x" # last',
    '',
  ].join('\n')
  const edit = (change: TextChange) => editText('toolway.toml', tomlFile, [change])

  test('a renamed TOML table stays where it is, with its subtables', () => {
    expect(edit({ path: ['mcpServers', 'files'], rename: 'docs of mine' })).toBe(
      tomlFile.replaceAll('mcpServers.files', 'mcpServers."docs of mine"'),
    )
    expect(edit({ path: ['mcpServers', 'other one'], rename: 'b' })).toBe(tomlFile.replace('"other one"', 'b'))
    expect(
      editText('a.toml', 'mcpServers.a.command = "x" # 1\nmcpServers.a.cwd = "/" # 2\n', [
        { path: ['mcpServers', 'a'], rename: 'b' },
      ]),
    ).toBe('mcpServers.b.command = "x" # 1\nmcpServers.b.cwd = "/" # 2\n')
    expect(
      editText('a.toml', 'mcpServers = { "a" = { command = "x" } } # 1\n', [
        { path: ['mcpServers', 'a'], rename: 'b' },
      ]),
    ).toBe('mcpServers = { b = { command = "x" } } # 1\n')
  })

  test('of a TOML table that is replaced, only the values that differ change', () => {
    expect(edit({ path: ['mcpServers', 'files', 'env'], value: { A: '1', B: '2' } })).toBe(
      tomlFile.replace('A = "1" # one\n', 'A = "1" # one\nB = "2"\n'),
    )
  })

  test('items of a TOML list are added and removed in place', () => {
    const args = ['mcpServers', 'files', 'args']
    expect(edit({ path: [...args, 0], value: 'a', insert: true })).toBe(
      tomlFile.replace('args = [\n', 'args = [\n  "a",\n'),
    )
    expect(edit({ path: [...args, 1], value: 'b', insert: true })).toBe(
      tomlFile.replace('# none\n', '# none\n  "b",\n'),
    )
    expect(edit({ path: [...args, 2], value: 'c', insert: true })).toBe(
      tomlFile.replace('# package\n', '# package\n  "c",\n'),
    )
    expect(edit({ path: [...args, 0] })).toBe(tomlFile.replace('  "-y", # none', '  # none'))
    const short = (text: string, change: TextChange) => editText('a.toml', `a = ${text} # 1\n`, [change])
    expect(short('["x", "y"]', { path: ['a', 2], value: 'z', insert: true })).toBe('a = ["x", "y", "z"] # 1\n')
    expect(short('["x", "y"]', { path: ['a', 1] })).toBe('a = ["x"] # 1\n')
    expect(short('["x"]', { path: ['a', 0] })).toBe('a = [] # 1\n')
  })

  test('a section that is inserted into a TOML list replaces none', () => {
    const keys = 'keys = [\n  { id = "a", agent = "x" }, # first\n  { id = "b", agent = "y" },\n]\n'
    const insert = (text: string, index: number) =>
      editText('a.toml', `[auth]\n${text}`, [
        { path: ['auth', 'keys', index], value: { id: 'c', agent: 'z' }, insert: true },
      ])
    const added = '  { id = "c", agent = "z" },\n'
    expect(insert(keys, 0)).toBe(`[auth]\n${keys.replace('[\n', `[\n${added}`)}`)
    expect(insert(keys, 1)).toBe(`[auth]\n${keys.replace('# first\n', `# first\n${added}`)}`)
    const tables = '[[auth.keys]]\nid = "a"\nagent = "x"\n[[auth.keys]]\nid = "b"\nagent = "y"\n'
    expect(() => insert(tables, 0)).toThrow(FileProblem)
  })

  test('comments before a comma, and behind a first item in YAML, stay', () => {
    const list = (file: string, text: string) => editText(file, text, [{ path: ['a', 0] }])
    expect(list('a.toml', 'a = [\n  1 # one\n  # two\n  , 2\n]\n')).toBe('a = [\n   # one\n  # two\n   2\n]\n')
    expect(list('a.jsonc', '{ "a": [1 /* one */, 2] }')).toBe('{ "a": [ /* one */ 2] }')
    expect(list('a.yaml', 'a: [b, # one\n  c]\n')).toBe('a: [ # one\n  c]\n')
  })

  test('items are inserted into JSON lists in place', () => {
    const insert = (text: string, index: number) =>
      editText('a.json', text, [{ path: ['a', index], value: 'x', insert: true }])
    expect(insert('{ "a": ["b", /* 1 */ "c" /* 2 */] }', 1)).toBe('{ "a": ["b", "x", /* 1 */ "c" /* 2 */] }')
    expect(insert('{ "a": [/* 1 */ "b"] }', 0)).toBe('{ "a": [/* 1 */ "x", "b"] }')
    expect(insert('{\n  "a": [\n    "b", // 1\n    // 2\n    "c"\n  ]\n}\n', 1)).toBe(
      '{\n  "a": [\n    "b", // 1\n    "x",\n    // 2\n    "c"\n  ]\n}\n',
    )
  })

  test('items are removed from YAML lists in brackets in place', () => {
    const text = 'a: [\n  b, # 1\n  # 2\n  c, # 3\n  d # 4\n]\n'
    const remove = (index: number) => editText('a.yaml', text, [{ path: ['a', index] }])
    expect(remove(0)).toBe('a: [\n  # 1\n  # 2\n  c, # 3\n  d # 4\n]\n')
    expect(remove(1)).toBe('a: [\n  b, # 1\n  # 2\n  # 3\n  d # 4\n]\n')
    expect(remove(2)).toBe('a: [\n  b, # 1\n  # 2\n  c # 3\n  # 4\n]\n')
  })
})
