import { describe, expect, test } from 'vitest'
import { visibleDefinition } from './definitions.ts'

/**
 * One character of each kind that hides something: controls, escapes, bidirectional controls, zero-width and tag
 * characters.
 */
const hidden = [
  '\0',
  '\x07',
  '\x1b[31m',
  '\r',
  '\x7f',
  '\x85',
  '\x9b',
  '\xad',
  '\u061c',
  '\u115f',
  '\u180e',
  '\u200b',
  '\u200c',
  '\u200d',
  '\u200e',
  '\u202e',
  '\u2060',
  '\u2066',
  '\u3164',
  '\ufeff',
  '\ufff9',
  '\u{e0041}',
  '\u{e0101}',
]

const names = (text: string) => [...text].map((one) => `U+${one.codePointAt(0)?.toString(16)}`).join(' ')

describe('B5: hidden characters', () => {
  test.each(hidden.map((text) => [names(text), text]))('%s is removed from all text of a tool', (_, text) => {
    const dirty = `Reads${text}a file`
    const definition = {
      name: 'read',
      title: dirty,
      description: dirty,
      inputSchema: {
        type: 'object',
        title: dirty,
        properties: { path: { type: 'string', description: dirty, default: dirty, examples: [dirty] } },
        $defs: { other: { anyOf: [{ $comment: dirty }] } },
      },
      annotations: { title: dirty },
      _meta: { 'example.com/key': dirty },
    }
    const { definition: shown, problem } = visibleDefinition('tool', definition)
    expect(problem).toBeUndefined()
    const { _meta, ...texts } = shown
    expect(JSON.stringify(texts)).not.toContain(JSON.stringify(text).slice(1, -1))
    expect(_meta).toEqual(definition._meta)
    expect(shown.inputSchema?.properties).toHaveProperty('path')
  })

  test.each(['resource', 'template', 'prompt'] as const)('are taken out of what a %s says of itself', (kind) => {
    const definition = {
      name: 'x',
      uri: 'a:x',
      uriTemplate: 'a:{x}',
      description: 'Re\u200bads',
      arguments: [{ name: 'a', description: '\u{e0041}b' }],
    }
    const { definition: shown } = visibleDefinition(kind, definition)
    expect(shown).toEqual({ ...definition, description: 'Reads', arguments: [{ name: 'a', description: 'b' }] })
  })

  test.each([
    ['a name', { name: 're\u200bad', inputSchema: {} }],
    ['a member', { name: 'read', inputSchema: { properties: { 'pa\u200bth': {} } } }],
    ['a value to choose from', { name: 'read', inputSchema: { properties: { mode: { enum: ['te\u{e0041}xt'] } } } }],
    ['a required member', { name: 'read', inputSchema: { required: ['\u202epath'] } }],
  ])('in %s, which must be spelt exactly, make a tool one that is not offered', (_, definition) => {
    expect(visibleDefinition('tool', definition).problem).toContain('hidden characters')
  })

  test.each(['Family 👨‍👩‍👧 and ❤️', 'می‌خواهم', 'שלום\u200f!', 'क्‍ष', 'Tabs\tand\nlines', '🏴󠁧󠁢󠁳󠁣󠁴󠁿'])(
    'legitimate ones stay: %s',
    (text) => {
      const definition = { name: 'read', description: text, inputSchema: {} }
      expect(visibleDefinition('tool', definition).definition).toBe(definition)
    },
  )

  test('lines that end as on Windows end as elsewhere', () => {
    const { definition } = visibleDefinition('tool', { name: 'read', description: 'One.\r\nTwo.', inputSchema: {} })
    expect(definition.description).toBe('One.\nTwo.')
  })
})

describe('S1: a definition that parsers of clients reject', () => {
  const cut = 'Posts a \ud83c'

  test('a lone surrogate is replaced in every text, also in `_meta`', () => {
    const definition = {
      name: 'post',
      description: cut,
      inputSchema: { type: 'object', properties: { text: { description: cut, default: cut, examples: ['\udf89!'] } } },
      _meta: { 'example.com/key': [{ [cut]: cut }], whole: 'a\u200bb' },
      'other\ud83c': 1,
    }
    const { definition: shown, problem } = visibleDefinition('tool', definition)
    expect(problem).toBeUndefined()
    expect(JSON.stringify(shown)).not.toContain('\\ud')
    expect(shown.description).toBe('Posts a \ufffd')
    expect(shown._meta).toEqual({ 'example.com/key': [{ 'Posts a \ufffd': 'Posts a \ufffd' }], whole: 'a\u200bb' })
  })

  test.each([
    ['a name', { name: cut, inputSchema: {} }],
    ['a member', { name: 'post', inputSchema: { properties: { [cut]: {} } } }],
    ['a value to choose from', { name: 'post', inputSchema: { properties: { mode: { enum: [cut] } } } }],
  ])('is not offered if %s, which must be spelt exactly, has a lone surrogate', (_, definition) => {
    expect(visibleDefinition('tool', definition).problem).toContain('invalid Unicode')
  })

  const nested = (levels: number): object => (levels === 1 ? {} : { not: nested(levels - 1) })

  test.each(['inputSchema', '_meta', 'other'])('is not offered if %s is nested too deeply', (member) => {
    const definition = { name: 'post', inputSchema: {} }
    expect(visibleDefinition('tool', { ...definition, [member]: nested(59) }).problem).toBeUndefined()
    expect(visibleDefinition('tool', { ...definition, [member]: nested(60) }).problem).toContain('60 levels')
  })
})
