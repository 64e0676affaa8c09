import fc from 'fast-check'
import { parse as parseJson } from 'jsonc-parser'
import { parse as parseToml } from 'smol-toml'
import { describe, expect, test } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { runs } from '../../../tests/fixtures/runs.ts'
import { serversBlock, serversText } from './edit-text.ts'

const yaml = (text: string) => serversText('toolway.yaml', text)
const server = { name: 'b', definition: { command: 'new', args: ['-v'] } }

const mine = `version: 1   # aligned

mcpServers:      # all of mine
  # local ones
  a:    { command: x }   # from me

  # from Cursor
  b:
    command: |
      y
    # args: [-q]

  c:
    url: https://x/mcp
# next
server: {port: 1}
`

describe('B11: a server is taken out of a YAML file, and every other byte stays', () => {
  test('with what was written into it and what we said above it, from the middle, the beginning and the end', () => {
    expect(yaml(mine).remove('b')).toBe(
      mine.replace('  # from Cursor\n  b:\n    command: |\n      y\n    # args: [-q]\n\n', ''),
    )
    expect(yaml(mine).remove('a')).toBe(mine.replace('  a:    { command: x }   # from me\n', ''))
    expect(yaml(mine).remove('c')).toBe(mine.replace('  c:\n    url: https://x/mcp\n', ''))
  })

  test('also the last one, with the line ends of the file, and between braces', () => {
    expect(yaml('mcpServers: # mine\r\n  a:\r\n    command: x\r\nserver: {}\r\n').remove('a')).toBe(
      'mcpServers: {} # mine\r\nserver: {}\r\n',
    )
    const braces = 'mcpServers: { a: { url: x }, b: { url: y }, "c": {} } # mine\n'
    expect(yaml(braces).remove('a')).toBe('mcpServers: { b: { url: y }, "c": {} } # mine\n')
    expect(yaml(braces).remove('c')).toBe('mcpServers: { a: { url: x }, b: { url: y } } # mine\n')
    expect(yaml('mcpServers: {a: {}}').remove('a')).toBe('mcpServers: {}')
  })

  test('but not if others refer to it, or if it is not there', () => {
    expect(() => yaml('mcpServers:\n  a: &same\n    command: x\n  b: *same\n').remove('a')).toThrow('edited safely')
    expect(() => yaml('mcpServers: {}\n').remove('a')).toThrow('it has no server a')
  })
})

test('B11: a server replaces the one of its name in place', () => {
  expect(yaml(mine).set(server)).toBe(
    mine.replace(
      '  # from Cursor\n  b:\n    command: |\n      y\n    # args: [-q]\n',
      '  b:\n    command: new\n    args: [-v]\n',
    ),
  )
  expect(yaml('mcpServers: {b: {url: x}, c: {}}\n').set(server)).toBe(
    'mcpServers: {b: {command: new, args: [-v]}, c: {}}\n',
  )
  expect(serversText('a.json', '{"mcpServers": {"b": {"url": "x"}, "c": {}}, /* mine */}').set(server)).toBe(
    '{"mcpServers": {"b": { "command": "new", "args": [ "-v" ] }, "c": {}}, /* mine */}',
  )
  expect(serversText('a.toml', '[mcpServers.b]\nurl = "x"\n# mine\n').set(server)).toBe(
    '[mcpServers.b]\ncommand = "new"\nargs = ["-v"]\n# mine\n',
  )
})

test('B11: a file that cannot be edited safely is refused', () => {
  const text = 'mcpServers = { a = { command = "x" } }\n'
  expect(() => serversText('toolway.toml', text).set(server)).toThrow('cannot be edited safely')
  expect(() => serversText('toolway.toml', text).remove('a')).toThrow('cannot be edited safely')
})

const word = fc.string({ unit: fc.constantFrom(...'ab:#{}[]\'"$ -\n&*|,'), maxLength: 8 })
const definition = fc.record({ command: word, args: fc.array(word, { maxLength: 2 }) })
const names = ['one', 'two', 'three']

const syntaxes: readonly (readonly [string, (text: string) => unknown])[] = [
  ['a.json', parseJson],
  ['a.toml', parseToml],
  ['a.yaml', parseYaml],
]

test.each(syntaxes)(
  'B11: characters that only some programs take for line breaks stay in values, in %s',
  (file, parse) => {
    const separators = ['\u2028', '\u2029', '\u0085', '\r', '\v', '\f', '\n\u2028']
    const env = Object.fromEntries(separators.map((separator, index) => [`V${index}`, `a${separator}b`]))
    const args = separators.flatMap((separator) => [`${separator}b`, `a${separator}`, `a${separator}b`.repeat(30)])
    const definition = { command: 'a\u2028b', args, env }
    expect(parse(serversText(file, '').set({ name: 'one', definition }))).toEqual({ mcpServers: { one: definition } })
  },
)

test('B11: in every syntax, a server that is set is in the file, and one that is removed is not, for any definitions', () => {
  fc.assert(
    fc.property(fc.array(definition, { minLength: 3, maxLength: 3 }), fc.constantFrom(...names), (all, name) => {
      for (const [file, parse] of syntaxes) {
        const whole = names.reduce(
          (text, one, index) => serversText(file, text).set({ name: one, definition: all[index] ?? {} }),
          '',
        )
        const servers = Object.fromEntries(names.map((one, index) => [one, all[index]]))
        expect(parse(whole)).toEqual({ mcpServers: servers })
        const { [name]: _, ...others } = servers
        expect(parse(serversText(file, whole).remove(name))).toEqual({ mcpServers: others })
        expect(parse(serversText(file, whole).set({ ...server, name }))).toEqual({
          mcpServers: { ...servers, [name]: server.definition },
        })
      }
    }),
    runs(3, 30),
  )
})

test('B11: adding and removing a server leaves the file as it was', () => {
  fc.assert(
    fc.property(definition, definition, (first, second) => {
      const before = `# mine\nmcpServers:\n${serversBlock([{ name: 'a', definition: first }])}\n# end\nserver: {}\n`
      const added = yaml(before).set({ name: 'b', definition: second, comment: 'from Zed' })
      expect(yaml(added).remove('b')).toBe(before)
    }),
    runs(5, 50),
  )
})
