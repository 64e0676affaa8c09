import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Server as NetServer } from 'node:net'
import { hostname } from 'node:os'
import type { Config, HttpConfig } from '../../config/schema.ts'
import type { Access } from '../../core/access.ts'
import type { Chat } from '../../core/chat.ts'
import type { Clock } from '../../core/clock.ts'
import type { Membership } from '../../core/cluster.ts'
import { pause, settles } from '../../core/deadline.ts'
import type { ErrorCode } from '../../core/errors.ts'
import { type Budgets, createBudgets } from '../../core/limits/budget.ts'
import { RequestTurns } from '../../core/limits/turns.ts'
import type { Log } from '../../core/log.ts'
import { createLazy, type Lazy } from '../../lib/memoize.ts'
import type { Authenticate } from '../auth/identity.ts'
import { createAdmit, type FailureSettings } from '../auth/throttle.ts'
import {
  clientAddress,
  clientHeader,
  forwardedFrom,
  forwardToAdminWorker,
  type Workers,
} from '../cluster/forward-request.ts'
import { type EnvironmentsOptions, routeToEnvironments } from '../cluster/route-to-owner.ts'
import {
  HttpError,
  methodNotAllowed,
  recordIfMalformed,
  recordMalformed,
  rpcCodes,
  sendHttpError,
  toHttpError,
} from '../errors.ts'
import { createLegacyProtocol, type GatewayInfo } from '../mcp-legacy/protocol.ts'
import { createStatelessHttp } from '../mcp-stateless/http.ts'
import { createStatelessProtocol } from '../mcp-stateless/protocol.ts'
import { listChangedNotifications } from '../session/session.ts'
import { createSessionStore } from '../session/session-store.ts'
import { createBodyReader } from './bodies.ts'
import { acceptConnections, createConnectionLimit, holdConnections } from './connections.ts'
import type { HttpEndpoint, ListeningServer } from './endpoint.ts'
import { allowedHosts, allowOrigin, answerPreflight, bracketed, isPreflight, offendingHeader } from './hosts.ts'
import { listen, openPrivatePort } from './listen.ts'
import { createMcpEndpoint } from './mcp-endpoint.ts'
import { cardPath, createOAuthMetadataEndpoint, createServerCardEndpoint } from './public-documents.ts'
import { answerUnreadable, checkSingleHeaders, type ReceivedRequest } from './request.ts'
import { keepAliveMs } from './response.ts'
import { createUnreadResponses } from './sse-stream.ts'

/** A listening HTTP server. When it is disposed of, requests in flight may finish within `shutdownGrace`. */
export interface HttpServer extends AsyncDisposable {
  readonly url: string
  readonly port: number
  /** The URL where other replicas reach this one. */
  readonly address: string
  readonly sessions: number
  /**
   * Stops accepting connections. Open connections are served, with `Connection: close`, until they end or `ms`
   * milliseconds have passed. If a response is still being sent then, the client's next request is also served, within
   * `shutdownGrace`. Used once a successor is listening on the same address.
   */
  retire(ms: number): Promise<void>
}

interface HttpServerOptions {
  readonly adminEndpoint?: (open: ListeningServer) => Promise<HttpEndpoint>
  /** The chat for the current configuration, served as an OpenAI-compatible API. */
  chat?(): Chat | undefined
  /** The identity provider in the current configuration, published to clients. */
  jwt?(): Config['auth']['jwt']
  failures?(): FailureSettings
  readonly config: HttpConfig
  readonly access: Access
  readonly authenticate: Authenticate
  readonly info: GatewayInfo
  readonly ready: () => boolean
  readonly membership?: Membership | undefined
  readonly workers?: Workers | undefined
  /** Finds the environment that a tool call names. Another replica may hold that environment. */
  readonly environmentOf?: EnvironmentsOptions['environmentOf']
  traced?(): boolean
  readonly budgets?: Budgets
  readonly clock: Clock
  readonly log: Log
}

/** Opens a server. Rejects with CannotListen if the address is not available. */
export async function openHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { config, access, info, ready, traced, budgets = createBudgets(), clock, log, authenticate } = options
  const server = createServer({
    // Accept requests without a Host header here, so that they get Toolway's own error message.
    requireHostHeader: false,
    headersTimeout: 10_000,
    requestTimeout: 60_000,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: 5_000,
  })
  server.maxConnections = config.maxConnections
  // Do not limit the number of headers: node:http would drop the excess silently, which could hide a second Host
  // header. The limit on the total header size also bounds their number.
  server.maxHeadersCount = 0

  const { membership, workers, environmentOf } = options
  const incoming = holdConnections(server)
  const port = await listen(server, config.host, config.port, workers?.port)
  const hosts = allowedHosts(config, port)
  const privatePort =
    workers && (await openPrivatePort(server, workers.membership === membership ? '127.0.0.1' : config.host))
  const sessions = createSessionStore({ access, budgets, clock, log, membership })
  const legacy = createLegacyProtocol({ access, info, log })
  const routeCall = membership && environmentOf && routeToEnvironments({ membership, environmentOf, clock })
  const protocol = createStatelessProtocol({ access, info, replica: membership?.self, budgets, clock, log })
  const unread = createUnreadResponses(budgets.response_bytes)
  const stateless = createStatelessHttp({ protocol, access, membership, routeCall, unread, clock, log })
  // A single process has no forwarded requests.
  const clientAddressOf = (request: ReceivedRequest) =>
    membership ? clientAddress(request, membership) : request.socket.remoteAddress
  const turns = new RequestTurns()
  const admit = createAdmit({
    authenticate,
    settings: options.failures ?? (() => usualFailures),
    addressOf: clientAddressOf,
    turns,
    clock,
  })
  const bodies = createBodyReader(config, budgets)
  const endpoint = createMcpEndpoint({
    access,
    authenticate,
    admit,
    turns,
    bodies,
    legacy,
    stateless,
    sessions,
    budgets,
    unread,
    membership,
    addressOf: clientAddressOf,
    traced,
    clock,
    log,
  })
  const url = `http://${reachable(config.host)}:${port}${config.path}`
  const { adminEndpoint, chat, jwt } = options
  const listening: ListeningServer = {
    ...{ url, port, hosts, admit, bodies, budgets, chat },
    sessions: () => sessions.count,
  }
  /** Endpoints that are created on the first request to their path. */
  const further: { readonly below: string; readonly endpoint: Lazy<HttpEndpoint> }[] = []
  const add = (below: string, open: () => Promise<HttpEndpoint>) => further.push({ below, endpoint: createLazy(open) })
  if (chat) add('/v1/', () => openAi(chat))
  if (jwt) add('/.well-known/', async () => createOAuthMetadataEndpoint({ jwt, config, hosts }))
  add(cardPath(config.path), async () => createServerCardEndpoint({ info, config, hosts }))
  if (adminEndpoint) add('/', () => adminEndpoint(listening))
  const changes = access.onChange((kinds, session) => sessions.tell(listChangedNotifications(kinds), session))
  const base = config.path.replace(/\/$/, '')
  // Also accept common variants of the path, which users paste into their clients.
  const endpoints = new Set([config.path, `${base}/`, `${base}/stream`])

  let draining = false
  let retiring = false

  const enter = (request: ReceivedRequest, response: ServerResponse) => {
    const { origin } = request.headers
    // Do not check a forwarded request: the replica that forwarded it has already checked these headers.
    if (!membership || !forwardedFrom(request, membership)) checkHeaders(request)
    if (origin !== undefined) allowOrigin(response, origin)
    if (isPreflight(request)) answerPreflight(response)
    else endpoint.handle(request, response)
  }

  let warnAgainAt = 0
  const checkHeaders = ({ headers }: ReceivedRequest) => {
    try {
      hosts.check(headers.host, headers.origin)
    } catch (thrown) {
      if (!membership || headers[clientHeader] === undefined) throw thrown
      // Anyone can send this header, so such requests must not fill the log.
      if (clock.monotonic() >= warnAgainAt) {
        warnAgainAt = clock.monotonic() + warnEveryMs
        log.warn({ host: headers.host }, `rejected a forwarded request: ${invalidSignature}`)
      }
      const { rule } = (thrown as HttpError).details.data as { rule?: string }
      throw HttpError.of('DENIED_BY_POLICY', `This request was forwarded, but ${invalidSignature}.`, { rule })
    }
  }

  const route = (request: IncomingMessage, response: ServerResponse) => {
    checkSingleHeaders(request)
    readAbsoluteForm(request)
    const path = pathOf(request.url ?? '/')
    if (endpoints.has(path)) enter(request, response)
    else if (path === '/livez') probe(request, response, true)
    else if (path === '/readyz') probe(request, response, !draining && ready())
    else void handOn(request, response, path)
  }

  const handOn = async (request: IncomingMessage, response: ServerResponse, path: string) => {
    try {
      const place = further.find(({ below }) => path.startsWith(below))
      const workerRouting = place?.below === '/' && membership && workers && { membership, workers, clock, log }
      if (workerRouting && (await forwardToAdminWorker(request, response, workerRouting))) return
      const opened = await place?.endpoint.get()
      if (draining) opened?.[Symbol.dispose]()
      if (!opened?.handle(request, response, path)) throw nothingAt(config.path)
    } catch (thrown) {
      refused(request, response, thrown)
    }
  }

  const openAi = async (chat: () => Chat | undefined) => {
    const { createOpenAiEndpoint } = await import('../openai/endpoint.ts')
    return createOpenAiEndpoint({
      ...{ chat, access, authenticate, admit, bodies, hosts, traced, clock, log },
      answers: budgets.chat_answers,
    })
  }

  const refused = (request: ReceivedRequest, response: ServerResponse, thrown: unknown) => {
    const refusal = toHttpError(thrown, log)
    if (refusal.status === 403) recordRejection(request, refusal)
    else if (refusal.status !== 404) recordIfMalformed(access, { address: request.socket.remoteAddress }, refusal)
    sendHttpError(response, refusal, clock)
  }

  const leaving = () => draining || retiring
  const serving =
    <R extends ReceivedRequest>(by: (request: R, response: ServerResponse) => void) =>
    (request: R, response: ServerResponse) => {
      if (leaving()) response.setHeader('Connection', 'close')
      // Ignore errors from writing to a closed connection: the `close` listener handles that case.
      response.on('error', ignored)
      try {
        by(request, response)
      } catch (thrown) {
        refused(request, response, thrown)
      }
    }
  const { drain, begin } = acceptConnections({
    server,
    incoming,
    path: config.path,
    limit: createConnectionLimit(config, budgets),
    handle: serving(enter),
    leaving,
  })
  const serveRoute = serving(route)
  server.on('request', (request, response) => {
    if (begin(request.socket, response)) serveRoute(request, response)
  })
  answerUnreadable(server, ({ remoteAddress }, detail) => recordMalformed(access, { address: remoteAddress }, detail))

  /** Audits requests with a disallowed Host or Origin (F11). */
  const recordRejection = (request: ReceivedRequest, refusal: HttpError) => {
    const { code } = refusal.details.data as { code: ErrorCode }
    access.rejected({ code, ...offendingHeader(request, refusal), address: request.socket.remoteAddress })
  }

  const close = async () => {
    draining = true
    endpoint.drain()
    for (const { endpoint } of further) void endpoint.loaded().then((opened) => opened?.[Symbol.dispose]())
    changes[Symbol.dispose]()
    const closed = drain.acceptQueued().then(closeMainPort).then(closePrivatePort)
    drain.start()
    sessions.closeStreams()
    await settles(closed, config.shutdownGrace, clock)
    sessions[Symbol.dispose]()
    drain.closeAll()
    await closed
    // Stops the timer with which node:http checks its connections.
    server.close()
  }

  /**
   * Stops listening. Resolves when all connections have ended. This is not the HTTP server's own `close`, which would
   * close idle connections on which a request may be in transit.
   */
  const closeMainPort = () => new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()))

  /**
   * To be called last: other workers forward requests to this port until a response tells them that this worker is stopping.
   * Without a response, they could not know whether the request ran.
   */
  const closePrivatePort = async () => {
    if (!privatePort) return
    await pause(clock, forwardedMs)
    await drain.acceptQueued()
    await privatePort.close()
  }

  const retire = async (ms: number) => {
    retiring = true
    await settles(drain.acceptQueued().then(closeMainPort), ms, clock)
    await settles(drain.untilQuiet(), config.shutdownGrace, clock)
  }

  let closing: Promise<void> | undefined
  return {
    retire,
    url,
    port,
    address: addressOf(config, port, privatePort?.port, workers?.membership === membership),
    get sessions() {
      return sessions.count
    },
    [Symbol.asyncDispose]() {
      closing ??= close()
      return closing
    },
  }
}

const ignored = () => {}

/** How often at most to log that forwarded requests are rejected. */
const warnEveryMs = 60_000

const invalidSignature =
  'its signature is not valid here: all replicas need the same stores.key or the same Redis, and clocks that differ by less than a minute'

const usualFailures: FailureSettings = { maxFailures: 10, failureInterval: 1_000 }

/** How long a stopping worker still responds to other workers, so that they take over the sessions in use. */
const forwardedMs = 250

const nothingAt = (endpoint: string) =>
  new HttpError(404, rpcCodes.request, `Not found: the MCP endpoint is ${endpoint}.`)

/** Responds to liveness and readiness probes, without details and without checking credentials or the Host header. */
function probe(request: IncomingMessage, response: ServerResponse, good: boolean): void {
  if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed(request.method, 'GET, HEAD')
  const body = `{"status":"${good ? 'ok' : 'unavailable'}"}`
  response.writeHead(good ? 200 : 503, { 'Content-Type': 'application/json', 'Content-Length': body.length })
  response.end(request.method === 'HEAD' ? undefined : body)
}

/** If the request's target is a whole URL, as clients send it to proxies, its host replaces the Host header (RFC 9112). */
function readAbsoluteForm(request: IncomingMessage): void {
  const [, host, target = ''] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(request.url ?? '') ?? []
  if (host === undefined) return
  request.headers.host = host
  request.url = target.startsWith('/') ? target : `/${target}`
}

function pathOf(url: string): string {
  const query = url.indexOf('?')
  return query < 0 ? url : url.slice(0, query)
}

/** The address for other replicas. With several workers, it has the private port, because all share the main port. */
function addressOf(
  { advertise, host }: HttpConfig,
  port: number,
  privatePort: number | undefined,
  sameMachine: boolean,
): string {
  const own = advertise ?? `http://${isAnywhere(host) ? hostname() : bracketed(host)}:${port}`
  if (privatePort === undefined) return own
  if (sameMachine) return `http://127.0.0.1:${privatePort}`
  const address = new URL(own)
  address.port = String(privatePort)
  return address.origin
}

const isAnywhere = (host: string): boolean => host === '0.0.0.0' || host === '::'

/** The host name for clients on this machine. A wildcard address is replaced with loopback. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '[::1]' : bracketed(host)
}
