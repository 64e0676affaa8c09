import { Agent, request } from 'undici'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import type { Config, HttpConfig } from '../../config/schema.ts'
import type { Chat } from '../../core/chat.ts'
import type { Clock } from '../../core/clock.ts'
import type { Membership } from '../../core/cluster.ts'
import { createBudgets } from '../../core/limits/budget.ts'
import { createTestAccess, type TestAccess } from '../access.fixture.ts'
import type { Authenticate } from '../auth/identity.ts'
import { authenticateToken, bearerTokens } from '../auth/token.fixture.ts'
import type { PublishedConfig } from './registry.ts'
import type { HttpEndpoint } from './router.ts'
import { openHttpServer } from './server.ts'

export const token = 'a-test-token'
export const info = { name: 'toolway', version: '0.0.0', instructions: 'Use the tools.' }

export const httpConfig = (changes: Partial<HttpConfig> = {}): HttpConfig => ({
  host: '127.0.0.1',
  port: 0,
  path: '/mcp',
  allowedHosts: [],
  allowedOrigins: [],
  allowUnauthenticated: false,
  maxBody: 256 * 1024,
  maxInFlight: 128 * 1024 * 1024,
  maxInFlightPerCaller: 32 * 1024 * 1024,
  maxValues: 100_000,
  maxConnections: 10_000,
  maxConnectionsPerAddress: 2_000,
  shutdownGrace: 10_000,
  ...changes,
})

interface Settings {
  readonly config?: Partial<HttpConfig>
  /** Two people with a token each, instead of one token for all. */
  readonly people?: boolean
  /** Another way in altogether, in the server's own time. */
  readonly authenticate?: (clock: Clock) => Authenticate
  readonly token?: string | undefined
  readonly ready?: () => boolean
  readonly traced?: () => boolean
  readonly access?: TestAccess
  readonly chat?: () => Chat | undefined
  readonly jwt?: () => Config['auth']['jwt']
  readonly endpoints?: Config['endpoints']
  readonly published?: () => PublishedConfig
  readonly adminEndpoint?: () => Promise<HttpEndpoint>
  readonly membership?: Membership
}

/** A real HTTP server on a free port, in front of the small catalog; time stands still unless a test moves it. */
export async function openTestServer(settings: Settings = {}) {
  const { access = createTestAccess() } = settings
  const clock = createManualClock()
  const log = createKeptLog()
  const config = httpConfig(settings.config)
  const { traced, chat, jwt, adminEndpoint, membership, published } = settings
  const endpoints = () => settings.endpoints ?? {}
  const budgets = createBudgets()
  const { ready = () => true } = settings
  const shared = {
    config,
    access,
    budgets,
    info,
    current: { ready, traced, chat, jwt, endpoints, published },
    clock,
    log,
  }
  const known = 'token' in settings ? settings.token : token
  const authenticate = settings.authenticate?.(clock) ?? (settings.people ? people : authenticateToken(known))
  const server = await openHttpServer({ ...shared, authenticate, adminEndpoint, membership })
  const agent = new Agent()
  const origin = `http://127.0.0.1:${server.port}`

  const fetchRaw = (options: RawOptions = {}) =>
    request(`${origin}${options.path ?? '/mcp'}`, {
      dispatcher: agent,
      method: options.method ?? 'POST',
      headers: given({ ...goodHeaders, ...options.headers }),
      body:
        options.body === undefined
          ? null
          : typeof options.body === 'string'
            ? options.body
            : JSON.stringify(options.body),
      ...(options.signal && { signal: options.signal }),
    })

  return {
    server,
    budgets,
    access,
    clock,
    log,
    origin,
    /** One request as it stands; a header set to undefined is left out. */
    async raw(options: RawOptions = {}) {
      const { statusCode: status, headers, body } = await fetchRaw(options)
      const text = await body.text()
      return { status, headers, text, json: text.startsWith('{') ? (JSON.parse(text) as Answer) : undefined }
    },
    fetchRaw,
    /** Opens a session by hand and talks in it. */
    async session(capabilities: object = {}, headers: Headers = {}, revision?: string) {
      const opened = await fetchRaw({ body: initializeWith(capabilities, revision), headers })
      await opened.body.dump()
      const id = opened.headers['mcp-session-id'] as string
      const own = { 'mcp-session-id': id, ...headers }
      return {
        id,
        headers: own,
        send: (message: object, options: RawOptions = {}) =>
          fetchRaw({ ...options, body: { jsonrpc: '2.0', ...message }, headers: { ...own, ...options.headers } }),
        async ask(method: string, params: object = {}, requestId: number | string = 1) {
          const { body } = await fetchRaw({ body: { jsonrpc: '2.0', id: requestId, method, params }, headers: own })
          return (await body.json()) as Answer
        },
        /** Opens a stream, behind an event if one is given. */
        stream: (lastEventId?: string) => fetchRaw({ method: 'GET', headers: { ...own, ...listening(lastEventId) } }),
      }
    },
    async [Symbol.asyncDispose]() {
      await agent.destroy()
      await server[Symbol.asyncDispose]()
    },
  }
}

const anna = { principal: 'anna', authenticated: true, admin: false, agents: [] }
const bert = { principal: 'bert', authenticated: true, admin: false, agents: [] }

const people = bearerTokens([
  ['anna-token', anna],
  ['bert-token', bert],
])

const given = (headers: Headers) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)) as Record<string, string>

const listening = (lastEventId: string | undefined): Headers => ({
  accept: 'text/event-stream',
  'content-type': undefined,
  'last-event-id': lastEventId,
})

type Headers = Record<string, string | undefined>

export interface RawOptions {
  readonly method?: 'POST' | 'GET' | 'DELETE' | 'PUT' | 'OPTIONS' | 'HEAD'
  readonly path?: string
  readonly headers?: Headers
  readonly body?: string | object
  readonly signal?: AbortSignal
}

export interface Answer {
  readonly jsonrpc: string
  readonly id: number | string | null
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  readonly result?: any
  readonly error?: { code: number; message: string; data?: Record<string, unknown> }
}

/** An event, or a comment: then its text stands in `jsonrpc`. */
export interface Event extends Answer {
  readonly method?: string
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly params?: any
}

const goodHeaders: Headers = {
  authorization: `Bearer ${token}`,
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
}

export const initializeWith = (capabilities: object = {}, protocolVersion = '2025-11-25') => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion, capabilities, clientInfo: { name: 'by hand', version: '1' } },
})

/** The messages and comments of an event stream, one at a time. */
export async function* events(body: AsyncIterable<Buffer>): AsyncGenerator<Event> {
  for await (const { data, comment } of rawEvents(body)) {
    if (data) yield JSON.parse(data)
    else if (comment !== undefined) yield { jsonrpc: comment, id: null }
  }
}

/** The blocks of an event stream as they are, those without a message too. */
export interface RawEvent {
  readonly id?: string
  readonly retry?: string
  readonly data?: string
  readonly comment?: string
}

export async function* rawEvents(body: AsyncIterable<Buffer>): AsyncGenerator<RawEvent> {
  let text = ''
  for await (const chunk of body) {
    text += chunk
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const block = text.slice(0, end)
      text = text.slice(end + 2)
      if (block.startsWith(':')) yield { comment: block }
      else yield Object.fromEntries(block.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line)?.slice(1) ?? []))
    }
  }
}
