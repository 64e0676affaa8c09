import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ErrorCode, errorKinds } from '../../core/errors.ts'
import { decodePercent } from '../../lib/url.ts'
import { scopesRule } from '../auth/challenge.ts'
import { type Authenticate, createCredentialWatch } from '../auth/identity.ts'
import { type Admit, throttleRule } from '../auth/throttle.ts'
import {
  HttpError,
  isUnreadableRequest,
  methodNotAllowed,
  recordMalformed,
  sendHttpError,
  shuttingDown,
  toHttpError,
} from '../errors.ts'
import { allowOrigin, answerPreflight, type Hosts, isPreflight, offendingHeader } from '../http/hosts.ts'
import { sendJson } from '../http/response.ts'
import { modelView, unknownModel } from './chat.ts'
import { type CompletionsOptions, createCompletions } from './completions.ts'
import { errorBody, notFound } from './errors.ts'

interface OpenAiEndpointOptions extends CompletionsOptions {
  readonly authenticate: Authenticate
  readonly admit: Admit
  readonly hosts: Hosts
}

type Sender = { address?: string; principal?: string }

const completionsPath = '/v1/chat/completions'
const modelsPath = '/v1/models'

/** The OpenAI-compatible API (S6), served at all paths below `/v1`. */
export function createOpenAiEndpoint(options: OpenAiEndpointOptions) {
  const { access, authenticate, admit, hosts, clock, log } = options
  const completions = createCompletions(options)
  const lifetimes = createCredentialWatch(authenticate, clock)
  // The API requires a creation time for each model. Use the endpoint's own, which does not change.
  const created = Math.floor(clock.now() / 1000)
  let draining = false

  const models = (path: string): object => {
    const known = options.chat()?.models() ?? []
    if (path === modelsPath) return { object: 'list', data: known.map((id) => modelView(id, created)) }
    const id = decodePercent(path.slice(modelsPath.length + 1))
    if (!known.includes(id)) throw unknownModel(id, known)
    return modelView(id, created)
  }

  const answer = async (request: IncomingMessage, response: ServerResponse, path: string, sender: Sender) => {
    const { host, origin, authorization } = request.headers
    hosts.check(host, origin)
    if (origin !== undefined) allowOrigin(response, origin)
    if (isPreflight(request)) return answerPreflight(response)
    const identity = await admit(authorization, request)
    sender.principal = identity.principal
    // Stop here: the code below relies on the close event, which a response that is already closed does not emit again.
    if (response.destroyed) return
    if (draining) throw shuttingDown()
    if (path === completionsPath) {
      allow(request, 'POST')
      lifetimes({ authorization, identity, response })
      await completions(request, response, identity)
    } else if (path === modelsPath || path.startsWith(`${modelsPath}/`)) {
      allow(request, 'GET, HEAD')
      sendJson(response, models(path))
    } else throw nothing()
  }

  /** Audits rejected requests in the same way as the MCP endpoint (F11). Denied agents were already recorded. */
  const recordRejection = (request: IncomingMessage, refusal: HttpError) => {
    const { code, rule = '' } = (refusal.details.data ?? {}) as { code?: ErrorCode; rule?: string }
    const isReported =
      code === 'AUTH_REQUIRED' || rule === throttleRule || rule === scopesRule || rule.startsWith('server.allowed')
    if (code === undefined || !isReported) return
    access.rejected({ code, ...offendingHeader(request, refusal), address: request.socket.remoteAddress })
  }

  return {
    /** Handles a request. Always responds; unknown paths get an OpenAI error. */
    handle(request: IncomingMessage, response: ServerResponse, path: string): true {
      const sender: Sender = { address: request.socket.remoteAddress }
      answer(request, response, path, sender).catch((thrown: unknown) => {
        const refusal = ofOurs(toHttpError(thrown, log))
        recordRejection(request, refusal)
        // The chat throws other errors, and audits them itself.
        if (thrown instanceof HttpError && isUnreadableRequest(thrown)) recordMalformed(access, sender, thrown.message)
        sendHttpError(response, refusal, clock, errorBody)
      })
      return true
    },
    [Symbol.dispose]() {
      draining = true
    },
  }
}

/** Replaces a CANCELLED error with a server error: the client is still connected, so it did not cancel. */
const ofOurs = (refusal: HttpError): HttpError =>
  refusal.status === errorKinds.CANCELLED.http
    ? new HttpError(503, refusal.code, refusal.message, refusal.details)
    : refusal

function allow({ method = '' }: IncomingMessage, allowed: string): void {
  if (!allowed.split(', ').includes(method)) throw methodNotAllowed(method, allowed)
}

const nothing = () =>
  notFound(
    `Not found: the available routes are POST ${completionsPath}, GET ${modelsPath} and GET ${modelsPath}/NAME.`,
    {},
  )
