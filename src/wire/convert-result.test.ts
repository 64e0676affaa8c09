import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../tests/fixtures/any-character.ts'
import { jsonValue } from '../json/parse-json.ts'
import { joined } from './bytes.ts'
import { toLegacy, toModern } from './convert-result.ts'

const hint = { ttlMs: 60_000, cacheScope: 'private' } as const
const modern = (text: string, given?: typeof hint) => joined(toModern(Buffer.from(text), given)).toString()
const legacy = (text: string) => toLegacy(Buffer.from(text)).toString()

describe('T2: the envelope of the stateless revision', () => {
  test.each([
    ['{}', '{"resultType":"complete"}'],
    ['{ \r\n }', '{"resultType":"complete" \r\n }'],
    [`{${' '.repeat(200)}}`, `{"resultType":"complete"${' '.repeat(200)}}`],
    [' { "a" : 1.0 } ', ' {"resultType":"complete", "a" : 1.0 } '],
    ['{"content":[{"resultType":"x"}]}', '{"resultType":"complete","content":[{"resultType":"x"}]}'],
    ['{"resultType":"task","ttlMs":null}', '{"resultType":"task","ttlMs":null}'],
    ['{"result\\u0054ype":"complete"}', '{"result\\u0054ype":"complete"}'],
  ])('%j gets a result type where it has none', (given, expected) => {
    expect(modern(given)).toBe(expected)
  })

  test.each([
    ['{"contents":[]}', '{"resultType":"complete","ttlMs":60000,"cacheScope":"private","contents":[]}'],
    ['{"ttlMs":5,"contents":[]}', '{"resultType":"complete","cacheScope":"private","ttlMs":5,"contents":[]}'],
    [
      '{"resultType":"complete","ttlMs":5,"cacheScope":"public"}',
      '{"resultType":"complete","ttlMs":5,"cacheScope":"public"}',
    ],
    ['{"resultType":"input_required","requestState":"s"}', '{"resultType":"input_required","requestState":"s"}'],
  ])('%j keeps its own cache hint, and only a complete result gets one', (given, expected) => {
    expect(modern(given, hint)).toBe(expected)
  })

  test.each([
    ['{"resultType":"complete"}', '{}'],
    ['{ "resultType":"complete" , "a":1 }', '{ "a":1 }'],
    ['{"a":1, "resultType":"complete", "ttlMs":0,"b":2,"cacheScope":"public"}', '{"a":1,"b":2}'],
    ['{"ttlMs":1,"resultType":"complete","cacheScope":"public","a":{"ttlMs":1}}', '{"a":{"ttlMs":1}}'],
    [
      '{"ttlMs":1,"a":"of a server that never had the envelope"}',
      '{"ttlMs":1,"a":"of a server that never had the envelope"}',
    ],
    ['{"a":"resultType"}', '{"a":"resultType"}'],
    [
      '{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x"}, "a":1},"content":[]}',
      '{"_meta":{"a":1},"content":[]}',
    ],
    ['{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x"}},"resultType":"complete"}', '{"_meta":{}}'],
  ])('%j loses it towards the other era', (given, expected) => {
    expect(legacy(given)).toBe(expected)
  })

  test.each([
    ['[1.0, 2]', '{"result":[1.0, 2]}'],
    ['"text"', '{"result":"text"}'],
    ['null', '{"result":null}'],
    ['{"a": 1}', '{"a": 1}'],
  ])('B2: structured content %s is an object towards clients that know nothing else', (given, expected) => {
    const result = (value: string) => `{"a":{"structuredContent":1}, "structuredContent" : ${value} ,"b":2}`
    expect(legacy(result(given).replace('{', '{"resultType":"complete",'))).toBe(result(expected))
    // The result of a session-based server is not changed.
    expect(legacy(result(given))).toBe(result(given))
  })

  test('T2: there and back again, every other byte is the same', () => {
    const key = fc
      .string({ unit: anyCharacter, maxLength: 8 })
      .filter((name) => !['resultType', 'ttlMs', 'cacheScope'].includes(name))
    const space = fc.constantFrom('', ' ', '\n', '\t \r\n')
    const member = fc.tuple(space, key, space, fc.jsonValue({ maxDepth: 3 }), space)
    const object = fc.tuple(space, fc.uniqueArray(member, { maxLength: 6, selector: ([, name]) => name }), space)
    fc.assert(
      fc.property(object, fc.boolean(), ([lead, members, trail], hinted) => {
        const inside = members.map(
          ([a, name, b, value, c]) => `${a}${JSON.stringify(name)}${b}:${JSON.stringify(value)}${c}`,
        )
        const text = `${lead}{${inside.join()}}${trail}`
        const there = modern(text, hinted ? hint : undefined)
        const parsed = jsonValue(there)
        expect(parsed).toEqual({ ...(jsonValue(text) as object), resultType: 'complete', ...(hinted && hint) })
        // White space between the removed members and the first remaining one is removed too.
        const first = /^(\s*\{)\s*/
        expect(legacy(there).replace(first, '$1')).toBe(text.replace(first, '$1'))
        expect(there.endsWith(text.slice(text.indexOf('{') + 1))).toBe(true)
      }),
    )
  })

  test('T2: only the envelope is removed, at any position among the members', () => {
    const names = fc.shuffledSubarray(['a', 'resultType', 'b', 'ttlMs', 'c', 'cacheScope', 'd'], { minLength: 1 })
    fc.assert(
      fc.property(names, (given) => {
        const all = given.includes('resultType') ? given : [...given, 'resultType']
        const spell = (list: readonly string[]) => `{${list.map((name) => `"${name}":"${name}1"`).join()}}`
        expect(legacy(spell(all))).toBe(spell(all.filter((name) => name.length === 1)))
      }),
    )
  })
})
