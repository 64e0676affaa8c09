import type { ServerResponse } from 'node:http'
import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Membership } from '../../core/cluster.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Id } from '../../wire/message.ts'
import { type AuthIdentity, agentFor, agentOfParams, agentOfRequest } from '../auth/identity.ts'
import { clientAddress } from '../cluster/forward-request.ts'
import type { RouteCall } from '../cluster/route-to-owner.ts'
import { HttpError, recordIfMalformed, toHttpError } from '../errors.ts'
import type { ReceivedRequest } from '../http/request.ts'
import { type AcceptedTypes, PostResponse, readAccept } from '../http/response.ts'
import type { UnreadResponses } from '../http/sse-stream.ts'
import type { InboundMessage, InboundRequest } from '../inbound-message.ts'
import { statelessCaller, validateNotification, validateRequest } from './envelope.ts'
import type { StatelessProtocol, StatelessRequest } from './protocol.ts'
import { statelessErrorResponse } from './responses.ts'

interface StatelessPost {
  readonly request: ReceivedRequest
  readonly response: ServerResponse
  readonly identity: AuthIdentity
  readonly body: Buffer
}

export type StatelessHttp = ReturnType<typeof createStatelessHttp>

export function createStatelessHttp(options: {
  readonly protocol: StatelessProtocol
  readonly access: Access
  readonly membership?: Membership | undefined
  /** Forwards a call to the replica that holds its environment. */
  readonly routeCall?: RouteCall | undefined
  readonly unread: UnreadResponses
  readonly clock: Clock
  readonly log: Log
}) {
  const { protocol, access, membership, routeCall, unread, clock, log } = options
  const responseTo = (response: ServerResponse, accepts: AcceptedTypes, { principal }: Caller) =>
    new PostResponse(response, accepts, { clock, unread, caller: principal })

  const admitted = (inbound: InboundRequest, { request, identity }: StatelessPost): StatelessRequest => {
    const { headers } = request
    const envelope = validateRequest(inbound, headers)
    const from = { ...identity, address: clientAddress(request, membership) }
    const agent = agentFor(access, from, agentOfParams(inbound.params) ?? agentOfRequest(request))
    const caller = statelessCaller({ ...from, agent }, envelope)
    return { ...inbound, params: protocol.params(inbound, envelope, caller), envelope, caller, headers }
  }

  /** Opens a notification stream. The response is always a stream, regardless of what the client accepts. */
  const listen = (request: StatelessRequest, response: ServerResponse) => {
    const exchange = responseTo(response, { json: true, stream: true }, request.caller)
    try {
      exchange.owner = protocol.streams.open(request, request.caller, {
        send: (message) => exchange.send(message),
        end: (answer) => exchange.answer([answer]),
      })
    } catch (thrown) {
      recordIfMalformed(access, request.caller, thrown)
      const { message, status, headers } = statelessErrorResponse(request, thrown, log)
      exchange.answer(message, status, headers)
    }
  }

  const answer = async (inbound: InboundRequest, post: StatelessPost) => {
    const request = admitted(inbound, post)
    const { response } = post
    const routed = routeCall?.(request, post)
    try {
      if (routed && ((await routed) || response.destroyed)) return
    } catch (thrown) {
      if (!(thrown instanceof ToolwayError)) throw thrown
      log.warn({ method: request.method, err: thrown }, 'a forwarded request failed')
      const { message, status, headers } = statelessErrorResponse(request, thrown, log)
      responseTo(response, { json: true, stream: false }, request.caller).answer(message, status, headers)
      return
    }
    if (request.method === 'subscriptions/listen') {
      listen(request, response)
      return
    }
    const { json, stream } = readAccept(post.request.headers.accept)
    // If the client accepts neither JSON nor a stream, send JSON.
    const exchange = responseTo(response, { json: json || !stream, stream }, request.caller)
    const answer = await protocol.request(request, exchange)
    if (answer === undefined) exchange.abandon()
    else exchange.answer(answer.message, answer.status, answer.headers)
  }

  return {
    /** Handles a message of the stateless protocol. Rejects if it is invalid. */
    async handle(inbound: InboundMessage, post: StatelessPost): Promise<void> {
      try {
        if (inbound.kind === 'request') await answer(inbound, post)
        else if (inbound.kind === 'notification') {
          // Over HTTP, a client cancels by closing the response, so validate the notification but do nothing else.
          validateNotification(inbound, post.request.headers)
          post.response.writeHead(202, { 'Content-Length': 0 }).end()
        }
      } catch (thrown) {
        throw inbound.kind === 'request' ? identified(toHttpError(thrown, log), inbound.id) : thrown
      }
    },
    drain: () => protocol.drain(),
  }
}

const identified = ({ status, code, message, details }: HttpError, id: Id): HttpError =>
  new HttpError(status, code, message, { ...details, id })
