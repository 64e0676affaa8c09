import type { ServerResponse } from 'node:http'
import type { Caller } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import { setBounded } from '../../lib/memoize.ts'
import {
  type AuthIdentity,
  agentFor,
  agentOfParams,
  agentOfRequest,
  exposureOfRequest,
  type StepUp,
} from '../auth/identity.ts'
import type { RouteCall } from '../cluster/route-to-owner.ts'
import type { ServeContext } from '../context.ts'
import { HttpError, recordIfMalformed, toHttpError } from '../errors.ts'
import type { ReceivedRequest } from '../http/request.ts'
import { type AcceptedTypes, PostResponse, readAccept } from '../http/response.ts'
import type { UnreadResponses } from '../http/sse-stream.ts'
import type { InboundMessage, InboundRequest } from '../inbound-message.ts'
import { type RequestEnvelope, statelessCaller, validateNotification, validateRequest } from './envelope.ts'
import type { StatelessProtocol, StatelessRequest } from './protocol.ts'
import { statelessErrorResponse } from './responses.ts'

interface StatelessPost {
  readonly request: ReceivedRequest
  readonly response: ServerResponse
  readonly identity: AuthIdentity
  readonly body: Buffer
}

interface StatelessHttpOptions {
  readonly protocol: StatelessProtocol
  /** The client's address, also if another replica forwarded the request. */
  addressOf(request: ReceivedRequest): string | undefined
  /** Forwards a call to the replica that holds its environment. */
  readonly routeCall?: RouteCall | undefined
  readonly unread: UnreadResponses
}

type StatelessBase = Parameters<typeof statelessCaller>[0] & StepUp

/** How many callers are remembered. */
const maxCallers = 500

export class StatelessHttp {
  readonly #options: StatelessHttpOptions & ServeContext
  readonly #callers = new Map<string, Caller>()

  constructor(context: ServeContext, options: StatelessHttpOptions) {
    this.#options = { ...context, ...options }
  }

  async handle(inbound: InboundMessage, post: StatelessPost): Promise<void> {
    if (inbound.kind === 'notification') {
      // Over HTTP, a client cancels by closing the response, so validate the notification but do nothing else.
      validateNotification(inbound, post.request.headers)
      post.response.writeHead(202, { 'Content-Length': 0 }).end()
    }
    if (inbound.kind !== 'request') return
    try {
      const request = this.#admit(inbound, post)
      const routed = this.#options.routeCall?.(request, post)
      if (routed && (await this.#isAnswered(routed, request, post.response))) return
      if (request.method === 'subscriptions/listen') {
        this.#listen(request, post.response)
        return
      }
      const { json, stream } = readAccept(post.request.headers.accept)
      // If the client accepts neither JSON nor a stream, send JSON.
      const exchange = this.#responseTo(post.response, { json: json || !stream, stream }, request.caller)
      const answer = await this.#options.protocol.request(request, exchange)
      if (answer === undefined) exchange.abandon()
      else exchange.answer(answer.message, answer.status, answer.headers)
    } catch (thrown) {
      const { status, code, message, details } = toHttpError(thrown, this.#options.log)
      throw new HttpError(status, code, message, { ...details, id: inbound.id })
    }
  }

  drain(): void {
    this.#options.protocol.drain()
  }

  #admit(inbound: InboundRequest, { request, identity }: StatelessPost): StatelessRequest {
    const { access, addressOf, protocol } = this.#options
    const { headers } = request
    const envelope = validateRequest(inbound, headers)
    const from = { ...identity, address: addressOf(request) }
    const agent = agentFor(access, from, agentOfParams(inbound.params) ?? agentOfRequest(request))
    const caller = this.#callerOf({ ...from, agent, ...exposureOfRequest(request) }, envelope)
    return { ...inbound, params: protocol.params(inbound, envelope, caller), envelope, caller, headers }
  }

  /** The caller. Equal ones are the same object, so that what depends on a caller is computed once for many calls. */
  #callerOf(base: StatelessBase, envelope: RequestEnvelope): Caller {
    const { capabilities, client } = envelope
    // A challenge belongs to one token.
    if (base.stepUp) return statelessCaller(base, envelope)
    const key = JSON.stringify([base, client?.name, client?.version, capabilities])
    const known = this.#callers.get(key)
    if (known) return known
    const caller = statelessCaller(base, envelope)
    setBounded(this.#callers, key, caller, maxCallers)
    return caller
  }

  /** Whether another replica has answered, or failed to, so that there is nothing to do here. */
  async #isAnswered(routed: Promise<boolean>, request: StatelessRequest, response: ServerResponse): Promise<boolean> {
    try {
      return (await routed) || response.destroyed
    } catch (thrown) {
      if (!(thrown instanceof ToolwayError)) throw thrown
      this.#options.log.warn({ method: request.method, err: thrown }, 'a forwarded request failed')
      this.#fail(this.#responseTo(response, { json: true, stream: false }, request.caller), request, thrown)
      return true
    }
  }

  /** Opens a notification stream. The response is always a stream, regardless of what the client accepts. */
  #listen(request: StatelessRequest, response: ServerResponse): void {
    const { access, protocol } = this.#options
    const exchange = this.#responseTo(response, { json: true, stream: true }, request.caller)
    try {
      exchange.owner = protocol.streams.open(request, request.caller, {
        send: (message) => exchange.send(message),
        end: (answer) => exchange.answer([answer]),
      })
    } catch (thrown) {
      recordIfMalformed(access, request.caller, thrown)
      this.#fail(exchange, request, thrown)
    }
  }

  #fail(exchange: PostResponse, request: StatelessRequest, thrown: unknown): void {
    const { message, status, headers } = statelessErrorResponse(request, thrown, this.#options.log)
    exchange.answer(message, status, headers)
  }

  #responseTo(response: ServerResponse, accepts: AcceptedTypes, { principal }: Caller): PostResponse {
    const { clock, unread } = this.#options
    return new PostResponse(response, accepts, { clock, unread, caller: principal })
  }
}
