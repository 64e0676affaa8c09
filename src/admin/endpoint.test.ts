import { Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { ToolwayError } from '../core/errors.ts'
import { json, openTestAdmin, people } from './admin.fixture.ts'

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})
const open = async (settings?: Parameters<typeof openTestAdmin>[0]) => stack.use(await openTestAdmin(settings))

describe('requests', () => {
  test('a query is checked: an unknown, repeated or invalid parameter is a 400 that names it', async () => {
    const { api } = await open()
    for (const [path, named] of [
      ['stats', '"by"'],
      ['stats?by=planet', '"by"'],
      ['tools?colour=red', '"colour"'],
      ['tools?limit=501', '"limit"'],
      ['tools?limit=1&limit=2', 'twice'],
      ['series?from=yesterday', '"from"'],
      [`tools?query=${'x'.repeat(501)}`, '"query"'],
      ['tools?__proto__=1', '"__proto__"'],
    ] as const) {
      const { status, json } = await api(path)
      expect([path, status, json.error.code]).toEqual([path, 400, 'BAD_REQUEST'])
      expect(json.error.message).toContain(named)
    }
  })

  test('an empty parameter counts as missing, and numbers are numbers', async () => {
    const { api, asked } = await open()
    await api('tools?query=&server=files&cursor=&limit=7')
    await api('audit?from=5&decision=DENY')
    expect(asked.map(({ given }) => given)).toEqual([
      { server: 'files', limit: 7 },
      { from: 5, decision: 'DENY', limit: 50 },
    ])
  })

  test('V9: the audit log is exported page by page with the filters of the list, as JSON Lines or CSV', async () => {
    const { admin, origin, asked } = await open()
    const first = { seq: 2, agent: 'dev', arguments: { text: '=1+1\u202e', token: '[redacted]' } }
    admin.audit = async (given) => {
      asked.push({ what: 'audit', given })
      return given.cursor === undefined
        ? { rows: [first], nextCursor: 'more' }
        : { rows: [{ seq: 1, agent: '=cmd' }], nextCursor: null }
    }
    const download = async (query: string) => {
      const headers = { authorization: 'Bearer operator' }
      const response = await fetch(`${origin}/admin/api/audit/export?decision=DENY&${query}`, { headers })
      return { type: response.headers.get('content-type'), text: await response.text() }
    }
    const lines = await download('format=jsonl')
    expect(lines.type).toContain('application/jsonl')
    expect(lines.text).not.toContain('\u202e')
    expect(
      lines.text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([first, { seq: 1, agent: '=cmd' }])
    expect(asked.map(({ given }) => given)).toEqual([
      { decision: 'DENY', cursor: undefined, limit: 200 },
      { decision: 'DENY', cursor: 'more', limit: 200 },
    ])
    const csv = await download('format=csv')
    expect(csv.type).toContain('text/csv')
    const [heading, , last] = csv.text.split('\r\n')
    expect(heading).toMatch(/^time,agent,/)
    expect(last).toContain(`"'=cmd"`)
  })

  test('V9: an export that fails midway ends without a proper end, so that nobody takes it for complete', async () => {
    const { admin, api, origin } = await open()
    const failing = (pages: number): typeof admin.audit => {
      let count = 0
      return async () => {
        if (count++ === pages) throw new ToolwayError('AUDIT_UNAVAILABLE', 'PostgreSQL cannot be reached.')
        return { rows: [{ seq: 1 }], nextCursor: 'more' }
      }
    }
    admin.audit = failing(0)
    expect((await api('audit/export')).json.error.code).toBe('AUDIT_UNAVAILABLE')
    admin.audit = failing(1)
    const headers = { authorization: 'Bearer operator' }
    const download = async () => (await fetch(`${origin}/admin/api/audit/export`, { headers })).text()
    await expect(download()).rejects.toThrow()
  })

  test('V9: an export continues if a page takes longer than a client may stop reading', async () => {
    const { setTimeout: limit } = Socket.prototype
    const limited = vi.spyOn(Socket.prototype, 'setTimeout').mockImplementation(function (this: Socket, ms, listener) {
      return limit.call(this, ms === 60_000 ? 20 : ms, listener)
    })
    stack.defer(() => limited.mockRestore())
    const { admin, origin } = await open()
    admin.audit = async ({ cursor }) => {
      if (cursor !== undefined) await setTimeout(200)
      return { rows: [{ seq: 1 }], nextCursor: cursor === undefined ? 'more' : null }
    }
    const headers = { authorization: 'Bearer operator' }
    const response = await fetch(`${origin}/admin/api/audit/export`, { headers })
    expect(await response.text()).toBe('{"seq":1}\n{"seq":1}\n')
  })

  test('invalid JSON, a wrong shape, deep nesting and a wrong content type are refused with a message', async () => {
    const { api, raw } = await open()
    const headers = { authorization: 'Bearer operator', ...json }
    const path = '/admin/api/tools/files__read/call'
    const deep = `{"arguments":{"a":${'['.repeat(300)}${']'.repeat(300)}}}`
    for (const body of ['{', '', 'null', '[]', '"text"', '{"arguments":[]}', '{"arguments":{},"extra":1}', deep]) {
      const { status, json } = await raw(path, { method: 'POST', headers, body })
      expect([body, status, json.error.code]).toEqual([body, 400, 'BAD_REQUEST'])
    }
    const form = { ...headers, 'content-type': 'application/x-www-form-urlencoded' }
    expect((await raw(path, { method: 'POST', headers: form, body: 'arguments=1' })).status).toBe(415)
    expect((await api('tools/files__read/call', { body: {} })).json.call).toBe('c9')
  })

  test('huge bodies are refused, with or without Content-Length, before and after authentication', async () => {
    const { raw } = await open()
    const headers = { authorization: 'Bearer operator', ...json }
    const huge = JSON.stringify({ arguments: { text: 'x'.repeat(1024 * 1024) } })
    const tried = await raw('/admin/api/tools/files__read/call', { method: 'POST', headers, body: huge })
    expect([tried.status, tried.json.error.code]).toEqual([413, 'TOO_LARGE'])
    const login = await raw('/admin/api/session', {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ token: 'x'.repeat(70_000) }),
    })
    expect(login.status).toBe(413)
  })

  test('unknown paths, ids and methods are errors in the format of the API', async () => {
    const { api, raw } = await open()
    for (const path of ['', 'nothing', 'servers/', 'servers/files/explode', 'calls/%E0%A4%A']) {
      const { status, json } = await raw(`/admin/api/${path}`, { headers: { authorization: 'Bearer operator' } })
      expect([path, status, json?.error?.code]).toEqual([path, 404, 'NOT_FOUND'])
    }
    expect((await api('servers/nobody')).json.error).toMatchObject({ code: 'SERVER_NOT_FOUND' })
    expect((await api('tools/nobody')).json.error).toMatchObject({ code: 'TOOL_NOT_FOUND' })
    expect((await api('calls/nobody')).json.error).toMatchObject({ code: 'NOT_FOUND' })
    const wrong = await api('servers/files/restart')
    expect([wrong.status, wrong.headers.allow]).toEqual([405, 'POST'])
    expect((await api('events', { method: 'HEAD' })).status).toBe(405)
    expect((await api('overview', { method: 'HEAD' })).status).toBe(200)
  })

  test('names in paths are decoded once', async () => {
    const { api, asked } = await open()
    await api('servers/a%2Fb%252F/restart', { method: 'POST' })
    expect(asked).toMatchObject([{ what: 'restart', given: 'a/b%2F' }])
  })

  test('nothing that is answered may be kept, framed or taken for something else', async () => {
    const { api, raw } = await open()
    for (const { headers } of [await api('config'), await raw('/admin/api/config'), await raw('/admin/api/nothing')]) {
      expect(headers).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      })
      expect(headers['access-control-allow-origin']).toBeUndefined()
    }
  })

  test('an unexpected error is sent without its cause and logged with it', async () => {
    const { api, admin, log } = await open()
    admin.overview = () => {
      throw new TypeError('secret detail')
    }
    const { status, text } = await api('overview')
    expect(status).toBe(500)
    expect(text).not.toContain('secret detail')
    expect(log.lines).toHaveLength(1)
  })
})

describe('B6: access', () => {
  test('F11: a refusal by a service, which audits it itself, is not recorded as a rejected request as well', async () => {
    const { api, access, admin } = await open()
    const denied = new ToolwayError('DENIED_BY_POLICY', 'No rule allows this.', { rule: 'agents.dev.deny.servers[0]' })
    admin.tryTool = () => Promise.reject(denied)
    admin.playground = () => Promise.reject(denied)
    const body = { arguments: {} }
    for (const [path, sent] of [
      ['tools/files__read/call', body],
      ['playground', { name: 'files__read', ...body }],
    ] as const) {
      const { status, json } = await api(path, { body: sent })
      expect([status, json.error.code]).toEqual([403, 'DENIED_BY_POLICY'])
    }
    expect(access.turned).toEqual([])
  })

  test('Host and Origin are checked exactly, and a rejected request is recorded', async () => {
    const { raw, access, port } = await open()
    const authorization = 'Bearer operator'
    for (const headers of [
      { host: 'rebound.example.com' },
      { host: `rebound.example.com:${port}` },
      { origin: 'https://evil.example.com' },
      { origin: 'null' },
      { origin: `http://127.0.0.1:${port}.evil.example.com` },
      { origin: 'http://127.0.0.1:1' },
    ] as readonly Record<string, string>[]) {
      for (const [method, path] of [
        ['GET', 'config'],
        ['POST', 'config/reload'],
        ['POST', 'session'],
      ] as const) {
        const { status, json } = await raw(`/admin/api/${path}`, { method, headers: { authorization, ...headers } })
        expect([status, json.error.code]).toEqual([403, 'DENIED_BY_POLICY'])
      }
      expect((await raw('/metrics', { headers: { authorization, ...headers } })).status).toBe(403)
    }
    expect(access.turned).toHaveLength(24)
    expect(access.turned[0]).toEqual({
      code: 'DENIED_BY_POLICY',
      detail: 'host: rebound.example.com',
      address: '127.0.0.1',
    })
    const own = { authorization, origin: `http://127.0.0.1:${port}` }
    expect((await raw('/admin/api/config', { headers: own })).status).toBe(200)
    const preflight = { ...own, 'access-control-request-method': 'POST' }
    expect((await raw('/admin/api/config', { method: 'OPTIONS', headers: preflight })).status).toBe(405)
  })

  test('F11: a body that cannot be read leaves a record', async () => {
    const { raw, access } = await open()
    const headers = { authorization: 'Bearer operator', 'content-type': 'application/json', 'toolway-admin': '1' }
    const { status } = await raw('/admin/api/tools/files__read/call', { method: 'POST', headers, body: '{"a":' })
    expect(status).toBe(400)
    expect(access.turned).toMatchObject([{ malformed: true, principal: 'token', address: '127.0.0.1' }])
  })

  test('F11: an action that is refused and audited as such is not recorded again as a malformed request', async () => {
    const { admin, api, access } = await open()
    admin.createKey = () => Promise.reject(new ToolwayError('INVALID_ARGUMENTS', 'Invalid name.'))
    const body = { id: 'a b', agents: ['dev'], admin: false }
    expect((await api('keys', { body })).status).toBe(400)
    expect(access.turned).toEqual([])
  })

  test('F11: a wrong credential, and a request without admin rights, are recorded; GET session is not', async () => {
    const { raw, api, access } = await open()
    await api('overview', { token: 'wrong' })
    await api('config', { token: 'dev' })
    expect(access.turned).toEqual([
      { code: 'AUTH_REQUIRED', address: '127.0.0.1' },
      { code: 'DENIED_BY_POLICY', principal: 'key:dev', address: '127.0.0.1', detail: 'GET config' },
    ])
    expect((await raw('/admin/api/session')).status).toBe(401)
    expect(access.turned).toHaveLength(2)
    await raw('/admin/api/overview')
    expect(access.turned).toHaveLength(3)
  })

  test('a credential acts as one of its agents, by header alone: ?agent= is what is looked for', async () => {
    const { api } = await open()
    const named = await api('session', { headers: { 'toolway-agent': 'qa' } })
    expect(named.json).toEqual({ principal: 'token', agent: 'qa', authenticated: true, admin: true, agents: '*' })
    expect((await api('session?agent=qa')).json.agent).toBe('default')
  })

  test('without auth.token, anonymous callers may read but not change anything', async () => {
    const anonymous = { principal: 'anonymous', authenticated: false, admin: false, agents: '*' } as const
    const { raw, asked } = await open({ authenticate: () => anonymous })
    expect((await raw('/admin/api/session')).json).toMatchObject({ authenticated: false, admin: false })
    expect((await raw('/admin/api/servers')).status).toBe(200)
    for (const path of ['config', 'audit', 'agents', 'agents/matrix', 'audit/chain']) {
      expect((await raw(`/admin/api/${path}`)).status).toBe(403)
    }
    for (const path of ['servers/files/restart', 'config/reload', 'audit/chain/verify']) {
      expect((await raw(`/admin/api/${path}`, { method: 'POST' })).status).toBe(403)
    }
    expect(asked).toEqual([])
  })

  test('CSRF: without auth.token a page of another origin cannot even read, or hold streams open', async () => {
    const anonymous = { principal: 'anonymous', authenticated: false, admin: false, agents: '*' } as const
    const { raw } = await open({ authenticate: () => anonymous })
    const from = async (site: string, path: string) =>
      (await raw(`/admin/api/${path}`, { headers: { 'sec-fetch-site': site } })).status
    for (const path of ['servers', 'events']) {
      expect(await from('cross-site', path)).toBe(403)
      // A page at another port of this machine.
      expect(await from('same-site', path)).toBe(403)
    }
    expect(await from('same-origin', 'servers')).toBe(200)
    expect(await from('none', 'servers')).toBe(200)
  })

  test('trying a tool is a call of the credential that asks for it', async () => {
    const { api, asked } = await open()
    await api('tools/files__read/call', { token: 'dev', body: { arguments: { path: 'x' }, agent: 'dev' } })
    expect(asked).toMatchObject([
      {
        what: 'try',
        caller: { principal: 'key:dev', admin: false, session: 'admin key:dev', address: '127.0.0.1' },
        given: { name: 'files__read', arguments: { path: 'x' }, agent: 'dev' },
      },
    ])
  })

  test('V5: the arguments of a tried tool keep their bytes, on one line; ambiguous ones are refused', async () => {
    const { raw, asked } = await open()
    const headers = { authorization: 'Bearer operator', ...json }
    const send = (body: string) => raw('/admin/api/tools/files__read/call', { method: 'POST', headers, body })
    await send('{"arguments":{"id":\n9007199254740993,"n":1.0}}')
    expect(asked).toMatchObject([{ given: { sent: '{"id": 9007199254740993,"n":1.0}' } }])
    const twice = await send('{"arguments":{"id":{"a":1,"\\u0061":2}}}')
    expect([twice.status, twice.json.error.code]).toEqual([400, 'BAD_REQUEST'])
    expect(asked).toHaveLength(1)
  })

  test('while it shuts down nothing new is begun', async () => {
    const { api, endpoint } = await open()
    endpoint[Symbol.dispose]()
    const { status, headers } = await api('overview')
    expect([status, headers['retry-after']]).toEqual([503, '1'])
  })
})

describe('/metrics', () => {
  const metrics = (accept?: string) => ({ body: 'toolway_up 1\n', contentType: `text/plain; for=${accept ?? 'all'}` })

  test('F15: needs an admin or a credential for any agent', async () => {
    const scraper = { principal: 'key:prometheus', authenticated: true, admin: false, agents: '*' } as const
    const known = people()
    const { raw } = await open({
      metrics,
      authenticate: (given) => (given === 'Bearer scraper' ? scraper : known(given)),
    })
    const get = (token?: string) => raw('/metrics', token ? { headers: { authorization: `Bearer ${token}` } } : {})
    expect((await get()).status).toBe(401)
    expect((await get('dev')).status).toBe(403)
    for (const token of ['operator', 'scraper']) {
      const { status, headers, text } = await get(token)
      expect([status, headers['content-type'], text]).toEqual([200, 'text/plain; for=all', 'toolway_up 1\n'])
    }
    const post = await raw('/metrics', { method: 'POST', headers: { authorization: 'Bearer operator' } })
    expect([post.status, post.headers.allow]).toEqual([405, 'GET, HEAD'])
  })

  test('needs no credential if auth.token is none, and is a 404 with a message if it is disabled', async () => {
    const anonymous = { principal: 'anonymous', authenticated: false, admin: false, agents: [] } as const
    const on = await open({ metrics, authenticate: () => anonymous })
    expect((await on.raw('/metrics')).status).toBe(200)
    const off = await open({ authenticate: () => anonymous })
    const { status, json } = await off.raw('/metrics')
    expect(status).toBe(404)
    expect(json.error.message).toContain('telemetry.metrics')
  })
})
