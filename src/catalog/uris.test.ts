import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../tests/fixtures/any-character.ts'
import { originalUri, servedUri, wrappedUri } from './uris.ts'

const forms = [
  ['demo://resource/1', 'demo://everything/resource/1'],
  ['file:///home/x', 'file:///everything/home/x'],
  ['file://host/x', 'file://everything/host/x'],
  ['urn:x:1', 'urn:everything/x:1'],
  ['ui://app/main.html', 'ui://everything/app/main.html'],
  ['demo://resource/{id}', 'demo://everything/resource/{id}'],
  ['{+path}', 'toolway://everything/{+path}'],
  ['{scheme}://x', 'toolway://everything/{scheme}://x'],
  ['readme.txt', 'toolway://everything/readme.txt'],
  ['toolway://other/x', 'toolway://everything/toolway://other/x'],
  ['', 'toolway://everything/'],
] as const

test.each(forms)('F1: %s is served as %s and converted back', (original, served) => {
  expect(servedUri('everything', original)).toBe(served)
  expect(originalUri('everything', served)).toBe(original)
  expect(originalUri('everythin', served)).toBeUndefined()
})

test('F1: a name that is not valid in a URI is encoded', () => {
  expect(servedUri('my files/1', 'demo://x')).toBe('demo://my%20files%2F1/x')
  expect(originalUri('my files/1', 'demo://my%20files%2F1/x')).toBe('demo://x')
})

const anyServer = fc.oneof(
  fc.constantFrom('a', 'a/b', 'b', 'a%2Fb', '{x}', '__proto__'),
  fc.string({ minLength: 1, maxLength: 8 }),
)
// `fc.webUrl` itself enters every character of Unicode into a map, which takes a second.
const urlPart = fc.string({
  unit: fc.oneof(fc.constantFrom(..."abcxyzABCXYZ0189-._~!$&'()*+,;=:@"), anyCharacter.map(encodeURIComponent)),
})
const webUrl = fc
  .record({
    scheme: fc.constantFrom('http', 'https'),
    host: fc.oneof(
      fc.domain(),
      fc.ipV4(),
      fc.ipV6().map((address) => `[${address}]`),
    ),
    path: fc.array(urlPart).map((segments) => segments.map((segment) => `/${segment}`).join('')),
    query: fc.option(urlPart),
    fragment: fc.option(urlPart),
  })
  .map(({ scheme, host, path, query, fragment }) => {
    const end = [query === null ? '' : `?${query}`, fragment === null ? '' : `#${fragment}`]
    return `${scheme}://${host}${path}${end.join('')}`
  })
const anyUri = fc.oneof(
  fc.constantFrom(
    'demo://a/b',
    'demo:a/b',
    'demo:///',
    'toolway://a/b',
    'TOOLWAY:x',
    'C:\\x',
    '//x',
    ':',
    'a:',
    'a:/',
    '{+x}',
  ),
  webUrl,
  fc.string({ unit: anyCharacter, maxLength: 20 }),
)

test('F2: the served form is converted back to the same server and URI, for any URI', () => {
  fc.assert(
    fc.property(anyServer, anyUri, (server, uri) => {
      expect(originalUri(server, servedUri(server, uri))).toBe(uri)
      expect(originalUri(server, wrappedUri(server, uri))).toBe(uri)
    }),
  )
})

test('F2: two servers never share a served URI', () => {
  fc.assert(
    fc.property(anyServer, anyServer, anyUri, anyUri, (one, other, first, second) => {
      fc.pre(one !== other)
      expect(servedUri(one, first)).not.toBe(servedUri(other, second))
      expect(originalUri(other, servedUri(one, first))).toBeUndefined()
    }),
  )
})

test('F1: an expansion of a served template is the served form of an expansion of the template', () => {
  const values = fc.string({ unit: fc.constantFrom('a', '/', ':', '%20', '1'), maxLength: 6 })
  const templates = fc.constantFrom('demo://x/{v}', 'demo:{v}', 'demo:/{v}', '{v}', 'file://{v}/y', 'demo://{v}')
  fc.assert(
    fc.property(templates, values, (template, value) => {
      const expand = (text: string) => text.replace('{v}', value)
      expect(originalUri('s', expand(servedUri('s', template)))).toBe(expand(template))
    }),
  )
})
