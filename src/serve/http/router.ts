import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Config, HttpConfig } from '../../config/schema.ts'
import type { Chat } from '../../core/chat.ts'
import type { ErrorCode } from '../../core/errors.ts'
import type { Budgets } from '../../core/limits/budget.ts'
import { createLazy, type Lazy } from '../../lib/memoize.ts'
import type { Authenticate, NamedEndpoint } from '../auth/identity.ts'
import type { Admit, FailureSettings } from '../auth/throttle.ts'
import { clientHeader, forwardedFrom, forwardToAdminWorker, type Workers } from '../cluster/forward-request.ts'
import type { EnvironmentsOptions } from '../cluster/route-to-owner.ts'
import type { ServeContext } from '../context.ts'
import { HttpError, methodNotAllowed, recordIfMalformed, rpcCodes, sendHttpError, toHttpError } from '../errors.ts'
import type { RequestBodies } from './bodies.ts'
import { allowOrigin, answerPreflight, type Hosts, isPreflight, offendingHeader } from './hosts.ts'
import type { McpEndpoint } from './mcp-endpoint.ts'
import { cardName, createOAuthMetadataEndpoint, createServerCardEndpoint } from './public-documents.ts'
import { createRegistryEndpoint, type PublishedConfig } from './registry.ts'
import { checkSingleHeaders, type ReceivedRequest } from './request.ts'

export interface HttpServerOptions extends ServeContext {
  readonly config: HttpConfig
  readonly authenticate: Authenticate
  readonly current: ServedConfig
  readonly workers?: Workers | undefined
  readonly adminEndpoint?: ((open: ListeningServer) => Promise<HttpEndpoint>) | undefined
}

/** What the current configuration says. It is read for each request. */
export interface ServedConfig {
  /** The chat, served as an OpenAI-compatible API. */
  chat?: (() => Chat | undefined) | undefined
  /** The identity provider, published to clients. */
  jwt?: (() => Config['auth']['jwt']) | undefined
  failures?(): FailureSettings
  /** Whether calls are traced. Trace headers are read only if this returns true. */
  traced?: (() => boolean) | undefined
  /** Finds the environment that a tool call names. Another replica may hold that environment. */
  readonly environmentOf?: EnvironmentsOptions['environmentOf']
  ready?(): boolean
  /** The agents of the named endpoints; an endpoint without one accepts all. */
  endpoints?(): Config['endpoints']
  published?: (() => PublishedConfig) | undefined
}

export interface HttpEndpoint extends Disposable {
  /** Handles a request. Returns false if nothing is served at this path. */
  handle(request: IncomingMessage, response: ServerResponse, path: string): boolean
}

/** The parts of the HTTP server that other endpoints use. */
export interface ListeningServer {
  readonly url: string
  readonly port: number
  readonly hosts: Hosts
  /** Authenticates a request. Invalid credentials are limited per address, counted across all endpoints. */
  readonly admit: Admit
  readonly bodies: RequestBodies
  readonly budgets: Budgets
  sessions(): number
  readonly chat?: (() => Chat | undefined) | undefined
}

/** An endpoint for the paths with this start and end. */
interface FurtherEndpoint {
  readonly below: string
  readonly end: string
  readonly endpoint: Lazy<HttpEndpoint>
}

/** How often at most to log that forwarded requests are rejected. */
const warnEveryMs = 60_000

const invalidSignature =
  'its signature is not valid here: all replicas need the same stores.key or the same Redis, and clocks that differ by less than a minute'

export class Router implements Disposable {
  readonly #options: HttpServerOptions
  readonly #mcp: McpEndpoint
  readonly #hosts: Hosts
  readonly #isLeaving: () => boolean
  /** The paths of the MCP endpoint, with common variants that users paste into their clients. */
  readonly #mcpPaths: ReadonlySet<string>
  /** What the paths of named endpoints start with. */
  readonly #below: string
  /** Endpoints that are created on the first request to their path. */
  readonly #further: readonly FurtherEndpoint[]
  #isDraining = false
  #warnAgainAt = 0

  constructor(options: HttpServerOptions, mcp: McpEndpoint, listening: ListeningServer, isLeaving: () => boolean) {
    const { config, info, current, adminEndpoint } = options
    const { hosts } = listening
    this.#options = options
    this.#mcp = mcp
    this.#hosts = hosts
    this.#isLeaving = isLeaving
    const base = config.path.replace(/\/$/, '')
    this.#mcpPaths = new Set([config.path, `${base}/`, `${base}/stream`])
    this.#below = `${base}/`
    const { chat, jwt, published } = current
    const at = (below: string, open: () => Promise<HttpEndpoint>, end = '') => ({
      below,
      end,
      endpoint: createLazy(open),
    })
    const documents = { config, hosts, endpoints: this.#endpoints }
    const { version } = info
    this.#further = [
      ...(chat ? [at('/v1/', () => openOpenAi(chat, options, listening))] : []),
      ...(jwt ? [at('/.well-known/', async () => createOAuthMetadataEndpoint(documents, jwt))] : []),
      ...(published
        ? [at('/v0.1/', async () => createRegistryEndpoint({ ...documents, version, clock: options.clock, published }))]
        : []),
      at(this.#below, async () => createServerCardEndpoint(documents, version), `/${cardName}`),
      ...(adminEndpoint ? [at('/', () => adminEndpoint(listening))] : []),
    ]
  }

  /** Handles a request that node:http has read or, with `isMcp`, one to the MCP endpoint that the fast path has read. */
  handle(request: ReceivedRequest, response: ServerResponse, isMcp: boolean): void {
    if (this.#isLeaving()) response.setHeader('Connection', 'close')
    // Ignore errors from writing to a closed connection: the `close` listener handles that case.
    response.on('error', ignoreError)
    try {
      if (isMcp) this.#enterMcp(request, response)
      else this.#route(request as IncomingMessage, response)
    } catch (thrown) {
      this.#refuse(request, response, thrown)
    }
  }

  /** Rejects new requests. Requests in flight continue. */
  [Symbol.dispose](): void {
    this.#isDraining = true
    this.#mcp.drain()
    for (const { endpoint } of this.#further) void endpoint.loaded().then((opened) => opened?.[Symbol.dispose]())
  }

  /** The named endpoints. */
  readonly #endpoints = (): Config['endpoints'] => this.#options.current.endpoints?.() ?? {}

  /** The endpoint for a group of tools at a path. They are those of the current configuration. */
  #endpointAt(path: string): NamedEndpoint | undefined {
    if (!path.startsWith(this.#below)) return undefined
    const endpoints = this.#endpoints()
    const name = path.slice(this.#below.length).replace(/\/(?:stream)?$/, '')
    return Object.hasOwn(endpoints, name) ? { name, agent: endpoints[name]?.agent } : undefined
  }

  #enterMcp(request: ReceivedRequest, response: ServerResponse, endpoint?: NamedEndpoint): void {
    const { membership } = this.#options
    const { host, origin } = request.headers
    // Do not check a forwarded request: the replica that forwarded it has already checked these headers.
    if (!membership) this.#hosts.check(host, origin)
    else if (!forwardedFrom(request, membership)) this.#checkForwardable(request)
    if (origin !== undefined) allowOrigin(response, origin)
    if (isPreflight(request)) answerPreflight(response)
    else this.#mcp.handle(request, response, endpoint)
  }

  /** Checks the headers of a request which may have been forwarded with a signature that is not valid here. */
  #checkForwardable({ headers }: ReceivedRequest): void {
    const { clock, log } = this.#options
    try {
      this.#hosts.check(headers.host, headers.origin)
    } catch (thrown) {
      if (headers[clientHeader] === undefined) throw thrown
      // Anyone can send this header, so such requests must not fill the log.
      if (clock.monotonic() >= this.#warnAgainAt) {
        this.#warnAgainAt = clock.monotonic() + warnEveryMs
        log.warn({ host: headers.host }, `rejected a forwarded request: ${invalidSignature}`)
      }
      const { rule } = (thrown as HttpError).details.data as { rule?: string }
      throw HttpError.of('DENIED_BY_POLICY', `This request was forwarded, but ${invalidSignature}.`, { rule })
    }
  }

  #route(request: IncomingMessage, response: ServerResponse): void {
    checkSingleHeaders(request)
    readAbsoluteForm(request)
    const [path = ''] = (request.url ?? '/').split('?', 1)
    const { ready } = this.#options.current
    const endpoint = this.#endpointAt(path)
    if (endpoint || this.#mcpPaths.has(path)) this.#enterMcp(request, response, endpoint)
    else if (path === '/livez') answerProbe(request, response, true)
    else if (path === '/readyz') answerProbe(request, response, !this.#isDraining && ready?.() !== false)
    else void this.#handOn(request, response, path)
  }

  async #handOn(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const { config, membership, workers, clock, log } = this.#options
    try {
      const place = this.#further.find(({ below, end }) => path.startsWith(below) && path.endsWith(end))
      const workerRouting = place?.below === '/' && membership && workers && { membership, workers, clock, log }
      if (workerRouting && (await forwardToAdminWorker(request, response, workerRouting))) return
      const opened = await place?.endpoint.get()
      if (this.#isDraining) opened?.[Symbol.dispose]()
      if (opened?.handle(request, response, path)) return
      throw new HttpError(404, rpcCodes.request, `Not found: the MCP endpoint is ${config.path}.`)
    } catch (thrown) {
      this.#refuse(request, response, thrown)
    }
  }

  #refuse(request: ReceivedRequest, response: ServerResponse, thrown: unknown): void {
    const { access, clock, log } = this.#options
    const refusal = toHttpError(thrown, log)
    const address = request.socket.remoteAddress
    if (refusal.status === 403) {
      // Audits requests with a disallowed Host or Origin (F11).
      const { code } = refusal.details.data as { code: ErrorCode }
      access.rejected({ code, ...offendingHeader(request, refusal), address })
    } else if (refusal.status !== 404) recordIfMalformed(access, { address }, refusal)
    sendHttpError(response, refusal, clock)
  }
}

async function openOpenAi(
  chat: () => Chat | undefined,
  { access, authenticate, current, budgets, clock, log }: HttpServerOptions,
  { admit, bodies, hosts }: ListeningServer,
): Promise<HttpEndpoint> {
  const { OpenAiEndpoint } = await import('../openai/endpoint.ts')
  const { traced } = current
  const answers = budgets.chat_answers
  return new OpenAiEndpoint({ chat, access, authenticate, admit, bodies, hosts, traced, answers, clock, log })
}

const ignoreError = () => {}

/** Responds to liveness and readiness probes, without details and without checking credentials or the Host header. */
function answerProbe(request: IncomingMessage, response: ServerResponse, good: boolean): void {
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
