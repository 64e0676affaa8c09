import { createServer, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { createKeptLog } from '../../tests/fixtures/log.ts'
import { type RawRequest, rawRequest } from '../../tests/fixtures/raw-http.ts'
import type { HttpConfig } from '../config/schema.ts'
import type { Caller } from '../core/call.ts'
import { ToolwayError } from '../core/errors.ts'
import { createBudgets } from '../core/limits/budget.ts'
import { createTestAccess } from '../serve/access.fixture.ts'
import type { Authenticate, AuthIdentity } from '../serve/auth/identity.ts'
import { admitWith } from '../serve/auth/throttle.fixture.ts'
import { bearerTokens } from '../serve/auth/token.fixture.ts'
import { HttpError, rpcCodes, sendHttpError, toHttpError } from '../serve/errors.ts'
import { createBodyReader } from '../serve/http/bodies.ts'
import { allowedHosts } from '../serve/http/hosts.ts'
import { listen } from '../serve/http/listen.ts'
import { httpConfig } from '../serve/http/server.fixture.ts'
import { createTestConfigEditing } from './config/config-edit.fixture.ts'
import type { ApprovalView, CallView, InboxView, ReloadEvent } from './contract.ts'
import { AdminEndpoint, type AdminEndpointOptions } from './endpoint.ts'
import type { AdminService } from './service.ts'
import * as views from './views.fixture.ts'

export const operator: AuthIdentity = { principal: 'token', authenticated: true, admin: true, agents: '*' }
export const dev: AuthIdentity = { principal: 'key:dev', authenticated: true, admin: false, agents: ['dev'] }

/** The gateway's token is `operator`; a key without admin rights is `dev`. */
export const people = (): Authenticate =>
  bearerTokens([
    ['operator', operator],
    ['dev', dev],
  ])

export interface Asked {
  readonly what: string
  readonly caller?: Caller
  readonly given: unknown
}

/** An admin API in memory that records its requests. */
function createTestAdmin() {
  const asked: Asked[] = []
  const onCalls = new Set<(calls: readonly CallView[]) => void>()
  const onApprovals = new Set<() => void>()
  const onReload = new Set<(event: ReloadEvent) => void>()
  const onInbox = new Set<(inbox: InboxView) => void>()
  const calls: CallView[] = [views.call({ id: 'b', agent: 'dev' }), views.call({ id: 'a' })]
  let approvals: readonly ApprovalView[] = []
  let padding = ''
  const note = (what: string, given: unknown, caller?: Caller) => asked.push({ what, given, ...(caller && { caller }) })
  const following = <T>(listeners: Set<T>, listener: T): Disposable => {
    listeners.add(listener)
    return { [Symbol.dispose]: () => void listeners.delete(listener) }
  }
  const admin: AdminService = {
    overview: () => ({ ...views.overview, version: `1.2.3${padding}` }),
    endpoints: () => [views.endpoint],
    series: async (_, { from = 0, to = 1000 }) => ({ from, to, stepMs: 1000, points: [] }),
    stats: async (_, { by }) => ({ by, since: 0, to: 1000, rows: [{ name: 'files', ...views.figures }] }),
    previewOverride: async () => ({ definition: { name: 'read' }, tokens: 5, own: 10, problems: [] }),
    search: () => ({ hits: [{ kind: 'server', name: 'files', detail: 'Files' }] }),
    servers: () => [views.server],
    server(_, name) {
      if (name === 'files') return views.serverDetail
      throw new ToolwayError('SERVER_NOT_FOUND', `There is no server ${JSON.stringify(name)}.`)
    },
    async control(caller, name, action) {
      note(action, name, caller)
      return views.server
    },
    async signIn(caller, name, redirect) {
      note('sign-in', { name, redirect: redirect.href }, caller)
      return { url: 'https://id.example.com/authorize?x=y' }
    },
    async refreshServers(caller) {
      note('refresh-servers', undefined, caller)
      return { servers: 2, failed: [], running: 0 }
    },
    grants: async () => [views.grant],
    async signOut(caller, name, principal) {
      note('sign-out', { name, principal }, caller)
      return []
    },
    async signedIn(answer) {
      note('signed-in', Object.fromEntries(answer))
      if (answer.get('state') === 'known') return 'files'
      throw new ToolwayError('AUTH_REQUIRED', 'No sign-in waits for <this>.')
    },
    tools(_, given) {
      note('tools', given)
      return { tools: [views.tool], total: 1, nextCursor: null }
    },
    async tool(_, name) {
      if (name === 'files__read') return views.toolDetail
      throw new ToolwayError('TOOL_NOT_FOUND', `There is no tool ${JSON.stringify(name)}.`)
    },
    inbox: () => views.inbox,
    async dismissItem(caller, id) {
      note('dismiss', id, caller)
      return { ...views.inbox, items: [], dismissed: 1 }
    },
    onInbox: (listener) => following(onInbox, listener),
    pins(given) {
      note('pins', given)
      return { mode: 'quarantine', pins: [], total: 0, open: 0, nextCursor: null }
    },
    pin: () => views.pin,
    skills: () => ({ skills: [views.skillView] }),
    skill: async () => views.skill,
    async approvePins(caller, definitions) {
      note('approve-pins', definitions, caller)
      return { approved: definitions.length }
    },
    async approvePin(caller, label, hash) {
      note('approve', { label, hash }, caller)
      return views.pin
    },
    async blockPin(caller, label, hash) {
      note('block', { label, hash }, caller)
      return views.pin
    },
    async tryTool(caller, name, { arguments: given, agent }) {
      note('try', { name, arguments: given.value, agent, sent: `${given.bytes}` }, caller)
      return { call: 'c9', ms: 1, result: { content: [] }, error: null }
    },
    calls: ({ admin, agent }) => calls.filter((call) => admin || call.agent === agent),
    async pastCalls(caller, given) {
      note('past-calls', given, caller)
      return { calls, total: calls.length, nextCursor: null }
    },
    callChoices: async () => ({ agent: ['dev'], server: ['files'], name: [], operation: [], code: [] }),
    call: async (_, id) => (id === 'c1' ? views.callDetail : undefined),
    approvals: ({ admin }) => (admin ? approvals : []),
    async answerApproval(caller, id, answer) {
      note('answer', { id, ...answer }, caller)
      return { id, call: 'c1', server: 'files', tool: 'write', decision: answer.decision }
    },
    onApprovals: (listener) => following(onApprovals, listener),
    async runAgain(caller, id) {
      note('run again', id, caller)
      return { call: 'c10', ms: 1, result: { content: [] }, error: null }
    },
    async playground(caller, { arguments: given, ...rest }, { send }) {
      note('playground', { ...rest, sent: `${given.bytes}` }, caller)
      if (rest.name === 'nothing') throw new ToolwayError('TOOL_NOT_FOUND', 'There is no such tool.')
      send({ kind: 'start', call: 'c11' })
      if (rest.name === 'fails') throw new ToolwayError('OVERLOADED', 'Too much.')
      send({ kind: 'end', outcome: { call: 'c11', ms: 1, result: { content: [] }, error: null } })
    },
    playgroundAnswer: (caller, id, answer) => void note('answer', { id, answer }, caller),
    completions: async () => ({ values: ['a'], hasMore: false }),
    resources: () => ({ resources: [], total: 0, nextCursor: null }),
    prompts: () => ({ prompts: [], total: 0, nextCursor: null }),
    async audit(given) {
      note('audit', given)
      return { rows: [{ seq: 1 }], nextCursor: null }
    },
    chain: () => views.chain,
    verifyChain: () => ({ ...views.chain, state: 'checking' }),
    agents: () => [views.agent],
    agentTools: async () => views.agentTools,
    matrix: () => ({
      agents: ['dev'],
      rows: [{ server: 'files', tool: 'read', allowed: [true] }],
      total: 1,
      nextCursor: null,
    }),
    why: async (_, { agent = 'default', tool }) => ({
      ...{ agent, server: 'files', tool, allowed: true, rule: 'r', sentence: 'Yes.' },
      decision: { allowed: true, rule: 'r' },
      considered: [{ step: 'agent', rule: 'r', outcome: 'allows', note: 'it may', text: 'agent: it may (allows)' }],
    }),
    policySettings: async () => views.policySettings,
    async previewPolicy(given) {
      note('preview-policy', given)
      return views.policyPreview
    },
    async *replayPolicy(given, days) {
      note('replay-policy', { edit: given, days })
      yield { kind: 'progress', records: 10_000 }
      yield { kind: 'end', replay: views.policyReplay }
    },
    keys: () => ({ keys: [views.key], file: '/state/keys.json', problem: null, agents: ['dev'], endpoints: [] }),
    async createKey(caller, given) {
      note('create-key', given, caller)
      return { secret: 'twk_ci_x', key: views.key }
    },
    async rotateKey(caller, id, given) {
      note('rotate-key', { id, ...given }, caller)
      return { secret: 'twk_ci_y', key: views.key }
    },
    async revokeKey(caller, id) {
      note('revoke-key', id, caller)
      return this.keys()
    },
    config: () => views.configView,
    ...createTestConfigEditing(note),
    lastReload: () => views.reloaded,
    async reload(caller) {
      note('reload', undefined, caller)
      return views.reloaded
    },
    onCalls: (listener) => following(onCalls, listener),
    onReload: (listener) => following(onReload, listener),
  }
  return {
    admin,
    asked,
    /** Whether there are listeners. */
    watched: () => onCalls.size + onReload.size + onInbox.size > 0,
    tellInbox: (view: InboxView) => {
      for (const listener of onInbox) listener(view)
    },
    tellCalls: (news: readonly CallView[]) => {
      for (const listener of onCalls) listener(news)
    },
    tellReload: (event: ReloadEvent) => {
      for (const listener of onReload) listener(event)
    },
    tellApprovals: (waiting: readonly ApprovalView[]) => {
      approvals = waiting
      for (const listener of onApprovals) listener()
    },
    /** Makes events larger. */
    pad(bytes: number) {
      padding = 'x'.repeat(bytes)
    },
  }
}

interface Settings {
  readonly authenticate?: Authenticate
  readonly config?: Partial<HttpConfig>
  readonly metrics?: AdminEndpointOptions['metrics']
  readonly folder?: string
  readonly logins?: AdminEndpointOptions['logins']
  readonly chat?: AdminEndpointOptions['chat']
  /** Where requests seem to come from. */
  readonly address?: () => string
}

/** The endpoint for people on a free port, behind a server that has nothing else; time stands still unless moved. */
export async function openTestAdmin(settings: Settings = {}) {
  const clock = createManualClock()
  const log = createKeptLog()
  const access = createTestAccess()
  const test = createTestAdmin()
  const server = createServer({ requireHostHeader: false })
  const port = await listen(server, '127.0.0.1', 0)
  const config = httpConfig(settings.config)
  const authenticate = settings.authenticate ?? people()
  const endpoint = new AdminEndpoint({
    admin: test.admin,
    access,
    authenticate,
    admit: admitWith(authenticate, clock),
    bodies: createBodyReader(config),
    budgets: createBudgets(),
    config,
    hosts: allowedHosts(config, port),
    port,
    metrics: settings.metrics,
    chat: settings.chat,
    logins: settings.logins,
    folder: settings.folder ?? join(import.meta.dirname, 'nowhere'),
    version: '1.2.3',
    clock,
    log,
  })
  server.on('request', (request: IncomingMessage, response) => {
    const address = settings.address?.()
    if (address !== undefined)
      Object.defineProperty(request.socket, 'remoteAddress', { value: address, configurable: true })
    try {
      const path = (request.url ?? '').split('?')[0] as string
      if (!endpoint.handle(request, response, path)) throw new HttpError(404, rpcCodes.request, 'nothing here')
    } catch (thrown) {
      sendHttpError(response, toHttpError(thrown, log), clock)
    }
  })
  const origin = `http://127.0.0.1:${port}`
  const raw = async (path: string, options: RawRequest = {}) => {
    const answer = await rawRequest(origin, { method: 'GET', ...options, path })
    const json = /^[[{]/.test(answer.text) ? JSON.parse(answer.text) : undefined
    return { ...answer, json }
  }
  return {
    ...test,
    ...{ endpoint, access, clock, log, origin, port, raw },
    /** A request to the API with a credential; a body makes it a POST. */
    api(
      path: string,
      { token = 'operator', body, ...more }: Omit<RawRequest, 'body'> & { token?: string; body?: object } = {},
    ) {
      const headers = {
        authorization: `Bearer ${token}`,
        ...(body && { 'content-type': 'application/json' }),
        ...more.headers,
      }
      const method = body ? 'POST' : 'GET'
      return raw(`/admin/api/${path}`, { method, ...more, headers, ...(body && { body: JSON.stringify(body) }) })
    },
    /** Logs in, and gives the headers of the browser afterwards. */
    async logIn(token = 'operator') {
      const body = JSON.stringify({ token })
      const answer = await raw('/admin/api/session', { method: 'POST', headers: json, body })
      const [cookie = ''] = answer.headers['set-cookie'] ?? []
      return { ...answer, cookie, browser: { cookie: cookie.split(';')[0] as string } }
    },
    async [Symbol.asyncDispose]() {
      endpoint[Symbol.dispose]()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export const json = { 'content-type': 'application/json' }
