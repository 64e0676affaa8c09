import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Membership } from '../../core/cluster.ts'
import { type ErrorCode, ToolwayError } from '../../core/errors.ts'
import type { Budgets } from '../../core/limits/budget.ts'
import type { RequestTurns } from '../../core/limits/turns.ts'
import type { Log } from '../../core/log.ts'
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
  hasSameRights,
} from '../auth/identity.ts'
import { type Admit, throttleRule } from '../auth/throttle.ts'
import type { ResponseChannel } from '../calls/operations.ts'
import { unanswered } from '../cluster/forward-request.ts'
import { adoptSession, createOwnerRouting, type RoutedRequest } from '../cluster/route-to-owner.ts'
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
import { answerBatch, isBatch, isLegacyRevision, type LegacyProtocol, readBatch } from '../mcp-legacy/protocol.ts'
import { protocolOf } from '../mcp-stateless/envelope.ts'
import type { StatelessHttp } from '../mcp-stateless/http.ts'
import { statelessErrorResponse } from '../mcp-stateless/responses.ts'
import type { HttpSession, SessionStore } from '../session/session-store.ts'
import type { RequestBodies, RequestWork } from './bodies.ts'
import type { ReceivedRequest } from './request.ts'
import { type AcceptedTypes, PostResponse, readAccept } from './response.ts'
import { SseStream, type UnreadResponses } from './sse-stream.ts'

/** A request that has been authenticated, and its response. */
interface Exchange {
  readonly request: ReceivedRequest
  readonly response: ServerResponse
  readonly identity: AuthIdentity
  readonly work?: RequestWork
}

/** The MCP endpoint: POST for each message, GET for a stream, DELETE to end a session. */
export function createMcpEndpoint(options: {
  readonly access: Access
  readonly authenticate: Authenticate
  readonly admit: Admit
  readonly turns: RequestTurns
  readonly bodies: RequestBodies
  readonly legacy: LegacyProtocol
  readonly stateless: StatelessHttp
  readonly sessions: SessionStore
  readonly budgets: Pick<Budgets, 'requests' | 'response_bytes' | 'streams'>
  readonly unread: UnreadResponses
  readonly membership?: Membership | undefined
  /** The client's address, also if another replica forwarded the request. */
  addressOf(request: ReceivedRequest): string | undefined
  /** Whether calls are traced. Trace headers are read only if this returns true. */
  traced?(): boolean
  readonly clock: Clock
  readonly log: Log
}) {
  const { access, addressOf, admit, authenticate, bodies, budgets, legacy, membership } = options
  const { sessions, stateless, turns, unread, clock, log } = options
  const watchCredential = createCredentialWatch(authenticate, clock)
  const ownerRouting =
    membership &&
    createOwnerRouting({
      membership,
      clock,
      holds: sessions.holds,
      adopt: (id, record, { identity, request }) =>
        adoptSession({ access, sessions, log }, { id, record, identity, address: addressOf(request) }),
    })
  let draining = false
  const placed = (inbound: InboundMessage | UnreadableMessage, { headers }: ReceivedRequest) =>
    options.traced?.() ? withTraceContext(inbound, headers) : inbound

  const sessionOf = (request: ReceivedRequest, identity: AuthIdentity, id?: Id): HttpSession => {
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
    if (session === undefined || !hasSameRights(session.caller, identity))
      throw new HttpError(404, rpcCodes.session, 'Session not found: send "initialize" again.', { id })
    return session
  }

  const responseTo = (
    response: ServerResponse,
    accepts: AcceptedTypes,
    { caller, streams }: HttpSession,
    request?: InboundRequest,
  ) => new PostResponse(response, accepts, { clock, unread, caller: caller.principal, streams, request })

  const initialize = async (
    inbound: InboundRequest,
    { request, response, identity }: Exchange,
    accepts: AcceptedTypes,
  ) => {
    try {
      const client = legacy.negotiate(inbound.params)
      const asked = agentOfParams(inbound.params) ?? agentOfRequest(request)
      const address = addressOf(request)
      const agent = agentFor(access, { ...identity, address }, asked)
      const session = sessions.open({ ...identity, agent, asked }, client, address)
      log.debug({ principal: identity.principal, revision: client.revision }, 'session opened')
      const welcome = await legacy.initializeResult(session).catch((error) => {
        sessions.end(session)
        throw error
      })
      response.setHeader('Mcp-Session-Id', session.id)
      responseTo(response, accepts, session).answer([resultBytes(inbound.id, welcome)])
    } catch (thrown) {
      throw toHttpError(thrown, log, inbound.id)
    }
  }

  /** The caller of one request: its address and agent may differ from the session's. Errors carry the request's id. */
  const callerOf = (session: HttpSession, request: ReceivedRequest, id?: Id): Caller => {
    try {
      const caller = actingAs(access, session.caller, agentOfRequest(request))
      const address = addressOf(request)
      return address === undefined || address === caller.address ? caller : { ...caller, address }
    } catch (thrown) {
      throw toHttpError(thrown, log, id)
    }
  }

  /** Handles a batch. Returns false unless the session uses revision 2025-03-26, the only one with batches. */
  const batch = async (body: Buffer, { request, response, identity }: Exchange) => {
    const accepts = legacyAccepts(request)
    if (request.headers['mcp-session-id'] === undefined) return false
    const session = sessionOf(request, identity)
    const read = readBatch(session, body)
    if (read === undefined) return false
    if ('kind' in read) throw new HttpError(400, read.code, read.message)
    const isAnswered = read.some(({ kind }) => kind === 'request' || kind === 'invalid')
    if (draining && isAnswered) throw shuttingDown()
    const { principal } = identity
    // The batch itself is already counted as a request.
    const more = read.length - 1
    budgets.requests.claim(principal, more)
    try {
      const outlet = isAnswered ? responseTo(response, accepts, session) : undefined
      const answers = await answerBatch({
        protocol: legacy,
        session,
        batch: read.map((inbound) => placed(inbound, request)),
        outlet: outlet ?? nowhere,
        caller: callerOf(session, request),
        agentResolved: true,
        turn: () => turns.take(principal),
        malformed: (fault) => recordMalformed(access, session.caller, fault),
      })
      if (outlet) outlet.answerBatch(answers)
      else response.writeHead(202, { 'Content-Length': 0 }).end()
    } finally {
      budgets.requests.give(principal, more)
    }
    sessions.touch(session)
    return true
  }

  /** Throws OVERLOADED if a caller does not read its responses: it should do so before it sends more requests. */
  const checkUnread = (principal: string) => {
    const { response_bytes: bytes } = budgets
    if (bytes.usedBy(principal) > bytes.perCaller * maxUnreadShare) bytes.check(principal, bytes.perCaller)
  }

  /** Forwards a request to its owner. If the owner fails, the client gets a response as for any failed call (E1). */
  const routed = async (coming: RoutedRequest): Promise<boolean> => {
    const { inbound, request, response, identity } = coming
    try {
      return (await ownerRouting?.route(coming)) ?? false
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

  /** Handles a POST, which counts as a request in flight until it is answered, even if the client disconnects. */
  const post = async (accepted: Exchange) => {
    const { principal } = accepted.identity
    checkUnread(principal)
    budgets.requests.claim(principal)
    const work: RequestWork = { active: true }
    try {
      await answerPost({ ...accepted, work })
    } finally {
      work.active = false
      work.ended?.()
      budgets.requests.give(principal)
    }
  }

  const answerPost = async (exchange: Exchange) => {
    const { request, response, identity } = exchange
    const reading = bodies.read(exchange)
    const body = reading instanceof Promise ? await reading : reading
    // Do not parse a batch here: it is routed by its session header alone.
    const message = isBatch(body) ? undefined : readInbound(body)
    if (ownerRouting && (await routed({ request, response, identity, body, inbound: message }))) return
    if (message === undefined && (await batch(body, exchange))) return
    const inbound = placed(message ?? readInbound(body), request)
    if (inbound.kind === 'invalid') {
      throw new HttpError(400, inbound.code, inbound.message, { id: inbound.id })
    }
    if (draining && inbound.kind === 'request') throw shuttingDown(inbound.id)
    if (waitsForTask(inbound)) watchCredential({ authorization: request.headers.authorization, identity, response })
    // The protocol is chosen per message. The code below handles the legacy protocol.
    if (protocolOf(inbound, request.headers) === 'stateless') {
      await stateless.handle(inbound, { request, response, identity, body })
      return
    }
    const accepts = legacyAccepts(request)
    if (inbound.kind !== 'request') {
      const session = sessionOf(request, identity)
      const ambiguous = inbound.kind === 'response' ? session.clientRequests.settle(inbound) : undefined
      if (ambiguous !== undefined) throw new HttpError(400, rpcCodes.params, ambiguous)
      if (inbound.kind === 'notification') legacy.notification(session, inbound)
      response.writeHead(202, { 'Content-Length': 0 }).end()
      return
    }
    if (inbound.method === 'initialize') {
      await initialize(inbound, exchange, accepts)
      return
    }
    const session = sessionOf(request, identity, inbound.id)
    const outlet = responseTo(response, accepts, session, inbound)
    const answer = await legacy.request(session, inbound, outlet, callerOf(session, request, inbound.id), true)
    if (answer === undefined) outlet.abandon()
    else outlet.answer(answer.message, answer.status, answer.headers)
    sessions.touch(session)
    if (membership && changesSession(inbound)) sessions.keep(session)
  }

  const get = ({ request, response, identity }: Exchange) => {
    const session = sessionOf(request, identity)
    if (draining) throw shuttingDown()
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
    const { message } = errorResponse(found.id, found.method, unanswered({ method: 'POST' }), log)
    const stream = connect()
    stream.send(joined(message))
    stream.end()
  }

  const recordRejection = ({ status, details }: HttpError, request: ReceivedRequest) => {
    // Record only rejected credentials: `agentFor` records denied agents itself.
    const { code, rule } = (details.data ?? {}) as { code?: ErrorCode; rule?: string }
    if (code === undefined || !(status === 401 || rule === throttleRule || rule === scopesRule)) return
    access.rejected({ code, address: addressOf(request) })
  }

  /** Answers a request whose credential is valid. */
  const serve = (exchange: Exchange): Promise<void> | undefined => {
    const { request, response, identity } = exchange
    const { method, headers } = request
    // Stop here: the code below relies on the close event, which a response that is already closed does not emit again.
    if (response.destroyed) return undefined
    if (method === 'GET' || isListening(headers)) {
      watchCredential({ authorization: headers.authorization, identity, response })
      // When the gateway stops, it ends the stream: the client's next request must not use the same connection.
      response.setHeader('Connection', 'close')
    }
    return method === 'POST' ? post(exchange) : getOrDelete(exchange)
  }

  const getOrDelete = async (exchange: Exchange) => {
    const { request, response, identity } = exchange
    const { method, headers } = request
    checkRevision(request)
    if (await ownerRouting?.route(exchange)) return
    if (method === 'DELETE') {
      sessions.end(sessionOf(request, identity))
      response.writeHead(204).end()
      return
    }
    const { stream } = readAccept(headers.accept)
    if (!stream && headers.accept !== undefined && !headers.accept.includes('*/*')) throw notAcceptable()
    get(exchange)
  }

  const refuse = (thrown: unknown, request: ReceivedRequest, response: ServerResponse) => {
    const refusal = toHttpError(thrown, log)
    recordRejection(refusal, request)
    sendHttpError(response, refusal, clock)
  }

  const handle = (request: ReceivedRequest, response: ServerResponse): void => {
    const enter = (identity: AuthIdentity) => {
      serve({ request, response, identity })?.catch((thrown: unknown) => {
        recordIfMalformed(access, { principal: identity.principal, address: addressOf(request) }, thrown)
        refuse(thrown, request, response)
      })
    }
    const rejected = (thrown: unknown) => refuse(thrown, request, response)
    const { method, headers } = request
    try {
      if (method !== 'POST' && method !== 'GET' && method !== 'DELETE')
        throw methodNotAllowed(method, 'POST, GET, DELETE')
      const identity = admit(headers.authorization, request)
      if (identity instanceof Promise) identity.then(enter).catch(rejected)
      else enter(identity)
    } catch (thrown) {
      rejected(thrown)
    }
  }

  return {
    handle,
    /** Rejects new requests. Requests in flight continue. */
    drain(): void {
      draining = true
      stateless.drain()
      ownerRouting?.drain()
    },
  }
}

/** The part of a caller's share of unread bytes above which its new requests are refused. */
const maxUnreadShare = 0.75

/** Whether a request changes the session record, which must then be saved for other replicas. */
const changesSession = ({ method }: InboundRequest): boolean =>
  method === 'resources/subscribe' || method === 'resources/unsubscribe' || method === 'logging/setLevel'

/** Whether a request waits for a task's result. That may take a day, so the wait ends when the credential expires. */
const waitsForTask = (inbound: InboundMessage): boolean =>
  inbound.kind === 'request' && inbound.method === 'tasks/result'

/** Whether a POST opens a stateless notification stream, according to its header. */
const isListening = (headers: IncomingHttpHeaders): boolean =>
  String(headers['mcp-method']).trim() === 'subscriptions/listen'

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
const nowhere: ResponseChannel = { owner: undefined, send: () => false, abandon() {} }

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
