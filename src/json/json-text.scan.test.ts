import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../tests/fixtures/any-character.ts'
import { runs } from '../../tests/fixtures/runs.ts'
import { depthExceeds, elements, isJson, maxDepth, members } from './json-text.ts'
import { jsonValue } from './parse-json.ts'

/** JSON text with random white space between its tokens, and with random escapes in its strings. */
const spelled = (value: unknown, space: () => string, escaped: () => boolean): string => {
  const write = (part: unknown): string => {
    if (Array.isArray(part)) return `[${space()}${part.map(write).join(`${space()},${space()}`)}${space()}]`
    if (typeof part === 'string') {
      return `"${[...part].map((c) => (escaped() && c.length === 1 ? unicode(c) : JSON.stringify(c).slice(1, -1))).join('')}"`
    }
    if (typeof part !== 'object' || part === null) return JSON.stringify(part)
    const inside = Object.entries(part).map(([key, item]) => `${write(key)}${space()}:${space()}${write(item)}`)
    return `{${space()}${inside.join(`${space()},${space()}`)}${space()}}`
  }
  return space() + write(value) + space()
}

const unicode = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

const text = fc
  .tuple(
    fc.dictionary(fc.string({ unit: anyCharacter }), fc.jsonValue({ maxDepth: 4, stringUnit: anyCharacter })),
    fc.infiniteStream(fc.constantFrom('', '', ' ', '\n', '\t', '\r\n ')),
    fc.infiniteStream(fc.constantFrom(false, false, true)),
  )
  .map(([value, spaces, escapes]) =>
    spelled(
      value,
      () => spaces.next().value,
      () => escapes.next().value,
    ),
  )

/** Copies the bytes to an unaligned place in memory, where slices of chunks often are. */
const placed = (bytes: Buffer, offset: number): Buffer => {
  const space = Buffer.alloc(bytes.length + offset, '"')
  bytes.copy(space, offset)
  return space.subarray(offset)
}

const parsed = (bytes: Buffer): unknown => {
  try {
    return jsonValue(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

describe('members', () => {
  test('F14: finds the same members as JSON.parse, whatever the order, white space and spelling', () => {
    fc.assert(
      fc.property(text, fc.nat(7), (json, offset) => {
        const bytes = placed(Buffer.from(json), offset)
        const found = members(bytes)
        const read = [...(found ?? [])].map(([key, value]) => [key, jsonValue(value.toString())])
        expect(read).toEqual(Object.entries(jsonValue(json) as object).sort(byPlaceIn(read.map(([key]) => key))))
      }),
      runs(80, 20_000),
    )
  })

  test('F14: accepts a damaged text exactly when JSON.parse does, and never throws', () => {
    const damage = fc.array(
      fc.tuple(
        fc.nat(),
        fc.constantFrom(...'{}[]",:\\0-+.eEtrufalsn \n\t\0\u007f'),
        fc.constantFrom('put', 'add', 'cut'),
      ),
      { minLength: 1, maxLength: 3 },
    )
    fc.assert(
      fc.property(text, damage, fc.nat(7), (json, steps, offset) => {
        let damaged = json
        for (const [place, character, how] of steps) {
          const at = place % (damaged.length + 1)
          damaged = damaged.slice(0, at) + (how === 'cut' ? '' : character) + damaged.slice(how === 'add' ? at : at + 1)
        }
        const bytes = placed(Buffer.from(damaged), offset)
        const value = parsed(bytes)
        expect(isJson(bytes)).toBe(value !== undefined)
        const found = members(bytes)
        if (value === undefined || Array.isArray(value) || typeof value !== 'object') expect(found).toBeUndefined()
        else if (found) expect([...found.keys()].sort()).toEqual(Object.keys(value ?? {}).sort())
        for (const span of found?.values() ?? []) expect(parsed(span)).not.toBeUndefined()
      }),
      runs(200, 50_000),
    )
  })

  test('F14: long strings are read as JSON.parse reads them, with special characters at any position', () => {
    const special = fc.constantFrom(
      '"',
      '\\"',
      '\\',
      '\u0000',
      '\u001f',
      ' ',
      '\n',
      '\u007f',
      '\u0080',
      '!',
      '#',
      '[',
      ']',
      'é€😀',
      '\\u00e9',
    )
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(60), special), { maxLength: 4 }),
        fc.nat(80),
        fc.nat(7),
        (parts, rest, offset) => {
          const inside = parts.map(([plain, odd]) => 'x'.repeat(plain) + odd).join('')
          const bytes = placed(Buffer.from(`{"a":"${inside}${'y'.repeat(rest)}"}`), offset)
          const value = parsed(bytes)
          expect(members(bytes) !== undefined).toBe(value !== undefined)
        },
      ),
      runs(300, 20_000),
    )
  })

  test('F14: any bytes at all are read or refused, as JSON.parse does', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (array) => {
        const bytes = Buffer.from(array)
        expect(isJson(bytes)).toBe(parsed(bytes) !== undefined)
      }),
    )
  })

  test.each([
    ['nothing', ''],
    ['white space', ' \n'],
    ['an array', '[1]'],
    ['a number', '1'],
    ['bytes after the end', '{"a":1}x'],
    ['a second object', '{"a":1}{"b":2}'],
    ['a missing comma', '{"a":1 "b":2}'],
    ['a trailing comma', '{"a":1,}'],
    ['a missing colon', '{"a" 1}'],
    ['an unclosed string', '{"a":"b}'],
    ['a quote that is escaped', '{"a":"b\\"}'],
    ['an unclosed object inside', '{"a":{"b":1}'],
    ['brackets of the wrong kind', '{"a":[1}}'],
    ['a control character in a string', `{"a":"${'x'.repeat(100)}\u0001${'x'.repeat(100)}"}`],
    ['a NUL after the end', '{"a":1}\0'],
    ['an escape that is none', '{"a":"\\x41"}'],
    ['half an escape', '{"a":"\\u12"}'],
    ['a leading zero', '{"a":01}'],
    ['a byte order mark', '\ufeff{"a":1}'],
  ])('security: %s is refused', (_, json) => {
    expect(members(Buffer.from(json))).toBeUndefined()
  })

  test('security: a key that occurs twice is refused, also when it is spelt differently', () => {
    expect(members(Buffer.from('{"id":1,"id":2}'))).toBeUndefined()
    expect(members(Buffer.from('{"id":1,"\\u0069d":2}'))).toBeUndefined()
    expect(members(Buffer.from('{"id":1,"ID":2}'))?.size).toBe(2)
  })

  test('F14: values are slices of the input, not copies', () => {
    const bytes = Buffer.from('{"a" : {"b": [1, 2]} }')
    const value = members(bytes)?.get('a') as Buffer
    expect(value.toString()).toBe('{"b": [1, 2]}')
    expect(value.buffer).toBe(bytes.buffer)
    expect(value.byteOffset).toBe(bytes.byteOffset + 7)
  })

  test('security: nesting is bounded, and text as deep as the bound is fine', () => {
    const nested = (depth: number) => Buffer.from(`{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`)
    expect(members(nested(maxDepth))?.size).toBe(1)
    expect(members(nested(maxDepth + 1))).toBeUndefined()
    expect(members(nested(200_000))).toBeUndefined()
  })
})

describe('depthExceeds', () => {
  test('security: counts brackets outside strings', () => {
    expect(depthExceeds(Buffer.from('{"a":[[1],[2]]}'), 3)).toBe(false)
    expect(depthExceeds(Buffer.from('{"a":[[1],[2]]}'), 2)).toBe(true)
    expect(depthExceeds(Buffer.from('{"a":"[[[[[[\\"[["}'), 1)).toBe(false)
    expect(depthExceeds(Buffer.from('{"a":"[[[['), 1)).toBe(false)
    expect(depthExceeds(Buffer.alloc(1_000_000, '['), maxDepth)).toBe(true)
  })
})

/**
 * Sorts entries in the original order of their keys, because JSON.parse moves keys that look like numbers to the front.
 */
const byPlaceIn = (keys: unknown[]) => {
  const place = new Map(keys.map((key, index) => [key, index]))
  return (a: [string, unknown], b: [string, unknown]) => (place.get(a[0]) ?? -1) - (place.get(b[0]) ?? -1)
}

describe('elements', () => {
  test('F14: finds the same elements as JSON.parse, and undefined for anything but an array', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.constantFrom(undefined, 1, '\t'), (values, indent) => {
        const found = elements(Buffer.from(JSON.stringify(values, null, indent)))
        expect(found?.map((bytes) => jsonValue(bytes.toString()))).toEqual(jsonValue(JSON.stringify(values)))
      }),
    )
    for (const json of ['{}', '[', '[1,]', '[1 2]', '[] []', '[,]', '"[]"', '']) {
      expect(elements(Buffer.from(json)), json).toBeUndefined()
    }
  })

  test('security: an array of more elements than wanted is not read to its end', () => {
    expect(elements(Buffer.from('[1,2]'), 2)).toHaveLength(2)
    expect(elements(Buffer.from('[1,2,3]'), 2)).toBeUndefined()
    const millions = Buffer.from(`[${'1,'.repeat(2_000_000)}1]`)
    const { heapUsed } = process.memoryUsage()
    expect(elements(millions, 100)).toBeUndefined()
    expect(process.memoryUsage().heapUsed - heapUsed).toBeLessThan(10_000_000)
  })
})
