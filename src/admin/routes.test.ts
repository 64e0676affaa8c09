import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type * as z from 'zod'
import { openTestAdmin } from './admin.fixture.ts'
import { adminError } from './overview/schema.ts'
import type { Route } from './router.ts'
import { adminRoutes, type RouteParts } from './routes.ts'

interface Document {
  readonly paths: Record<string, Record<string, { operationId: string; parameters?: { name: string }[] }>>
  readonly components: { readonly schemas: Record<string, object> }
}

let open: Awaited<ReturnType<typeof openTestAdmin>>
let document: Document
beforeAll(async () => {
  open = await openTestAdmin()
  document = (await open.raw('/admin/api/openapi.json')).json as Document
})
afterAll(() => open[Symbol.asyncDispose]())

/** Names that are there, for the paths that need one. */
const targets: Record<string, string> = {
  servers: 'files',
  tools: 'files__read',
  pins: 'files.read',
  inbox: 'server:files',
  calls: 'c1',
  approvals: 'a1',
  keys: 'ci',
  playground: 'ask-1',
}
const queries: Record<string, string> = {
  'config/registry': '?search=memory',
  search: '?q=files',
  stats: '?by=tool',
  why: '?agent=dev&tool=read',
}
const decision = { hash: 'a'.repeat(64) }
const edit = { add: { input: 'node server.js' } }
const bodies: Record<string, object> = {
  session: { token: 'operator' },
  'tools/{name}/call': { arguments: {} },
  'tools/{name}/preview': { override: { name: 'look' } },
  'approvals/{id}': { decision: 'deny', reason: 'No.' },
  'playground/{ask}/answer': { error: 'no' },
  completions: { kind: 'prompt', name: 'p', argument: { name: 'a', value: '' } },
  'config/preview': edit,
  'config/apply': { ...edit, hash: 'h1' },
  'config/undo': { id: 'a' },
  'config/servers/test': edit,
  'policy/preview': edit,
  'policy/replay': { edit },
  keys: { id: 'ci' },
  'keys/{id}/rotate': {},
  'servers/{name}/sign-out': { principal: 'ann' },
  'pins/approve': { definitions: [{ label: 'files.read', ...decision }] },
  'pins/{label}/approve': decision,
  'pins/{label}/block': decision,
}

const concrete = (path: string) => path.replace(/\{\w+\}/, targets[path.split('/')[0] as string] as string)

function ask({ method, path }: Pick<Route, 'method' | 'path'>) {
  const body = method === 'POST' ? bodies[path] : undefined
  return open.api(concrete(path) + (queries[path] ?? ''), { method, ...(body && { body }) })
}

const routes = adminRoutes({} as RouteParts)

describe('the OpenAPI document', () => {
  test('needs no credential and describes every route, and nothing else', () => {
    const told = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    expect(told.toSorted()).toEqual(routes.map(({ method, path }) => `${method} /admin/api/${path}`).toSorted())
  })

  test('gives each operation a name of its own, and refers only to what it defines', () => {
    const ids = Object.values(document.paths).flatMap((methods) => Object.values(methods).map((one) => one.operationId))
    expect(new Set(ids).size).toBe(ids.length)
    const referred = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, id]) => id)
    expect(referred.length).toBeGreaterThan(ids.length)
    expect(referred.filter((id) => !((id as string) in document.components.schemas))).toEqual([])
  })
})

const json = routes.filter(({ stream }) => !stream)

test.each(json.map((route) => [`${route.method} ${route.path}`, route] as const))(
  'G10: %s answers as it is documented',
  async (_, route) => {
    const { status, json, text } = await ask(route)
    if (route.answer === undefined) return expect([status, text]).toEqual([204, ''])
    expect(status).toBe(200)
    expect((route.answer as z.ZodType).safeParse(json)).toMatchObject({ success: true })
  },
)

test.each(
  routes.filter(({ access }) => access === 'admin').map((route) => [`${route.method} ${route.path}`, route] as const),
)('B6: %s is a 403 with a message for callers without admin rights, and does nothing', async (_, route) => {
  const before = open.asked.length
  const { status, json } = await open.api(concrete(route.path) + (queries[route.path] ?? ''), {
    method: route.method,
    token: 'dev',
  })
  expect(status).toBe(403)
  expect(adminError.parse(json).error.message).toContain('is for administrators')
  expect(open.asked).toHaveLength(before)
})

test.each(
  routes.filter(({ access }) => access !== 'anyone').map((route) => [`${route.method} ${route.path}`, route] as const),
)('B6: %s is a 401 without a credential', async (_, { method, path }) => {
  const { status, json } = await open.raw(`/admin/api/${concrete(path)}`, { method })
  expect(status).toBe(401)
  expect(adminError.parse(json).error.code).toBe('AUTH_REQUIRED')
})
