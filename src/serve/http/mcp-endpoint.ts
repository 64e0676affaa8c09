import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Caller } from '../../core/call.ts'
import { type ErrorCode, ToolwayError } from '../../core/errors.ts'
import type { RequestTurns } from '../../core/limits/turns.ts'
import { joined } from '../../wire/bytes.ts'
import { type Id, resultBytes } from '../../wire/message.ts'
import { legacyRevisions } from '../../wire/revisions.ts'
import { scopesRule } from '../auth/challenge.ts'
import {
  type Authenticate,
  type AuthIdentity,
  actingAs,
  agentFor,
  agentOfParams,
  agentOfRequest,
  createCredentialWatch,
  exposureOfRequest,
  hasSameRights,
  identityAt,
  type NamedEndpoint,
} from '../auth/identity.ts'
import { type Admit, throttleRule } from '../auth/throttle.ts'
import type { ResponseChannel } from '../calls/operations.ts'
import { forwardUnanswered } from '../cluster/forward-request.ts'
import { adoptSession, createOwnerRouting, type RouteCall, type RoutedRequest } from '../cluster/route-to-owner.ts'
import type { ServeContext } from '../context.ts'
import {
  errorResponse,
  HttpError,
  methodNotAllowed,
  recordIfMalformed,
  recordMalformed,
  rpcCodes,
  sendHttpError,
  shuttingDown,
  toHttpError,
} from '../errors.ts'
import {
  type InboundMessage,
  type InboundRequest,
  readInbound,
  type UnreadableMessage,
  withTraceContext,
} from '../inbound-message.ts'
import { answerBatch, isBatch, isLegacyRevision, LegacyProtocol, readBatch } from '../mcp-legacy/protocol.ts'
import { StatelessHttp } from '../mcp-stateless/http.ts'
import { StatelessProtocol } from '../mcp-stateless/protocol.ts'
import { statelessErrorResponse } from '../mcp-stateless/responses.ts'
import { protocolOf } from '../protocol-era.ts'
import { type HttpSession, SessionStore } from '../session/session-store.ts'
import type { RequestBodies, RequestWork } from './bodies.ts'
import type { ReceivedRequest } from './request.ts'
import { type AcceptedTypes, PostResponse, readAccept } from './response.ts'
import { createUnreadResponses, SseStream, type UnreadResponses } from './sse-stream.ts'

/** A request that has been authenticated, and its response. */
interface Exchange {
  readonly request: ReceivedRequest
  readonly response: ServerResponse
  /** As authenticated, before the endpoint narrows it. */
  readonly credential: AuthIdentity
  readonly identity: AuthIdentity
  readonly work?: RequestWork
}

interface McpServices {
  readonly authenticate: Authenticate
  readonly admit: Admit
  readonly turns: RequestTurns
  readonly bodies: RequestBodies
  /** Forwards a call to the replica that holds its environment. */
  readonly routeCall: RouteCall | undefined
  /** Whether calls are traced. Trace headers are read only if this returns true. */
  traced?: (() => boolean) | undefined
  /** The client's address, also if another replica forwarded the request. */
  addressOf(request: ReceivedRequest): string | undefined
}

/** The MCP endpoint: POST for each message, GET for a stream, DELETE to end a session. */
export class McpEndpoint {
  readonly sessions: SessionStore
  readonly #services: McpServices & ServeContext
  readonly #legacy: LegacyProtocol
  readonly #stateless: StatelessHttp
  readonly #unread: UnreadResponses
  readonly #watchCredential: ReturnType<typeof createCredentialWatch>
  readonly #ownerRouting: ReturnType<typeof createOwnerRouting> | undefined
  #isDraining = false

  constructor(context: ServeContext, services: McpServices) {
    const { access, membership, budgets, clock, log } = context
    const { authenticate, addressOf, routeCall } = services
    const sessions = new SessionStore(context)
    this.sessions = sessions
    this.#services = { ...context, ...services }
    this.#legacy = new LegacyProtocol(context)
    this.#unread = createUnreadResponses(budgets.response_bytes)
    const protocol = new StatelessProtocol(context)
    this.#stateless = new StatelessHttp(context, { protocol, addressOf, routeCall, unread: this.#unread })
    this.#watchCredential = createCredentialWatch(authenticate, clock)
    this.#ownerRouting =
      membership &&
      createOwnerRouting({
        ...{ membership, clock, holds: (id) => sessions.holds(id) },
        adopt: (id, record, { identity, request }) =>
          adoptSession({ access, sessions, log }, { id, record, identity, address: addressOf(request) }),
      })
  }

  handle(request: ReceivedRequest, response: ServerResponse, endpoint?: NamedEndpoint): void {
    const { method, headers } = request
    try {
      if (method !== 'POST' && method !== 'GET' && method !== 'DELETE')
        throw methodNotAllowed(method, 'POST, GET, DELETE')
      const serve = (credential: AuthIdentity) =>
        this.#serve({ request, response, credential, identity: identityAt(credential, endpoint) })
      const identity = this.#services.admit(headers.authorization, request)
      if (!(identity instanceof Promise)) serve(identity)
      else identity.then(serve).catch((thrown: unknown) => this.#refuse(thrown, request, response))
    } catch (thrown) {
      this.#refuse(thrown, request, response)
    }
  }

  /** Rejects new requests. Requests in flight continue. */
  drain(): void {
    this.#isDraining = true
    this.#stateless.drain()
    this.#ownerRouting?.drain()
  }

  #serve(exchange: Exchange): void {
    const { request, response, credential, identity } = exchange
    const { method, headers } = request
    // Stop here: the code below relies on the close event, which a response that is already closed does not emit again.
    if (response.destroyed) return
    if (method === 'GET' || isListening(headers)) {
      this.#watchCredential({ authorization: headers.authorization, identity: credential, response })
      // When the gateway stops, it ends the stream: the client's next request must not use the same connection.
      response.setHeader('Connection', 'close')
    }
    const answered = method === 'POST' ? this.#post(exchange) : this.#getOrDelete(exchange)
    answered.catch((thrown: unknown) => {
      const { access, addressOf } = this.#services
      recordIfMalformed(access, { principal: identity.principal, address: addressOf(request) }, thrown)
      this.#refuse(thrown, request, response)
    })
  }

  #refuse(thrown: unknown, request: ReceivedRequest, response: ServerResponse): void {
    const { access, addressOf, clock, log } = this.#services
    const refusal = toHttpError(thrown, log)
    // Record only rejected credentials: `agentFor` records denied agents itself.
    const { code, rule } = (refusal.details.data ?? {}) as { code?: ErrorCode; rule?: string }
    const isCredential = refusal.status === 401 || rule === throttleRule || rule === scopesRule
    if (code !== undefined && isCredential) access.rejected({ code, address: addressOf(request) })
    sendHttpError(response, refusal, clock)
  }

  /** Handles a POST, which counts as a request in flight until it is answered, even if the client disconnects. */
  async #post(exchange: Exchange): Promise<void> {
    const { identity } = exchange
    const { budgets, bodies } = this.#services
    const { requests, response_bytes: unread } = budgets
    const { principal } = identity
    // OVERLOADED if a caller does not read its responses: it should do so before it sends more requests.
    if (unread.usedBy(principal) > unread.perCaller * maxUnreadShare) unread.check(principal, unread.perCaller)
    requests.claim(principal)
    const work: RequestWork = { active: true }
    try {
      const reading = bodies.read({ ...exchange, work })
      const body = reading instanceof Promise ? await reading : reading
      // Do not parse a batch here: it is routed by its session header alone.
      const message = isBatch(body) ? undefined : readInbound(body)
      if (this.#ownerRouting && (await this.#route({ ...exchange, body, inbound: message }))) return
      if (message === undefined && (await this.#batch(body, exchange))) return
      const answered = this.#receive(message ?? readInbound(body), body, exchange)
      if (answered) await answered
    } finally {
      work.active = false
      work.ended?.()
      requests.give(principal)
    }
  }

  #receive(message: InboundMessage | UnreadableMessage, body: Buffer, exchange: Exchange): Promise<void> | undefined {
    const { request, response, credential, identity } = exchange
    const { headers } = request
    const inbound = this.#traced(message, request)
    if (inbound.kind === 'invalid') throw new HttpError(400, inbound.code, inbound.message, { id: inbound.id })
    if (inbound.kind === 'request') {
      if (this.#isDraining) throw shuttingDown(inbound.id)
      // Waiting for a task's result may take a day, so the wait ends when the credential expires.
      if (inbound.method === 'tasks/result')
        this.#watchCredential({ authorization: headers.authorization, identity: credential, response })
    }
    if (protocolOf(inbound, headers) === 'stateless')
      return this.#stateless.handle(inbound, { request, response, identity, body })
    const accepts = legacyAccepts(request)
    if (inbound.kind === 'request')
      return inbound.method === 'initialize'
        ? this.#initialize(inbound, exchange, accepts)
        : this.#answer(inbound, exchange, accepts)
    const session = this.#sessionOf(request, identity)
    const ambiguous = inbound.kind === 'response' ? session.clientRequests.settle(inbound) : undefined
    if (ambiguous !== undefined) throw new HttpError(400, rpcCodes.params, ambiguous)
    if (inbound.kind === 'notification') this.#legacy.notification(session, inbound)
    response.writeHead(202, { 'Content-Length': 0 }).end()
    return undefined
  }

  #traced(inbound: InboundMessage | UnreadableMessage, { headers }: ReceivedRequest) {
    return this.#services.traced?.() ? withTraceContext(inbound, headers) : inbound
  }

  async #answer(inbound: InboundRequest, exchange: Exchange, accepts: AcceptedTypes): Promise<void> {
    const { request, response, identity } = exchange
    const { membership } = this.#services
    const { sessions } = this
    const session = this.#sessionOf(request, identity, inbound.id)
    const outlet = this.#responseTo(response, accepts, session, inbound)
    const answer = await this.#legacy.request(
      session,
      inbound,
      outlet,
      this.#callerOf(session, request, inbound.id),
      true,
    )
    if (answer === undefined) outlet.abandon()
    else outlet.answer(answer.message, answer.status, answer.headers)
    sessions.touch(session)
    if (membership && changesSession(inbound)) sessions.keep(session)
  }

  async #initialize(inbound: InboundRequest, exchange: Exchange, accepts: AcceptedTypes): Promise<void> {
    const { request, response, identity } = exchange
    const { access, addressOf, log } = this.#services
    const { sessions } = this
    try {
      const client = this.#legacy.negotiate(inbound.params)
      const asked = agentOfParams(inbound.params) ?? agentOfRequest(request)
      const address = addressOf(request)
      const agent = agentFor(access, { ...identity, address }, asked)
      const session = sessions.open({ ...identity, agent, asked, ...exposureOfRequest(request) }, client, address)
      log.debug({ principal: identity.principal, revision: client.revision }, 'session opened')
      const welcome = await this.#legacy.initializeResult(session).catch((error) => {
        sessions.end(session)
        throw error
      })
      response.setHeader('Mcp-Session-Id', session.id)
      this.#responseTo(response, accepts, session).answer([resultBytes(inbound.id, welcome)])
    } catch (thrown) {
      throw toHttpError(thrown, log, inbound.id)
    }
  }

  /** Handles a batch. Returns false unless the session uses revision 2025-03-26, the only one with batches. */
  async #batch(body: Buffer, { request, response, identity }: Exchange): Promise<boolean> {
    const { access, budgets, turns } = this.#services
    const accepts = legacyAccepts(request)
    if (request.headers['mcp-session-id'] === undefined) return false
    const session = this.#sessionOf(request, identity)
    const read = readBatch(session, body)
    if (read === undefined) return false
    if ('kind' in read) throw new HttpError(400, read.code, read.message)
    const isAnswered = read.some(({ kind }) => kind === 'request' || kind === 'invalid')
    if (this.#isDraining && isAnswered) throw shuttingDown()
    const { principal } = identity
    // The batch itself is already counted as a request.
    const more = read.length - 1
    budgets.requests.claim(principal, more)
    try {
      const outlet = isAnswered ? this.#responseTo(response, accepts, session) : undefined
      const answers = await answerBatch({
        protocol: this.#legacy,
        session,
        batch: read.map((inbound) => this.#traced(inbound, request)),
        outlet: outlet ?? noResponseChannel,
        caller: this.#callerOf(session, request),
        agentResolved: true,
        turn: () => turns.take(principal),
        malformed: (fault) => recordMalformed(access, session.caller, fault),
      })
      if (outlet) outlet.answerBatch(answers)
      else response.writeHead(202, { 'Content-Length': 0 }).end()
    } finally {
      budgets.requests.give(principal, more)
    }
    this.sessions.touch(session)
    return true
  }

  /** Forwards a request to its owner. If the owner fails, the client gets a response as for any failed call (E1). */
  async #route(coming: RoutedRequest): Promise<boolean> {
    const { inbound, request, response, identity } = coming
    const { clock, log } = this.#services
    const unread = this.#unread
    try {
      return (await this.#ownerRouting?.route(coming)) ?? false
    } catch (thrown) {
      if (inbound?.kind !== 'request' || !(thrown instanceof ToolwayError)) throw thrown
      log.warn({ method: inbound.method, err: thrown }, 'a forwarded request failed')
      const { id, method } = inbound
      const { message, status, headers } =
        request.headers['mcp-session-id'] === undefined
          ? statelessErrorResponse({ ...inbound, envelope: { capabilities: {} } }, thrown, log)
          : errorResponse(id, method, thrown, log)
      const outlet = new PostResponse(response, onlyJson, { clock, unread, caller: identity.principal })
      outlet.answer(message, status, headers)
      return true
    }
  }

  async #getOrDelete(exchange: Exchange): Promise<void> {
    const { request, response, identity } = exchange
    const { method, headers } = request
    checkRevision(request)
    if (await this.#ownerRouting?.route(exchange)) return
    if (method === 'DELETE') {
      this.sessions.end(this.#sessionOf(request, identity))
      response.writeHead(204).end()
      return
    }
    const { stream } = readAccept(headers.accept)
    if (!stream && headers.accept !== undefined && !headers.accept.includes('*/*')) throw notAcceptable()
    this.#get(exchange)
  }

  #get({ request, response, identity }: Exchange): void {
    const { budgets, clock, log } = this.#services
    const { sessions } = this
    const unread = this.#unread
    const session = this.#sessionOf(request, identity)
    if (this.#isDraining) throw shuttingDown()
    const { principal } = identity
    budgets.streams.claim(principal)
    response.once('close', () => {
      budgets.streams.give(principal)
      sessions.touch(session)
    })
    const connect = () => new SseStream(response, clock, { unread, caller: principal })
    const last = request.headers['last-event-id']
    if (typeof last !== 'string' || last === '') {
      session.streams.listen(connect())
      return
    }
    const found = session.streams.resume(last, connect)
    if (found === 'unknown') throw unknownEvent()
    // 204 tells an EventSource not to reconnect.
    if (found === 'over') response.writeHead(204).end()
    if (typeof found === 'string') return
    const { message } = errorResponse(found.id, found.method, forwardUnanswered({ method: 'POST' }), log)
    const stream = connect()
    stream.send(joined(message))
    stream.end()
  }

  #sessionOf(request: ReceivedRequest, identity: AuthIdentity, id?: Id): HttpSession {
    const { access, addressOf } = this.#services
    const { sessions } = this
    const sessionId = request.headers['mcp-session-id']
    if (typeof sessionId !== 'string') {
      const sentence = 'The Mcp-Session-Id header is missing: send "initialize" first, then the id from its response.'
      throw new HttpError(400, rpcCodes.request, sentence, { id })
    }
    const { principal } = identity
    const session = sessions.find(sessionId, principal)
    // Record the use of another principal's session: ids cannot be guessed, so this one was probably stolen.
    if (session === undefined && sessions.holds(sessionId)) {
      const detail = "session: another principal's"
      access.rejected({ code: 'DENIED_BY_POLICY', principal, address: addressOf(request), detail })
    }
    // Reject a credential whose rights have changed: it must not keep the rights that the session started with.
    if (
      session === undefined ||
      !hasSameRights(session.caller, identity) ||
      session.caller.endpoint !== identity.endpoint
    )
      throw new HttpError(404, rpcCodes.session, 'Session not found: send "initialize" again.', { id })
    return session
  }

  /** The caller of one request: its address and agent may differ from the session's. Errors carry the request's id. */
  #callerOf(session: HttpSession, request: ReceivedRequest, id?: Id): Caller {
    const { access, addressOf, log } = this.#services
    try {
      const caller = actingAs(access, session.caller, agentOfRequest(request))
      const address = addressOf(request)
      return address === undefined || address === caller.address ? caller : { ...caller, address }
    } catch (thrown) {
      throw toHttpError(thrown, log, id)
    }
  }

  #responseTo(
    response: ServerResponse,
    accepts: AcceptedTypes,
    { caller, streams }: HttpSession,
    request?: InboundRequest,
  ): PostResponse {
    const { clock } = this.#services
    const unread = this.#unread
    return new PostResponse(response, accepts, { clock, unread, caller: caller.principal, streams, request })
  }
}

/** The part of a caller's share of unread bytes above which its new requests are refused. */
const maxUnreadShare = 0.75

/** Whether a request changes the session record, which must then be saved for other replicas. */
const changesSession = ({ method }: InboundRequest): boolean =>
  method === 'resources/subscribe' || method === 'resources/unsubscribe' || method === 'logging/setLevel'

/** Whether a POST opens a stateless notification stream, according to its header. */
const isListening = (headers: IncomingHttpHeaders): boolean =>
  headers['mcp-method'] !== undefined && String(headers['mcp-method']).trim() === 'subscriptions/listen'

function checkRevision({ headers }: ReceivedRequest): void {
  const revision = headers['mcp-protocol-version']
  if (revision !== undefined && !isLegacyRevision(revision)) throw unknownRevision()
}

function legacyAccepts(request: ReceivedRequest): AcceptedTypes {
  checkRevision(request)
  const accepts = readAccept(request.headers.accept)
  if (!accepts.json && !accepts.stream) throw notAcceptable()
  return accepts
}

const onlyJson: AcceptedTypes = { json: true, stream: false }

/** The channel for a batch without requests, which needs no response. */
const noResponseChannel: ResponseChannel = { owner: undefined, send: () => false, abandon() {} }

/** The error for an unknown event. It is not a 404, because clients would assume that the session has ended. */
const unknownEvent = () =>
  new HttpError(
    400,
    rpcCodes.request,
    'The event in the Last-Event-ID header is unknown or expired: open a stream without it, and repeat unanswered requests.',
  )

const unknownRevision = () =>
  new HttpError(
    400,
    rpcCodes.request,
    `The version in the MCP-Protocol-Version header is not supported: use one of ${legacyRevisions.join(', ')}.`,
  )

const notAcceptable = () =>
  new HttpError(406, rpcCodes.request, 'The Accept header must include application/json and text/event-stream.')
