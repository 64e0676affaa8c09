import { createServer, type Server } from 'node:http'
import { Server as NetServer } from 'node:net'
import { hostname } from 'node:os'
import type { HttpConfig } from '../../config/schema.ts'
import { pause, settles } from '../../core/deadline.ts'
import { createBudgets } from '../../core/limits/budget.ts'
import { RequestTurns } from '../../core/limits/turns.ts'
import { createAdmit, type FailureSettings } from '../auth/throttle.ts'
import { clientAddress } from '../cluster/forward-request.ts'
import { routeToEnvironments } from '../cluster/route-to-owner.ts'
import { recordMalformed } from '../errors.ts'
import { listChangedNotifications } from '../session/session.ts'
import { createBodyReader } from './bodies.ts'
import { Connections, createConnectionLimit, holdConnections } from './connections.ts'
import { allowedHosts, bracketIPv6 } from './hosts.ts'
import { listen, openPrivatePort } from './listen.ts'
import { McpEndpoint } from './mcp-endpoint.ts'
import { answerUnreadable, type ReceivedRequest } from './request.ts'
import { keepAliveMs } from './response.ts'
import { type HttpServerOptions, type ListeningServer, Router } from './router.ts'

/** Opens a server. Rejects with CannotListen if the address is not available. */
export async function openHttpServer(
  options: Omit<HttpServerOptions, 'budgets'> & Partial<Pick<HttpServerOptions, 'budgets'>>,
): Promise<HttpServer> {
  const { config, membership, workers, budgets = createBudgets() } = options
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
  const incoming = holdConnections(server)
  const port = await listen(server, config.host, config.port, workers?.port)
  const host = workers?.membership === membership ? '127.0.0.1' : config.host
  const privatePort = workers && (await openPrivatePort(server, host))
  return new HttpServer({ ...options, budgets }, server, incoming, port, privatePort)
}

/** A listening HTTP server. When it is disposed of, requests in flight may finish within `shutdownGrace`. */
export class HttpServer implements AsyncDisposable {
  readonly url: string
  readonly port: number
  /** The URL where other replicas reach this one. */
  readonly address: string
  readonly #options: HttpServerOptions
  readonly #server: Server
  readonly #privatePort: PrivatePort | undefined
  readonly #mcp: McpEndpoint
  readonly #router: Router
  readonly #connections: Connections
  readonly #changes: Disposable
  #isDraining = false
  #isRetiring = false
  #closing: Promise<void> | undefined

  constructor(
    options: HttpServerOptions,
    server: Server,
    incoming: ReturnType<typeof holdConnections>,
    port: number,
    privatePort: PrivatePort | undefined,
  ) {
    const { config, access, authenticate, current, membership, workers, budgets, clock } = options
    this.url = `http://${reachable(config.host)}:${port}${config.path}`
    this.port = port
    this.address = replicaAddress(config, port, privatePort?.port, workers?.membership === membership)
    this.#options = options
    this.#server = server
    this.#privatePort = privatePort
    // A single process has no forwarded requests.
    const addressOfClient = (request: ReceivedRequest) =>
      membership ? clientAddress(request, membership) : request.socket.remoteAddress
    const turns = new RequestTurns()
    const settings = current.failures ?? (() => usualFailures)
    const admit = createAdmit({ authenticate, settings, addressOf: addressOfClient, turns, clock })
    const bodies = createBodyReader(config, budgets)
    const { environmentOf, traced, chat } = current
    const routeCall = membership && environmentOf && routeToEnvironments({ membership, environmentOf, clock })
    const mcp = new McpEndpoint(options, {
      ...{ authenticate, admit, turns, bodies, routeCall, traced },
      addressOf: addressOfClient,
    })
    this.#mcp = mcp
    const listening: ListeningServer = {
      ...{ url: this.url, port, hosts: allowedHosts(config, port), admit, bodies, budgets, chat },
      sessions: () => mcp.sessions.count,
    }
    const leaving = () => this.#isDraining || this.#isRetiring
    this.#router = new Router(options, mcp, listening, leaving)
    this.#changes = access.onChange((kinds, session) => mcp.sessions.tell(listChangedNotifications(kinds), session))
    this.#connections = new Connections({
      ...{ server, incoming, path: config.path, leaving, limit: createConnectionLimit(config, budgets) },
      handle: (request, response) => this.#router.handle(request, response, true),
    })
    membership?.onConnection?.((connection) => this.#connections.adopt(connection))
    server.on('request', (request, response) => {
      if (this.#connections.begin(request.socket, response)) this.#router.handle(request, response, false)
    })
    answerUnreadable(server, ({ remoteAddress }, detail) => recordMalformed(access, { address: remoteAddress }, detail))
  }

  get sessions(): number {
    return this.#mcp.sessions.count
  }

  /**
   * Stops accepting connections. Open connections are served, with `Connection: close`, until they end or `ms`
   * milliseconds have passed. If a response is still being sent then, the client's next request is also served, within
   * `shutdownGrace`. Used once a successor is listening on the same address.
   */
  async retire(ms: number): Promise<void> {
    const { config, clock } = this.#options
    const { drain } = this.#connections
    this.#isRetiring = true
    await settles(
      drain.acceptQueued().then(() => this.#closeMainPort()),
      ms,
      clock,
    )
    await settles(drain.untilQuiet(), config.shutdownGrace, clock)
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { config, clock } = this.#options
    const { drain } = this.#connections
    const { sessions } = this.#mcp
    this.#isDraining = true
    this.#router[Symbol.dispose]()
    this.#changes[Symbol.dispose]()
    const closed = this.#closePorts()
    drain.start()
    sessions.closeStreams()
    await settles(closed, config.shutdownGrace, clock)
    sessions[Symbol.dispose]()
    drain.closeAll()
    await closed
    // Stops the timer with which node:http checks its connections.
    this.#server.close()
  }

  async #closePorts(): Promise<void> {
    const { drain } = this.#connections
    await drain.acceptQueued()
    await this.#closeMainPort()
    if (!this.#privatePort) return
    // Last, because other workers forward requests to this port until a response tells them that this worker is
    // stopping. Without a response, they could not know whether the request ran.
    await pause(this.#options.clock, forwardedMs)
    await drain.acceptQueued()
    await this.#privatePort.close()
    await drain.untilClosed()
  }

  /**
   * Stops listening. Resolves when all connections have ended. This is not the HTTP server's own `close`, which would
   * close idle connections on which a request may be in transit.
   */
  #closeMainPort(): Promise<void> {
    return new Promise((resolve) => NetServer.prototype.close.call(this.#server, () => resolve()))
  }
}

type PrivatePort = Awaited<ReturnType<typeof openPrivatePort>>

const usualFailures: FailureSettings = { maxFailures: 10, failureInterval: 1_000 }

/** How long a stopping worker still responds to other workers, so that they take over the sessions in use. */
const forwardedMs = 250

/** The address for other replicas. With several workers, it has the private port, because all share the main port. */
function replicaAddress(
  { advertise, host }: HttpConfig,
  port: number,
  privatePort: number | undefined,
  sameMachine: boolean,
): string {
  const own = advertise ?? `http://${isAnywhere(host) ? hostname() : bracketIPv6(host)}:${port}`
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
  return host === '::' ? '[::1]' : bracketIPv6(host)
}
