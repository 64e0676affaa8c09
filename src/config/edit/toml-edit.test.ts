import fc from 'fast-check'
import { parse } from 'smol-toml'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import { codex } from '../import/client-files.fixture.ts'
import { tomlText } from './toml-edit.ts'

const path = ['mcp_servers', 'toolway']
const entry = { command: '/usr/bin/node', args: ['a "b"', 'c\\d'] }

describe('B11: a table is added to a TOML file', () => {
  test('at its end, with its line ends', () => {
    expect(tomlText('').set(path, entry)).toBe(
      '[mcp_servers.toolway]\ncommand = "/usr/bin/node"\nargs = ["a \\"b\\"", "c\\\\d"]\n',
    )
    expect(tomlText('a = 1 # one').set(path, { b: { 'X-Y': 'z' } })).toBe(
      'a = 1 # one\n\n[mcp_servers.toolway]\nb = { X-Y = "z" }\n',
    )
    expect(tomlText('a = 1\r\n').set(path, { b: true })).toBe('a = 1\r\n\r\n[mcp_servers.toolway]\r\nb = true\r\n')
    expect(tomlText(codex).set(path, entry).startsWith(codex)).toBe(true)
  })

  test('replacing an older one with its subtables, before comments of the next', () => {
    const text = '[mcp_servers.toolway]\nurl = "x"\n[mcp_servers.toolway.env]\nA = "b"\n\n# next\n[other]\nc = 1\n'
    expect(tomlText(text).set(path, { b: 1 })).toBe('[mcp_servers.toolway]\nb = 1\n\n# next\n[other]\nc = 1\n')
  })

  test('ignoring what looks like a header inside texts and lists', () => {
    const text =
      'a = """\n[mcp_servers.toolway]\n"""\nb = [\n  [1],\n  ["]"],\n]\nc = \'\'\'\n[x]\'\'\'\n\n[mcp_servers."too.l"]\nd = 1\n'
    const changed = tomlText(text).set(path, { e: 1 })
    expect(changed.startsWith(text)).toBe(true)
    expect(tomlText(changed).remove(['mcp_servers', 'too.l'])).toBe(
      text.replace('[mcp_servers."too.l"]\nd = 1\n', '') + '\n[mcp_servers.toolway]\ne = 1\n',
    )
  })
})

test('B11: a table is removed with its subtables, and nothing else is', () => {
  const changed = tomlText(codex).remove(['mcp_servers', 'context7'])
  const { context7: _, ...others } = parse(codex).mcp_servers as Record<string, unknown>
  expect(parse(changed)).toEqual({ ...parse(codex), mcp_servers: others })
  expect(changed).toContain('[mcp_servers.shell]\ncommand = "bash"\n')
})

test('B11: a table goes, and is replaced, also where it is written as a value or key by key', () => {
  const text =
    'a.b = 1 # one\n[mcp_servers]\nx = { command = "x", args = [\n  "y",\n] } # two\n# three\n"toolway".url = "z"\ntoolway.env.A = "b"\ny = {}\n'
  const ours = '"toolway".url = "z"\ntoolway.env.A = "b"\n'
  expect(tomlText(text).remove(path)).toBe(text.replace(ours, ''))
  expect(tomlText(text).remove(['mcp_servers', 'x'])).toBe(text.replace(/x = .*two\n/s, ''))
  expect(tomlText(text).set(path, { b: 1 })).toBe(`${text.replace(ours, '')}\n[mcp_servers.toolway]\nb = 1\n`)
  expect(tomlText('mcp_servers.toolway = {}\na = 1').remove(path)).toBe('a = 1')
})

test('B11: a text that is not TOML is refused', () => {
  expect(() => tomlText('a = ')).toThrow('it is not valid TOML')
})

const lines = fc.array(
  fc.constantFrom('# a comment', '', '[a]', '[[list]]', 'k = "v"', 'm = """\n[x]\n"""', 'n = [\n  1, # one\n  [2],\n]'),
  { maxLength: 8 },
)

test('B11: setting and removing keep every other byte of any file', () => {
  fc.assert(
    fc.property(lines, fc.constantFrom('\n', '\r\n'), fc.boolean(), (some, eol, end) => {
      const numbered = some.map((line, index) =>
        line.replace(/^\[([a-z]+)\]$/, `[$1${index}]`).replace(/^([kmn]) /, `$1${index} `),
      )
      const text = numbered.join('\n').replaceAll('\n', eol) + (end ? eol : '')
      const changed = tomlText(text).set(path, entry)
      expect(changed.startsWith(text)).toBe(true)
      expect(parse(changed)).toEqual({ ...parse(text), mcp_servers: { toolway: entry } })
      expect(parse(tomlText(changed).set(path, { command: 'other' }))).toEqual({
        ...parse(text),
        mcp_servers: { toolway: { command: 'other' } },
      })
      expect(tomlText(changed).remove(path).trimEnd()).toBe(text.trimEnd())
    }),
    runs(60, 3_000),
  )
})
