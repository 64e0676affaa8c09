import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpConfig } from '../config/schema.ts'
import type { Access } from '../core/access.ts'
import type { Clock } from '../core/clock.ts'
import type { ErrorCode } from '../core/errors.ts'
import type { LoginStore } from '../core/history.ts'
import { FairSemaphore } from '../core/limits/fair-semaphore.ts'
import { fixedLimits } from '../core/limits/fixed-limits.ts'
import { WorkTurns } from '../core/limits/turns.ts'
import type { Log } from '../core/log.ts'
import type { MetricsPages } from '../runtime/gateway.ts'
import { type Authenticate, type AuthIdentity, createCredentialWatch } from '../serve/auth/identity.ts'
import {
  apiCodeOf,
  apiErrorBody,
  HttpError,
  isUnreadableRequest,
  methodNotAllowed,
  recordMalformed,
  rpcCodes,
  sendHttpError,
  toHttpError,
} from '../serve/errors.ts'
import type { HttpEndpoint, ListeningServer } from '../serve/http/endpoint.ts'
import { offendingHeader } from '../serve/http/hosts.ts'
import { abortOnClose } from '../serve/http/sse-stream.ts'
import { createDashboardFiles } from '../serve/http/static-files.ts'
import { streamAnswer } from '../serve/openai/chat.ts'
import { createDashboardChat } from './chat/chat.ts'
import { createLiveEvents } from './live-events.ts'
import { openApi } from './openapi.ts'
import { createPlaygroundStreams } from './playground/streams.ts'
import { answerJson, apiHeaders, failureEvent } from './responses.ts'
import { answered, createRouter, parseInput, type Route, type RouteContext, readQuery } from './router.ts'
import { routes } from './routes.ts'
import { answerCallback, callbackPath } from './servers/oauth-callback.ts'
import type { AdminService } from './service.ts'
import { type AdminUser, type Credentials, createCredentials } from './session/credentials.ts'

export interface AdminEndpointOptions
  extends Pick<ListeningServer, 'admit' | 'bodies' | 'budgets' | 'hosts' | 'port' | 'chat'> {
  readonly admin: AdminService
  readonly access: Pick<Access, 'agentOf' | 'rejected'>
  readonly authenticate: Authenticate
  readonly config: Pick<HttpConfig, 'path'>
  /** Undefined if metrics are disabled. */
  readonly metrics?: MetricsPages | undefined
  /** The folder that contains the built dashboard. */
  readonly folder: string
  readonly version: string
  /** Where logins outlive the process. */
  readonly logins?: LoginStore | undefined
  readonly clock: Clock
  readonly log: Log
}

interface Incoming {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly target: ReturnType<ReturnType<typeof createRouter>>['target']
  readonly user: AdminUser | undefined
}

const base = '/admin/api'

export function createAdminEndpoint(options: AdminEndpointOptions): HttpEndpoint {
  const { admin, access, config, bodies, hosts, clock, log } = options
  const { requests } = options.budgets
  const credentials = createCredentials(options)
  const events = createLiveEvents(admin, { dashboards: options.budgets.dashboards, clock, log })
  const pages = createDashboardFiles(options.folder, { endpoint: config.path, hosts })
  const find = createRouter(routes)
  const turns = new WorkTurns()
  const reads = new FairSemaphore({ perCaller: fixedLimits.adminReads.value })
  let document: object | undefined
  let draining = false

  const context: RouteContext = {
    admin,
    credentials,
    events,
    chat: createDashboardChat(options),
    playground: createPlaygroundStreams(options),
    document() {
      document ??= openApi(routes, options.version)
      return document
    },
    stream: (response, events) =>
      streamAnswer(events, {
        response,
        encode: (event) => [jsonBytes(event)],
        failure: (thrown) => jsonBytes(failureEvent(thrown, log)),
        clock,
      }),
    watch: ({ identity, reauthenticate: again }, response) =>
      createCredentialWatch(again, clock)({ authorization: undefined, identity, response }),
  }

  const answer = async (request: IncomingMessage, response: ServerResponse, path: string) => {
    const { route, target } = find(request.method ?? '', path)
    if (draining) throw HttpError.of('OVERLOADED', 'This gateway is shutting down.', { retryAfterMs: 1_000 })
    // Authenticate first, so that errors in the query are reported to authenticated users only.
    const user = route.access === 'anyone' ? undefined : await admitted(request, route, path)
    const sender = user?.identity.principal ?? 'anonymous'
    requests.claim(sender)
    try {
      // One caller's reads must not keep others waiting: each takes milliseconds, and some hundreds of them.
      using _ = route.method === 'GET' && !route.stream ? await reads.take(sender) : undefined
      if (_) await turns.take(sender, () => requests.used > requests.usedBy(sender))
      if (response.destroyed) return
      await run(route, { request, response, target, user })
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

  const run = async (route: Route, { request, response, target, user }: Incoming) => {
    const query = readQuery(request.url ?? '', route.query)
    const bytes =
      route.body && (await bodies.read({ request, response, identity: user?.identity, limit: route.maxBody }))
    const body = route.body && bytes && parseInput(bytes, route.body)
    if (response.destroyed) return
    const signal = abortOnClose(response)
    const input = { target, query, body, bytes, request, response, signal, user, caller: user?.caller }
    const value = await route.run(input as never, context)
    if (value !== answered) answerJson(response, value)
  }

  const admitted = async (
    request: IncomingMessage,
    { access: who, path }: Route,
    asked: string,
  ): Promise<AdminUser> => {
    const user = await credentials.admit(request)
    const { admin, principal, address } = user.caller
    if (who === 'guest' || admin) return user
    access.rejected({ code: 'DENIED_BY_POLICY', principal, address, detail: `${request.method} ${asked}` })
    throw onlyForAdmins(path)
  }

  /**
   * Audits rejected requests as the MCP endpoint does (F11), except for GET session without a credential. Errors of
   * services, which are not HTTP errors, are audited where they are thrown, except in the redirect after a sign-in.
   */
  const recordRejection = (request: IncomingMessage, refusal: HttpError, path: string) => {
    const { method, headers } = request
    if (method === 'GET' && path === 'session' && headers.authorization === undefined) return
    if (![401, 403, 429].includes(refusal.status) || isRecorded(refusal)) return
    const code = apiCodeOf(refusal) as ErrorCode
    access.rejected({ code, ...offendingHeader(request, refusal), address: request.socket.remoteAddress })
  }

  const serve = (request: IncomingMessage, response: ServerResponse, path: string, work: () => Promise<void>) => {
    for (const [name, value] of Object.entries(apiHeaders)) response.setHeader(name, value)
    const checked = async () => {
      hosts.check(request.headers.host, request.headers.origin)
      await work()
    }
    checked().catch((thrown: unknown) => {
      const refusal = toHttpError(thrown, log)
      if (thrown instanceof HttpError || path === callbackPath) recordRejection(request, refusal, path)
      sendHttpError(response, refusal, clock, apiErrorBody)
    })
  }

  return {
    handle(request, response, path) {
      if (path === base || path.startsWith(`${base}/`)) {
        const below = path.slice(base.length + 1)
        serve(request, response, below, () => answer(request, response, below))
      } else if (path === '/metrics') {
        serve(request, response, path, () => answerMetrics(request, response, credentials, options.metrics))
      } else if (path === callbackPath) {
        serve(request, response, path, () => answerCallback(request, response, admin))
      } else return pages(request, response, path)
      return true
    },
    [Symbol.dispose]() {
      draining = true
      events[Symbol.dispose]()
    },
  }
}

const jsonBytes = (value: object): Buffer => Buffer.from(JSON.stringify(value))

const forAdmins = 'admin'

const onlyForAdmins = (path: string): HttpError =>
  HttpError.of(
    'DENIED_BY_POLICY',
    `${path} is for administrators: log in with the gateway's token, or with an API key that has admin rights (toolway keys create --admin).`,
    { rule: forAdmins },
  )

/** Whether the rejection is already audited: refused admin routes are recorded with the principal. */
const isRecorded = ({ details: { data } }: HttpError): boolean =>
  (data as { rule?: string } | undefined)?.rule === forAdmins

async function answerMetrics(
  request: IncomingMessage,
  response: ServerResponse,
  credentials: Credentials,
  metrics: MetricsPages | undefined,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed(request.method, 'GET, HEAD')
  const { identity } = await credentials.admit(request)
  if (!metrics) throw new HttpError(404, rpcCodes.request, 'Metrics are disabled: telemetry.metrics is false.')
  if (!maySee(identity)) {
    const sentence =
      'Metrics cover all agents: they require an admin credential, or one that may act as every agent (toolway keys create --agent "*").'
    throw HttpError.of('DENIED_BY_POLICY', sentence, { rule: 'telemetry.metrics' })
  }
  const { body, contentType } = await metrics(request.headers.accept)
  response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) }).end(body)
}

/** Whether a caller may see metrics: admins, callers that may act as any agent, and anonymous callers may. */
const maySee = ({ authenticated, admin, agents }: AuthIdentity): boolean => !authenticated || admin || agents === '*'
