import fc from 'fast-check'
import { parse } from 'jsonc-parser'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import { FileProblem } from './file.ts'
import { jsonText } from './json-edit.ts'
import { jsonFile } from './written-json.fixture.ts'

const set = (text: string, path = ['mcpServers', 'toolway'], value: unknown = { command: 'x', args: ['y'] }) =>
  jsonText(text).set(path, value)

describe('B11: an entry is added in the style of the file', () => {
  test('behind the last server, with its indentation and line ends', () => {
    expect(set('{\r\n\t"mcpServers": {\r\n\t\t"a": {}\r\n\t}\r\n}\r\n')).toBe(
      '{\r\n\t"mcpServers": {\r\n\t\t"a": {},\r\n\t\t"toolway": {\r\n\t\t\t"command": "x",\r\n\t\t\t"args": [\r\n\t\t\t\t"y"\r\n\t\t\t]\r\n\t\t}\r\n\t}\r\n}\r\n',
    )
  })

  test('behind comments and a trailing comma', () => {
    expect(set('{\n  "mcpServers": {\n    "a": 1, // one\n    /* two */\n  }, // three\n}', undefined, 2)).toBe(
      '{\n  "mcpServers": {\n    "a": 1, // one\n    /* two */\n    "toolway": 2\n  }, // three\n}',
    )
    expect(set('{\n  "mcpServers": {\n    "a": 1 // one\n  }\n}', undefined, 2)).toBe(
      '{\n  "mcpServers": {\n    "a": 1, // one\n    "toolway": 2\n  }\n}',
    )
  })

  test('on one line where everything stands on one', () => {
    expect(set('{"mcpServers":{"a":1}}', undefined, { b: [1] })).toBe(
      '{"mcpServers":{"a":1, "toolway": { "b": [ 1 ] }}}',
    )
    expect(set('{"x": 1}', undefined, 2)).toBe('{"x": 1, "mcpServers": { "toolway": 2 }}')
  })

  test('into what is empty, null or not there', () => {
    const wanted = '{\n  "mcpServers": {\n    "toolway": 2\n  }\n}'
    expect(set('{}', undefined, 2)).toBe(wanted)
    expect(set('{ }', undefined, 2)).toBe(wanted)
    expect(set('{\n  "mcpServers": {}\n}', undefined, 2)).toBe(wanted)
    expect(set('{\n  "mcpServers": null\n}', undefined, 2)).toBe(wanted)
    expect(set('', undefined, 2)).toBe(`${wanted}\n`)
    expect(set('// mine\n', undefined, 2)).toBe(`// mine\n${wanted}\n`)
  })

  test('replacing an older one', () => {
    expect(set('{\n  "mcpServers": {\n    "toolway": {"old": 1}, // us\n    "b": 1\n  }\n}', undefined, 2)).toBe(
      '{\n  "mcpServers": {\n    "toolway": 2, // us\n    "b": 1\n  }\n}',
    )
  })
})

describe('B11: a server is taken out', () => {
  const remove = (text: string, name: string) => jsonText(text).remove(['s', name])

  test('with its line, from the beginning, the middle and the end', () => {
    const text = '{\n  "s": {\n    "a": 1,\n    "b": 2,\n    "c": 3\n  }\n}'
    expect(remove(text, 'a')).toBe('{\n  "s": {\n    "b": 2,\n    "c": 3\n  }\n}')
    expect(remove(text, 'b')).toBe('{\n  "s": {\n    "a": 1,\n    "c": 3\n  }\n}')
    expect(remove(text, 'c')).toBe('{\n  "s": {\n    "a": 1,\n    "b": 2\n  }\n}')
    expect(remove(text, 'd')).toBe(text)
  })

  test('on one line, and with trailing commas', () => {
    expect(remove('{"s": {"a": 1, "b": 2}}', 'a')).toBe('{"s": {"b": 2}}')
    expect(remove('{"s": {"a": 1, "b": 2}}', 'b')).toBe('{"s": {"a": 1}}')
    expect(remove('{"s": {"a": 1,}}', 'a')).toBe('{"s": {}}')
  })
})

test.each(['{', '[1]', '{"a": }', '{"mcpServers": 5}'])('B11: %s is refused and not touched', (text) => {
  expect(() => set(text)).toThrow(FileProblem)
})

/** Everything but white space, in order. */
const solid = (text: string) => text.replace(/\s+/g, '')

/** Whether a text is another one with something put in. */
function contains(whole: string, part: string): boolean {
  let at = 0
  for (const character of whole) if (character === part[at]) at++
  return at === part.length
}

test('B11: an entry is added to any file, and everything else stays', () => {
  fc.assert(
    fc.property(jsonFile('mcpServers'), ({ value, text }) => {
      const entry = { command: 'x', args: ['y'] }
      const changed = set(text, ['mcpServers', 'toolway'], entry)
      const servers = (value.mcpServers ?? {}) as object
      expect(parse(changed)).toEqual({ ...value, mcpServers: { ...servers, toolway: entry } })
      expect(contains(solid(changed), solid(text))).toBe(true)
      const undone = jsonText(changed).remove(['mcpServers', 'toolway'])
      expect(parse(undone)).toEqual({ ...value, mcpServers: servers })
      for (const name of Object.keys(servers)) {
        const { [name]: _, ...others } = servers as Record<string, unknown>
        expect(parse(jsonText(changed).remove(['mcpServers', name])).mcpServers).toEqual({ ...others, toolway: entry })
      }
    }),
    runs(40, 5_000),
  )
})
