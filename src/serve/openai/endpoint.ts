import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import type { Chat, ChatEvent, ChatRequest } from '../../core/chat.ts'
import { type ErrorCode, errorKinds } from '../../core/errors.ts'
import type { Budget } from '../../core/limits/budget.ts'
import { readTraceContext } from '../../core/trace-context.ts'
import { decodePercent } from '../../lib/url.ts'
import { scopesRule } from '../auth/challenge.ts'
import {
  type Authenticate,
  type AuthIdentity,
  agentFor,
  agentOfRequest,
  createCredentialWatch,
  identityAt,
} from '../auth/identity.ts'
import { type Admit, throttleRule } from '../auth/throttle.ts'
import { nonInteractivePeer } from '../calls/operations.ts'
import type { ServeContext } from '../context.ts'
import {
  HttpError,
  isUnreadableRequest,
  methodNotAllowed,
  recordMalformed,
  sendHttpError,
  shuttingDown,
  toHttpError,
} from '../errors.ts'
import type { RequestBodies } from '../http/bodies.ts'
import { allowOrigin, answerPreflight, type Hosts, isPreflight, offendingHeader } from '../http/hosts.ts'
import { sendJson } from '../http/response.ts'
import { abortOnClose, dropWhenStalled } from '../http/sse-stream.ts'
import { errorBody, modelView, notFound, selectModel, streamAnswer, unknownModel } from './chat.ts'
import { readRequest } from './request.ts'
import { collectCompletion, createChunks } from './response.ts'

type RejectedSender = { address?: string; principal?: string }

const completionsPath = '/v1/chat/completions'
const modelsPath = '/v1/models'

interface OpenAiEndpointOptions extends Pick<ServeContext, 'clock' | 'log'> {
  /** The chat for the current configuration; undefined if no model is configured. */
  chat(): Chat | undefined
  readonly access: Pick<Access, 'agentOf' | 'rejected'>
  readonly authenticate: Authenticate
  readonly admit: Admit
  readonly hosts: Hosts
  readonly bodies: RequestBodies
  /** Whether calls are traced. Trace headers are read only if this returns true. */
  traced?(): boolean
  /** The answers in progress. Each keeps a conversation in memory for minutes. */
  readonly answers: Budget
}

/** The OpenAI-compatible API (S6), served at all paths below `/v1`. */
export class OpenAiEndpoint implements Disposable {
  readonly #options: OpenAiEndpointOptions
  readonly #watchCredential: ReturnType<typeof createCredentialWatch>
  /** The API requires a creation time for each model. This is the endpoint's own, which does not change. */
  readonly #created: number
  #isDraining = false

  constructor(options: OpenAiEndpointOptions) {
    const { authenticate, clock } = options
    this.#options = options
    this.#watchCredential = createCredentialWatch(authenticate, clock)
    this.#created = Math.floor(clock.now() / 1000)
  }

  /** Handles a request. Always responds; unknown paths get an OpenAI error. */
  handle(request: IncomingMessage, response: ServerResponse, path: string): true {
    const { access, clock, log } = this.#options
    const sender: RejectedSender = { address: request.socket.remoteAddress }
    this.#answer(request, response, path, sender).catch((thrown: unknown) => {
      const refusal = ofOurs(toHttpError(thrown, log))
      this.#recordRejection(request, refusal)
      // The chat throws other errors, and audits them itself.
      if (thrown instanceof HttpError && isUnreadableRequest(thrown)) recordMalformed(access, sender, thrown.message)
      sendHttpError(response, refusal, clock, errorBody)
    })
    return true
  }

  [Symbol.dispose](): void {
    this.#isDraining = true
  }

  async #answer(request: IncomingMessage, response: ServerResponse, path: string, sender: RejectedSender) {
    const { hosts, admit } = this.#options
    const { host, origin, authorization } = request.headers
    hosts.check(host, origin)
    if (origin !== undefined) allowOrigin(response, origin)
    if (isPreflight(request)) return answerPreflight(response)
    const identity = identityAt(await admit(authorization, request), undefined)
    sender.principal = identity.principal
    // Stop here: the code below relies on the close event, which a response that is already closed does not emit again.
    if (response.destroyed) return
    if (this.#isDraining) throw shuttingDown()
    if (path === completionsPath) {
      allowMethods(request, 'POST')
      this.#watchCredential({ authorization, identity, response })
      await this.#complete(request, response, identity)
    } else if (path === modelsPath || path.startsWith(`${modelsPath}/`)) {
      allowMethods(request, 'GET, HEAD')
      sendJson(response, this.#models(path))
    } else throw unknownRoute()
  }

  #models(path: string): object {
    const known = this.#options.chat()?.models() ?? []
    if (path === modelsPath) return { object: 'list', data: known.map((id) => modelView(id, this.#created)) }
    const id = decodePercent(path.slice(modelsPath.length + 1))
    if (!known.includes(id)) throw unknownModel(id, known)
    return modelView(id, this.#created)
  }

  /** Handles POST /v1/chat/completions. */
  async #complete(request: IncomingMessage, response: ServerResponse, identity: AuthIdentity): Promise<void> {
    const { answers, bodies, clock, log, traced } = this.#options
    const { principal } = identity
    if (answers.take(principal)) throw tooManyAnswers(answers.usedBy(principal))
    response.once('close', () => answers.give(principal))
    const signal = abortOnClose(response)
    const { asked, includeUsage, agent } = readRequest(await bodies.read({ request, response, identity }))
    const { chat, model } = selectModel(this.#options.chat(), asked.model)
    const caller = this.#callerOf(request, identity, agent)
    const trace = traced?.() ? readTraceContext(request.headers) : undefined
    const id = `chatcmpl-${randomUUID().slice(19)}`
    const whole: ChatRequest = { ...asked, id, model, caller, signal, peer: nonInteractivePeer, trace }
    const heading = { id, created: Math.floor(clock.now() / 1000), model }
    // Set the headers now: OpenAI clients read X-Request-Id even if the request fails.
    response.setHeader('Toolway-Chat', id).setHeader('X-Request-Id', id)
    const events = noRetryAfterCalls(chat.answer(whole), response)
    if (asked.stream) {
      const chunks = createChunks(heading, includeUsage)
      const failure = (thrown: unknown) => errorBody(toHttpError(thrown, log))
      await streamAnswer(events, { response, opening: [chunks.opening()], encode: chunks.of, failure, clock })
      return
    }
    const completion = await collectCompletion(events, heading)
    if (response.destroyed) return
    sendJson(response, completion)
    dropWhenStalled(response)
  }

  #callerOf(request: IncomingMessage, identity: AuthIdentity, named: string | undefined): Caller {
    const from = { ...identity, address: request.socket.remoteAddress }
    const asked = named ?? agentOfRequest(request)
    const agent = agentFor(this.#options.access, from, asked)
    // There are no sessions here, so all chats of a principal share one.
    return { ...from, agent, asked, session: `chat ${identity.principal}`, capabilities: {} }
  }

  /** Audits rejected requests in the same way as the MCP endpoint (F11). Denied agents were already recorded. */
  #recordRejection(request: IncomingMessage, refusal: HttpError): void {
    const { code, rule = '' } = (refusal.details.data ?? {}) as { code?: ErrorCode; rule?: string }
    const isReported =
      code === 'AUTH_REQUIRED' || rule === throttleRule || rule === scopesRule || rule.startsWith('server.allowed')
    if (code === undefined || !isReported) return
    const address = request.socket.remoteAddress
    this.#options.access.rejected({ code, ...offendingHeader(request, refusal), address })
  }
}

/** Replaces a CANCELLED error with a server error: the client is still connected, so it did not cancel. */
const ofOurs = (refusal: HttpError): HttpError =>
  refusal.status === errorKinds.CANCELLED.http
    ? new HttpError(503, refusal.code, refusal.message, refusal.details)
    : refusal

function allowMethods({ method = '' }: IncomingMessage, allowed: string): void {
  if (!allowed.split(', ').includes(method)) throw methodNotAllowed(method, allowed)
}

const unknownRoute = () =>
  notFound(
    `Not found: the available routes are POST ${completionsPath}, GET ${modelsPath} and GET ${modelsPath}/NAME.`,
    {},
  )

const tooManyAnswers = (own: number) =>
  HttpError.of('OVERLOADED', `Too many answers are in progress (${own} of them are yours): try again in a moment.`, {
    retryAfterMs: 5_000,
  })

/** Tells OpenAI clients not to retry after a tool call: an automatic retry would run the tool again. */
async function* noRetryAfterCalls(events: AsyncIterable<ChatEvent>, response: ServerResponse) {
  for await (const event of events) {
    if (event.kind === 'call' && !response.headersSent) response.setHeader('X-Should-Retry', 'false')
    yield event
  }
}
