import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { runs } from '../../../tests/fixtures/runs.ts'
import { addServers, serversBlock } from './edit-text.ts'

const one = { name: 'new', definition: { command: 'npx', args: ['-y', 'x'] }, comment: 'from Cursor' }
const block = '  # from Cursor\n  new:\n    command: npx\n    args: [-y, x]\n'

describe('B11: servers are added to a configuration and every other byte stays', () => {
  test('behind the last one, with its indentation, before the next section', () => {
    const text =
      'version: 1   # aligned\nmcpServers:\n    a:    { command: x }   # mine\n      # still about a\n\n# next\nserver: {port: 1}\n'
    expect(addServers(text, [one])).toBe(
      'version: 1   # aligned\nmcpServers:\n    a:    { command: x }   # mine\n      # still about a\n    # from Cursor\n    new:\n      command: npx\n      args: [-y, x]\n\n# next\nserver: {port: 1}\n',
    )
  })

  test('to a file without servers, in any spelling of none', () => {
    expect(addServers('', [one])).toBe(`mcpServers:\n${block}`)
    expect(addServers('version: 1', [one])).toBe(`version: 1\n\nmcpServers:\n${block}`)
    expect(addServers('mcpServers:\nserver: {}\n', [one])).toBe(`mcpServers:\n${block}server: {}\n`)
    expect(addServers('mcpServers: {} # none\nserver: {}\n', [one])).toBe(`mcpServers: # none\n${block}server: {}\n`)
    expect(addServers('# only a comment\n', [one])).toBe(`# only a comment\n\nmcpServers:\n${block}`)
  })

  test('between braces, and with the line ends of the file', () => {
    expect(addServers('mcpServers: { a: { url: "x" } }\n', [{ name: 'b', definition: { url: 'y' } }])).toBe(
      'mcpServers: { a: { url: "x" }, b: {url: y} }\n',
    )
    expect(addServers('version: 1\r\n', [one])).toBe(
      `version: 1\r\n\r\nmcpServers:\r\n${block.replaceAll('\n', '\r\n')}`,
    )
  })

  test('a last value over several lines is not cut', () => {
    const text = 'mcpServers:\n  a:\n    command: x\n    description: |\n      two\n      lines\nserver: {}\n'
    expect(addServers(text, [one])).toBe(text.replace('server:', `${block}server:`))
  })
})

test.each(['a: [', '{"version": 1}', 'mcpServers: [1]', '- a'])('B11: %s is refused and not touched', (text) => {
  expect(() => addServers(text, [one])).toThrow()
})

const plainText = fc.string({
  unit: fc.constantFrom(...'abc:#{}[]\'"$ -\n&*!|>%@`,\r\u0085\u2028\u2029'),
  maxLength: 12,
})
const definition = fc.record(
  {
    command: plainText,
    args: fc.array(plainText, { maxLength: 3 }),
    env: fc.dictionary(fc.constantFrom('A', 'B'), plainText),
  },
  { requiredKeys: ['command'] },
)

test('B11: any definition is written so that it is read back unchanged', () => {
  fc.assert(
    fc.property(definition, definition, (first, second) => {
      const before = `version: 1\nmcpServers:\n${serversBlock([{ name: 'first', definition: first }])}# end\n`
      const after = addServers(before, [{ name: 'second', definition: second }])
      expect(parse(after).mcpServers).toEqual({ first, second })
      expect(after.split('\n').filter((line) => before.split('\n').includes(line)).length).toBeGreaterThanOrEqual(
        before.split('\n').length - 1,
      )
    }),
    runs(25, 5_000),
  )
})
