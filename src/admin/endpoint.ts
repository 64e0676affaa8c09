import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpConfig } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import { type ErrorCode, ToolwayError } from '../core/errors.ts'
import type { LoginStore } from '../core/history.ts'
import { FairSemaphore } from '../core/limits/fair-semaphore.ts'
import { fixedLimits } from '../core/limits/fixed-limits.ts'
import { WorkTurns } from '../core/limits/turns.ts'
import type { Log } from '../core/log.ts'
import type { GatewayParts } from '../runtime/gateway.ts'
import type { MetricsPages } from '../runtime/workers/protocol.ts'
import { createCredentialWatch } from '../serve/auth/identity.ts'
import {
  apiCodeOf,
  apiErrorBody,
  HttpError,
  isUnreadableRequest,
  methodNotAllowed,
  recordMalformed,
  rpcCodes,
  sendHttpError,
} from '../serve/errors.ts'
import { offendingHeader } from '../serve/http/hosts.ts'
import { sendJson } from '../serve/http/response.ts'
import type { HttpEndpoint, ListeningServer } from '../serve/http/router.ts'
import { abortOnClose } from '../serve/http/sse-stream.ts'
import { createDashboardFiles } from '../serve/http/static-files.ts'
import { streamAnswer } from '../serve/openai/chat.ts'
import { createDashboardChat } from './chat/chat.ts'
import { LiveEvents } from './live-events.ts'
import {
  type AdminUser,
  createRouter,
  failureEvent,
  jsonBytes,
  parseInput,
  type Route,
  type RouteContext,
  readQuery,
  refusalOf,
  responseSent,
} from './router.ts'
import { adminRoutes } from './routes.ts'
import { answerCallback, callbackPath } from './servers/oauth-callback.ts'
import type { AdminService } from './service.ts'
import { type Credentials, createCredentials } from './session/credentials.ts'

export interface AdminEndpointOptions
  extends Pick<ListeningServer, 'admit' | 'bodies' | 'budgets' | 'hosts' | 'port' | 'chat'>,
    Pick<GatewayParts, 'access' | 'authenticate'> {
  readonly admin: AdminService
  readonly metrics?: MetricsPages | undefined
  readonly config: Pick<HttpConfig, 'path'>
  readonly folder: string
  readonly version: string
  /** Where logins outlive the process. */
  readonly logins?: LoginStore | undefined
  readonly clock: Clock
  readonly log: Log
}

const adminApiBase = '/admin/api'

/** Serves the admin API, the metrics, the redirect after a sign-in, and the dashboard's files. */
export class AdminEndpoint implements HttpEndpoint {
  readonly #options: AdminEndpointOptions
  readonly #credentials: Credentials
  readonly #events: LiveEvents
  readonly #pages: HttpEndpoint['handle']
  readonly #find: ReturnType<typeof createRouter>
  readonly #context: RouteContext
  readonly #turns = new WorkTurns()
  readonly #reads = new FairSemaphore({ perCaller: fixedLimits.adminReads.value })
  #draining = false

  constructor(options: AdminEndpointOptions) {
    const { admin, config, hosts, version, clock, log } = options
    this.#options = options
    this.#credentials = createCredentials(options)
    this.#events = new LiveEvents(admin, options)
    this.#pages = createDashboardFiles(options.folder, { endpoint: config.path, hosts })
    const routes = adminRoutes({
      admin,
      credentials: this.#credentials,
      chat: createDashboardChat(options),
      events: this.#events,
      streams: options,
      version,
    })
    this.#find = createRouter(routes)
    this.#context = {
      stream: (response, events) =>
        streamAnswer(events, {
          response,
          encode: (event) => [jsonBytes(event)],
          failure: (thrown) => jsonBytes(failureEvent(thrown, log)),
          clock,
        }),
      watch: ({ identity, reauthenticate }, response) =>
        createCredentialWatch(reauthenticate, clock)({ authorization: undefined, identity, response }),
    }
  }

  handle(request: IncomingMessage, response: ServerResponse, path: string): boolean {
    if (path === adminApiBase || path.startsWith(`${adminApiBase}/`)) {
      const below = path.slice(adminApiBase.length + 1)
      this.#serve(request, response, below, () => this.#answer(request, response, below))
    } else if (path === '/metrics') {
      this.#serve(request, response, path, () => this.#answerMetrics(request, response))
    } else if (path === callbackPath) {
      const { admin } = this.#options
      this.#serve(request, response, path, () => answerCallback(request, response, (answer) => admin.signedIn(answer)))
    } else return this.#pages(request, response, path)
    return true
  }

  [Symbol.dispose](): void {
    this.#draining = true
    this.#events[Symbol.dispose]()
  }

  #serve(request: IncomingMessage, response: ServerResponse, path: string, work: () => Promise<void>): void {
    const { hosts, clock, log } = this.#options
    for (const [name, value] of Object.entries(apiHeaders)) response.setHeader(name, value)
    const checked = async () => {
      hosts.check(request.headers.host, request.headers.origin)
      await work()
    }
    checked().catch((thrown: unknown) => {
      const refusal = refusalOf(thrown, log)
      if (thrown instanceof HttpError || path === callbackPath) this.#recordRejection(request, refusal, path)
      sendHttpError(response, refusal, clock, apiErrorBody)
    })
  }

  async #answer(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const { access, budgets } = this.#options
    const { route, target } = this.#find(request.method ?? '', path)
    if (this.#draining) throw HttpError.of('OVERLOADED', 'This gateway is shutting down.', { retryAfterMs: 1_000 })
    // Authenticate first, so that errors in the query are reported to authenticated users only.
    const user = route.access === 'anyone' ? undefined : await this.#admit(request, route, path)
    const sender = user?.identity.principal ?? 'anonymous'
    const { requests } = budgets
    requests.claim(sender)
    try {
      // One caller's reads must not keep others waiting: each takes milliseconds, and some hundreds of them.
      using _ = route.method === 'GET' && !route.stream ? await this.#reads.take(sender) : undefined
      if (_) await this.#turns.take(sender, () => requests.used > requests.usedBy(sender))
      if (!response.destroyed) await this.#run(route, target, user, request, response)
    } catch (thrown) {
      // A service throws other errors, and audits them itself if it audits the action.
      if (thrown instanceof HttpError && isUnreadableRequest(thrown)) {
        const { remoteAddress: address } = request.socket
        recordMalformed(access, { principal: user?.identity.principal, address }, thrown.message)
      }
      throw thrown
    } finally {
      requests.give(sender)
    }
  }

  async #admit(request: IncomingMessage, { access: who, path }: Route, asked: string): Promise<AdminUser> {
    const user = await this.#credentials.admit(request)
    const { admin, principal, address } = user.caller
    if (who === 'guest' || admin) return user
    const detail = `${request.method} ${asked}`
    this.#options.access.rejected({ code: 'DENIED_BY_POLICY', principal, address, detail })
    // Not an HttpError: those are audited without the principal.
    const sentence = `${path} is for administrators: log in with the gateway's token, or with an API key that has admin rights (toolway keys create --admin).`
    throw new ToolwayError('DENIED_BY_POLICY', sentence, { rule: 'admin' })
  }

  async #run(
    route: Route,
    target: string,
    user: AdminUser | undefined,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const query = readQuery(request.url ?? '', route.query)
    const { identity, caller } = user ?? {}
    const bytes = route.body && (await this.#options.bodies.read({ request, response, identity, limit: route.maxBody }))
    const body = route.body && bytes && parseInput(bytes, route.body)
    if (response.destroyed) return
    const signal = abortOnClose(response)
    const input = { target, query, body, bytes, request, response, signal, user, caller }
    const value = await route.run(input as never, this.#context)
    if (value === responseSent || response.destroyed) return
    if (value === undefined) response.writeHead(204).end()
    else sendJson(response, value)
  }

  async #answerMetrics(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { metrics } = this.#options
    if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed(request.method, 'GET, HEAD')
    const { identity } = await this.#credentials.admit(request)
    if (!metrics) throw new HttpError(404, rpcCodes.request, 'Metrics are disabled: telemetry.metrics is false.')
    if (identity.authenticated && !identity.admin && identity.agents !== '*') {
      const sentence =
        'Metrics cover all agents: they require an admin credential, or one that may act as every agent (toolway keys create --agent "*").'
      throw HttpError.of('DENIED_BY_POLICY', sentence, { rule: 'telemetry.metrics' })
    }
    const { body, contentType } = await metrics(request.headers.accept)
    response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) }).end(body)
  }

  /**
   * Audits rejected requests as the MCP endpoint does (F11), except for GET session without a credential. Errors of
   * services, which are not HTTP errors, are audited where they are thrown, except in the redirect after a sign-in.
   */
  #recordRejection(request: IncomingMessage, refusal: HttpError, path: string): void {
    const { method, headers, socket } = request
    if (method === 'GET' && path === 'session' && headers.authorization === undefined) return
    if (![401, 403, 429].includes(refusal.status)) return
    const code = apiCodeOf(refusal) as ErrorCode
    this.#options.access.rejected({ code, ...offendingHeader(request, refusal), address: socket.remoteAddress })
  }
}

/** Headers for all responses except pages. They prevent caching, framing and type sniffing. */
const apiHeaders = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
} as const
