import fc from 'fast-check'
import { expect, test } from 'vitest'
import { countMembers, extentOf } from './json-text.ts'
import { jsonValue } from './parse-json.ts'

const bothOf = (json: string) => [extentOf(Buffer.from(json)).members, countMembers(jsonValue(json))] as const

test.each([
  '{"a":1,"a":2}',
  '{"a":[{"b" : {"path":"x", "p\\u0061th":"y"}}]}',
  '{"__proto__":{"x":1},"__proto__":{"x":1}}',
])('security: a key that occurs twice shows in the counts, at any depth and in any spelling: %s', (json) => {
  const [written, parsed] = bothOf(json)
  expect(written).toBeGreaterThan(parsed)
})

test('security: the counts of an ordinary value are the same, whatever its strings hold', () => {
  expect(bothOf('{"a":{"a":{"a":["a:","{:"]}},"b":"\\":"}')).toEqual([4, 4])
  expect(bothOf('{"__proto__":{"constructor":1},"toString":2}')).toEqual([3, 3])
  fc.assert(
    fc.property(fc.json(), fc.integer({ min: 0, max: 4 }), (json, indent) => {
      const text = JSON.stringify(jsonValue(json), undefined, indent)
      const [written, parsed] = bothOf(text)
      expect(written).toBe(parsed)
    }),
  )
})

test('security: the depth is that of the deepest bracket outside strings', () => {
  const depthOf = (json: string) => extentOf(Buffer.from(json)).depth
  expect([depthOf('1'), depthOf('{}'), depthOf('[{"a":"[[["},[[]]]')]).toEqual([0, 1, 3])
})

test('V5: the place of params and of their arguments is found in the same pass', () => {
  const spacing = fc.constantFrom('', ' ', '\n\t')
  const scalar = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('params', 'arguments', '"},{'))
  const request = fc.record({ before: scalar, args: scalar, meta: scalar, last: fc.boolean(), space: spacing })
  fc.assert(
    fc.property(request, ({ before, args, meta, last, space }) => {
      const pretty = (value: unknown) => JSON.stringify(value, undefined, space.length)
      const inner = [`"name":${space}"arguments"`, `"arguments"${space}:${space}${pretty(args)}${space}`]
      const params = `{${space}${(last ? inner : inner.toReversed()).join(`,${space}`)},"_meta":{"arguments":${pretty(meta)}}}`
      const bytes = Buffer.from(`{"id":${pretty(before)},"params":${space}${params}${space},"method":"params"}`)
      const found = extentOf(bytes)
      expect(bytes.toString('utf8', ...(found.params as [number, number]))).toBe(params)
      expect(bytes.toString('utf8', ...(found.arguments as [number, number]))).toBe(pretty(args))
      expect(found.members).toBe(countMembers(jsonValue(bytes.toString('utf8'))))
    }),
  )
})
