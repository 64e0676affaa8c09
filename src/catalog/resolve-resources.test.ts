import { expect, test } from 'vitest'
import { resolveResource, resolveTemplate, servedChecker } from './resolve.ts'
import { fakeSource, namingOf, snapshotOf } from './source.fixture.ts'

const shared = ['demo://x']
const sources = [
  fakeSource('a', {
    resources: [...shared, 'demo://only-a'],
    templates: ['demo://item/{id}', 'demo://item/{id}/{part}'],
  }),
  fakeSource('b', { resources: shared, templates: ['file:///{+path}'] }),
  fakeSource('tools-only', { tools: ['t'] }),
]
const { snapshot } = snapshotOf(sources)
const found = (uri: string, from = snapshot) =>
  resolveResource(from, uri).map(({ entry, uri }) => [entry.server, entry.kind, entry.name, uri])

test('F1: equal URIs of two servers are two resources', () => {
  expect(snapshot.items.resource.map(({ name }) => name)).toEqual(['demo://a/x', 'demo://a/only-a', 'demo://b/x'])
  expect(found('demo://a/x')).toEqual([['a', 'resource', 'demo://x', 'demo://x']])
  expect(found('demo://b/x')).toEqual([['b', 'resource', 'demo://x', 'demo://x']])
})

test('F1: an expanded template is read from its server, as that server spells it', () => {
  expect(found('demo://a/item/7')).toEqual([['a', 'template', 'demo://item/{id}', 'demo://item/7']])
  expect(found('demo://a/item/7/b')).toEqual([['a', 'template', 'demo://item/{id}/{part}', 'demo://item/7/b']])
  expect(found('file:///b/etc/x')).toEqual([['b', 'template', 'file:///{+path}', 'file:///etc/x']])
  // As it was served before 0.2.0.
  expect(found('file://b//etc/x')).toEqual([['b', 'template', 'file:///{+path}', 'file:///etc/x']])
})

test('F1: a URI that a server never listed is read from it, under its own name', () => {
  expect(found('demo://a/secret')).toEqual([['a', 'resource', 'demo://secret', 'demo://secret']])
  expect(resolveResource(snapshot, 'demo://a/secret')[0]?.name).toBe('demo://a/secret')
  expect(found('demo://tools-only/secret')).toEqual([])
})

test('F3: an original URI is found if one server lists it, and ambiguous if several do', () => {
  expect(found('demo://only-a')).toEqual([['a', 'resource', 'demo://only-a', 'demo://only-a']])
  expect(found('demo://x').map(([server]) => server)).toEqual(['a', 'b'])
  expect(found('demo://nobody')).toEqual([])
})

test('F3: an original URI that expands a template of one server is read from that server', () => {
  const others = [
    fakeSource('feat', { resources: ['ui://feat/app.html', 'ui://other.html'], templates: ['ui://feat/{page}/part'] }),
    fakeSource('thief', { resources: ['ui://feat/unlisted'], templates: ['ui://feat/{page}', 'demo://{id}'] }),
  ]
  const { snapshot: named } = snapshotOf([...sources, ...others])
  expect(found('demo://item/7')).toEqual([['a', 'template', 'demo://item/{id}', 'demo://item/7']])
  expect(found('file:///etc/x')).toEqual([['b', 'template', 'file:///{+path}', 'file:///etc/x']])
  expect(found('demo://7', named)).toEqual([['thief', 'template', 'demo://{id}', 'demo://7']])
  // The server's own name at the start of its URIs does not make them URIs of another form.
  const app = [['feat', 'resource', 'ui://feat/app.html', 'ui://feat/app.html']]
  expect(found('ui://feat/app.html', named)).toEqual(app)
  expect(found('ui://feat/feat/app.html', named)).toEqual(app)
  expect(found('ui://feat/x/part', named)).toEqual([['feat', 'template', 'ui://feat/{page}/part', 'ui://feat/x/part']])
  // No other server can take a URI that has the form of this server's URIs.
  expect(found('ui://feat/unlisted', named)).toEqual([['feat', 'resource', 'ui://unlisted', 'ui://unlisted']])
})

test('F3: an original URI that templates of two servers match is ambiguous', () => {
  const two = [fakeSource('a', { templates: ['x://{id}'] }), fakeSource('b', { templates: ['x://{+rest}'] })]
  expect(found('x://1', snapshotOf(two).snapshot).map(([server]) => server)).toEqual(['a', 'b'])
})

test('F3: servedChecker knows original URIs, which a server without resources cannot pass off as its own', () => {
  const uris = ['demo://only-a', 'demo://item/7', 'file:///etc/x', 'demo://nobody']
  expect(uris.map(servedChecker(snapshot))).toEqual([true, true, true, false])
})

test('F2: with flat, URIs stay as they are; the loser and unlisted ones get the server’s form', () => {
  const { snapshot: flat, warnings } = snapshotOf(sources, namingOf({ strategy: 'flat' }))
  expect(flat.items.resource.map(({ name }) => name)).toEqual(['demo://x', 'demo://only-a', 'demo://b/x'])
  expect(warnings).toHaveLength(1)
  expect(found('demo://x', flat)).toEqual([['a', 'resource', 'demo://x', 'demo://x']])
  expect(found('demo://b/x', flat)).toEqual([['b', 'resource', 'demo://x', 'demo://x']])
  expect(found('demo://item/7', flat)).toEqual([['a', 'template', 'demo://item/{id}', 'demo://item/7']])
  expect(flat.uriOf('b', 'demo://x')).toBe('demo://b/x')
  expect(flat.uriOf('a', 'demo://x')).toBe('demo://x')
  expect(flat.uriOf('a', 'demo://unlisted')).toBe('demo://a/unlisted')
  expect(found('demo://a/unlisted', flat)).toEqual([['a', 'resource', 'demo://unlisted', 'demo://unlisted']])
})

test('F2: with flat, a URI that templates of two servers match is ambiguous', () => {
  const two = [fakeSource('a', { templates: ['x://{id}'] }), fakeSource('b', { templates: ['x://{+rest}'] })]
  expect(found('x://1', snapshotOf(two, namingOf({ strategy: 'flat' })).snapshot).map(([server]) => server)).toEqual([
    'a',
    'b',
  ])
})

test('F2: with flat, a server cannot take the URI form of another one', () => {
  const thief = fakeSource('thief', { resources: ['x://1', 'x://a/1', 'toolway://a/x://1'], priority: 9 })
  const { snapshot: flat } = snapshotOf(
    [fakeSource('a', { resources: ['x://1'] }), thief],
    namingOf({ strategy: 'flat' }),
  )
  expect(flat.items.resource.map(({ name }) => name)).toEqual([
    'toolway://a/x://1',
    'x://1',
    'x://a/1',
    'toolway://thief/toolway://a/x://1',
  ])
  expect(found('toolway://a/x://1', flat)).toEqual([['a', 'resource', 'x://1', 'x://1']])
})

test('B2: a template is found by its served text, by its own, and where a resource is asked for', () => {
  const templates = (text: string) => resolveTemplate(snapshot, text).map(({ entry }) => entry.name)
  expect(templates('demo://a/item/{id}')).toEqual(['demo://item/{id}'])
  expect(templates('demo://item/{id}')).toEqual(['demo://item/{id}'])
  expect(templates('demo://item/{other}')).toEqual([])
  expect(found('demo://a/item/{id}')).toEqual([['a', 'template', 'demo://item/{id}', 'demo://item/{id}']])
})
