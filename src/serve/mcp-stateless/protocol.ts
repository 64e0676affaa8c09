import type { IncomingHttpHeaders } from 'node:http'
import type { Served } from '../../core/access.ts'
import { type Caller, declaresExtension, tasksExtension } from '../../core/call.ts'
import type { Kind } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../json/json.ts'
import { isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import type { Pieces } from '../../wire/bytes.ts'
import { toModern } from '../../wire/convert-result.ts'
import { resultPieces } from '../../wire/message.ts'
import { declaredParamHeaders } from '../../wire/param-headers.ts'
import { metaKeys, modernRevision } from '../../wire/revisions.ts'
import { gatewayCapabilities, missingCapabilityError } from '../calls/client-capabilities.ts'
import {
  argumentsOf,
  checkProgressToken,
  listedKinds,
  missingServersKey,
  Operations,
  type ResponseChannel,
} from '../calls/operations.ts'
import { invalidState, isOwnState, PendingCalls, type RequestTurn, ResumableCall } from '../calls/resumable-call.ts'
import type { ServeContext } from '../context.ts'
import { type EncodedResponse, HttpError, recordIfMalformed, rpcCodes } from '../errors.ts'
import { definedParams, type InboundRequest, memberOf, type Params } from '../inbound-message.ts'
import type { RequestEnvelope } from './envelope.ts'
import { checkParamHeaders } from './envelope.ts'
import { ListenStreams } from './listen-streams.ts'
import { inputRequired, statelessErrorResponse } from './responses.ts'

export interface StatelessRequest extends InboundRequest {
  readonly envelope: RequestEnvelope
  readonly caller: Caller
  /** The HTTP headers; undefined for stdio. */
  readonly headers?: IncomingHttpHeaders
}

/** The caching hint for lists, which depend on the caller. Clients that listen for changes learn of them sooner. */
const listHint = { ttlMs: 60_000, cacheScope: 'private' } as const
/** The caching hint for resources whose server does not give one: do not cache. */
const readHint = { ttlMs: 0, cacheScope: 'private' } as const

/** The requests of this revision that become calls, and whether they may require input from the caller. */
const statelessCallMethods: ReadonlyMap<string, boolean> = new Map([
  ['tools/call', true],
  ['resources/read', true],
  ['prompts/get', true],
  ['completion/complete', false],
  ['skills/get', false],
  ['resources/directory/read', false],
  ['tasks/get', false],
  ['tasks/update', false],
  ['tasks/cancel', false],
])

const closingBrace = Buffer.from('}')

/** Implements MCP revision 2026-07-28, which has no sessions, over HTTP or stdio. */
export class StatelessProtocol {
  readonly streams: ListenStreams
  readonly #context: ServeContext
  readonly #isImmediate: boolean
  readonly #operations: Operations
  readonly #pendingCalls: PendingCalls
  /** Results from the gateway itself name the gateway as the server. Forwarded results keep their own `_meta`. */
  readonly #own: { readonly ttlMs: number; readonly _meta: object }
  readonly #listHead: Buffer

  /** `isImmediate`: whether to answer `server/discover` with what is known, without waiting for servers. */
  constructor(context: ServeContext, isImmediate = false) {
    const { access, info, budgets, membership, clock } = context
    this.#context = context
    this.#isImmediate = isImmediate
    this.#operations = new Operations(access, ({ body, plain }, reads) =>
      toModern(body.bytes, reads && readHint, plain),
    )
    this.#pendingCalls = new PendingCalls(clock, budgets, membership?.self)
    const serverInfo = { name: info.name, version: info.version }
    this.streams = new ListenStreams({ ...context, serverInfo })
    this.#own = { ...{ resultType: 'complete', ...listHint }, _meta: { [metaKeys.serverInfo]: serverInfo } }
    this.#listHead = listStart(this.#own)
  }

  /** Returns the params that are defined for the request and drops all others. Throws if a param is ambiguous. */
  params(request: InboundRequest, { version: revision, capabilities }: RequestEnvelope, caller: Caller): Params {
    const { access, log } = this.#context
    const extension = (name: string) =>
      declaresExtension(capabilities, name) && declaresExtension(access.offers(caller).capabilities, name)
    return definedParams(request, { revision, extension }, log)
  }

  /** Handles a request. Resolves with undefined if it was cancelled. Never rejects. */
  async request(request: StatelessRequest, outlet: ResponseChannel): Promise<EncodedResponse | undefined> {
    try {
      const result = await this.#answer(request, outlet)
      return result && { message: resultPieces(request.id, result) }
    } catch (thrown) {
      recordIfMalformed(this.#context.access, request.caller, thrown)
      return statelessErrorResponse(request, thrown, this.#context.log)
    }
  }

  drain(): void {
    this.streams.end()
    this.#pendingCalls.close()
  }

  #answer(request: StatelessRequest, outlet: ResponseChannel): Promise<Pieces | undefined> {
    const { method, params, envelope } = request
    checkProgressToken(params)
    const mayRequestInput = statelessCallMethods.get(method)
    if (mayRequestInput !== undefined) {
      if (method.startsWith('tasks/')) requireExtension(tasksExtension, envelope)
      return this.#call(request, outlet, mayRequestInput)
    }
    const kind = listedKinds.get(method)
    if (kind !== undefined) return this.#list(kind, request)
    if (method === 'server/discover') return this.#discover(request.caller)
    throw new HttpError(404, rpcCodes.method, `Unknown method ${quote(method)}.`)
  }

  async #call(
    request: StatelessRequest,
    outlet: ResponseChannel,
    mayRequestInput: boolean,
  ): Promise<Pieces | undefined> {
    const { id, params, envelope, caller, headers } = request
    const { progressToken } = params._meta as Params
    const { version: revision, capabilities, logLevel } = envelope
    const send = (message: Buffer) => outlet.send(message)
    const turn: RequestTurn = { id, revision, capabilities, logLevel, progressToken, send }
    const known = params.requestState === undefined ? undefined : this.#suspended(request)
    const call = known ?? this.#begin(request, turn, mayRequestInput)
    outlet.owner = call
    const waiting = call.turn(turn, isRecord(params.inputResponses) ? answersOf(request) : {})
    if (!known) {
      // A portable schema declares no headers.
      const inspect =
        headers &&
        (({ entry, isPortable }: Served) =>
          isPortable ? undefined : admitParams(headers, entry.definition.inputSchema, request))
      call.run(this.#operations.call(request, caller, call, inspect))
    }
    let outcome = await waiting
    // If the call was aborted in the meantime, get its final outcome: it needs no more input.
    if (call.signal.aborted) outcome = await call.turn(turn)
    if (outcome.kind === 'asked') return [inputRequired(outcome.questions, this.#pendingCalls.suspend(call))]
    this.#pendingCalls.forget(call)
    if (outcome.kind === 'failed') throw outcome.thrown
    return outcome.kind === 'done' ? outcome.result : undefined
  }

  #suspended(request: StatelessRequest): ResumableCall | undefined {
    const { requestState } = request.params
    if (typeof requestState !== 'string') throw invalidState()
    return isOwnState(requestState) ? this.#pendingCalls.resume(requestState, callOwner(request)) : undefined
  }

  #begin(request: StatelessRequest, turn: RequestTurn, mayRequestInput: boolean): ResumableCall {
    const size = request.text?.bytes.length ?? 0
    const admit = (bytes: number) => this.#pendingCalls.admit(call, callOwner(request), size, bytes)
    const call = new ResumableCall(turn, mayRequestInput ? admit : neverAsked)
    return call
  }

  async #discover(caller: Caller): Promise<Pieces> {
    const { access, info } = this.#context
    const told = { instructions: info.instructions, isImmediate: this.#isImmediate }
    const own = await this.#operations.introduce(access.view(caller), caller, told)
    // Omit the capability for legacy tasks, which do not exist in this protocol.
    const { tasks: _, ...others } = own.capabilities
    const capabilities = { ...others, ...gatewayCapabilities }
    return [Json.of({ supportedVersions: [modernRevision], ...own, capabilities, ...this.#own }).bytes]
  }

  async #list(kind: Kind, { params, caller }: StatelessRequest): Promise<Pieces> {
    // Without sessions, a client's list of tools is the beginning of a conversation.
    if (kind === 'tool' && params.cursor === undefined) this.#context.access.view(caller).conversationStarted?.()
    const own = this.#own
    const { members, missing, ttlMs: allowedMs = own.ttlMs } = await this.#operations.list(kind, params, caller)
    if (missing.length === 0 && allowedMs >= own.ttlMs) return [this.#listHead, ...members, closingBrace]
    // Clients must not cache a list longer than a server allows, nor while servers are starting.
    const ttlMs = missing.some(({ status }) => status === 'starting') ? 0 : Math.min(own.ttlMs, allowedMs)
    const _meta = missing.length > 0 ? { ...own._meta, [missingServersKey]: missing } : own._meta
    return [listStart({ ...own, ttlMs, _meta }), ...members, closingBrace]
  }
}

const listStart = (own: object): Buffer => Buffer.from(`${JSON.stringify(own).slice(0, -1)},`)

const callOwner = ({ method, params, caller: { principal, agent } }: StatelessRequest) => ({
  ...{ principal, agent, method },
  name: String(params.name ?? params.uri),
})

/** Checks the headers that repeat arguments. Throws INVALID_ARGUMENTS, with the HttpError as its cause. */
function admitParams(headers: IncomingHttpHeaders, schema: unknown, request: StatelessRequest): void {
  const declared = declaredParamHeaders(schema)
  if (declared.length === 0) return
  try {
    checkParamHeaders(headers, declared, argumentsOf(request))
  } catch (cause) {
    if (!(cause instanceof HttpError)) throw cause
    throw new ToolwayError('INVALID_ARGUMENTS', cause.message, { cause })
  }
}

/** The caller's input responses, parsed so that numbers stay exact. */
const answersOf = (request: StatelessRequest): Params => memberOf(request, 'inputResponses').exact as Params

function requireExtension(name: string, { capabilities }: RequestEnvelope): void {
  if (declaresExtension(capabilities, name)) return
  throw missingCapabilityError({ extensions: { [name]: {} } })
}

const neverAsked = () => {
  throw new ToolwayError('INVALID_ARGUMENTS', 'Only tools, resources and prompts can request input from the caller.')
}
