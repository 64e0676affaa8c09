import type { IncomingHttpHeaders } from 'node:http'
import type { Access, MissingServer } from '../../core/access.ts'
import type { Caller, Capabilities } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Kind } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import type { Log } from '../../core/log.ts'
import type { Pieces } from '../../wire/bytes.ts'
import { toModern } from '../../wire/convert-result.ts'
import { tasksExtension } from '../../wire/defined-members.ts'
import { resultPieces } from '../../wire/message.ts'
import { metaKeys, modernRevision } from '../../wire/revisions.ts'
import { gatewayCapabilities, missingCapabilityError } from '../calls/client-capabilities.ts'
import { argumentsOf, type CallPeer, createOperations, missingServersKey } from '../calls/operations.ts'
import { createPendingCalls, invalidState } from '../calls/pending-calls.ts'
import { checkProgressToken, type ResponseChannel } from '../calls/request-peer.ts'
import { type RequestTurn, ResumableCall } from '../calls/resumable-call.ts'
import { HttpError, type RpcResponse, recordIfMalformed, rpcCodes } from '../errors.ts'
import { definedParams, type InboundRequest, isObject, memberOf, type Params } from '../inbound-message.ts'
import type { GatewayInfo } from '../mcp-legacy/protocol.ts'
import type { RequestEnvelope } from './envelope.ts'
import { createListenStreams, type ListenStreams } from './listen-streams.ts'
import { checkParamHeaders } from './request-headers.ts'
import { inputRequired, statelessErrorResponse } from './responses.ts'

/** A request of the stateless era that has been let in. */
export interface StatelessRequest extends InboundRequest {
  readonly envelope: RequestEnvelope
  readonly caller: Caller
  /** Where it came with some. */
  readonly headers?: IncomingHttpHeaders
}

/** Revision 2026-07-28: what each message means, whichever door it came through. */
export interface StatelessProtocol {
  /** The params of a request with the members that are defined for it; throws for ambiguous ones. */
  params(request: InboundRequest, envelope: RequestEnvelope, caller: Caller): Params
  /** Answers a request; `undefined` if it was cancelled, because nobody waits for that answer. Never rejects. */
  request(request: StatelessRequest, outlet: ResponseChannel): Promise<RpcResponse | undefined>
  readonly streams: ListenStreams
  /** Nobody can come back any more: streams end, and calls that wait for their callers are cancelled. */
  drain(): void
}

/** Lists depend on who asks, and servers tell us when they change: clients that listen need not wait for this. */
const listHint = { ttlMs: 60_000, cacheScope: 'private' } as const
/** What a server says about its resources stays; where it says nothing, nobody may keep them. */
const readHint = { ttlMs: 0, cacheScope: 'private' } as const

const lists: ReadonlyMap<string, Kind> = new Map([
  ['tools/list', 'tool'],
  ['resources/list', 'resource'],
  ['resources/templates/list', 'template'],
  ['prompts/list', 'prompt'],
])

export function createStatelessProtocol(options: {
  readonly access: Access
  readonly info: GatewayInfo
  /** The name of this replica, where there are several. */
  readonly replica?: string | undefined
  readonly clock: Clock
  readonly log: Log
}): StatelessProtocol {
  const { access, info, clock, log } = options
  const operations = createOperations(access, ({ body, plain }, reads) =>
    toModern(body.bytes, reads && readHint, plain),
  )
  const parked = createPendingCalls(clock, undefined, options.replica)
  const serverInfo = { name: info.name, version: info.version }
  const streams = createListenStreams({ access, serverInfo, clock, log })

  // What we make ourselves names us as its server. What is only carried keeps whatever `_meta` its own server gave it.
  const own = { resultType: 'complete', ...listHint, _meta: { [metaKeys.serverInfo]: serverInfo } }
  const listHead = Buffer.from(`${JSON.stringify(own).slice(0, -1)},`)
  const closing = Buffer.from('}')

  /** What stands before a list that lacks servers. Nobody keeps one that servers which are starting will complete. */
  const incomplete = (missing: readonly MissingServer[]) => {
    const ttlMs = missing.some(({ status }) => status === 'starting') ? 0 : own.ttlMs
    const head = { ...own, ttlMs, _meta: { ...own._meta, [missingServersKey]: missing } }
    return Buffer.from(`${JSON.stringify(head).slice(0, -1)},`)
  }

  const discover = async (caller: Caller): Promise<Buffer> => {
    // What servers offer beside entries is known as soon as they are.
    await access.view(caller).ready('brief')
    const offers = access.offers(caller)
    // The tasks of the legacy era have no place in this one.
    const { tasks: _, ...others } = offers.capabilities
    const instructions = [info.instructions, offers.instructions].filter(Boolean).join('\n\n')
    return Json.of({
      supportedVersions: [modernRevision],
      capabilities: { ...others, ...gatewayCapabilities },
      ...(instructions !== '' && { instructions }),
      ...own,
    }).bytes
  }

  const list = async (kind: Kind, { params, caller }: StatelessRequest): Promise<Pieces> => {
    const { members, missing } = await operations.list(kind, params, caller)
    return [missing.length === 0 ? listHead : incomplete(missing), ...members, closing]
  }

  const perform = (request: StatelessRequest, peer: CallPeer): Promise<Pieces> => {
    const { method, caller, headers } = request
    switch (method) {
      case 'tools/call':
        return operations.callTool(request, caller, peer, ({ definition }) => {
          if (headers !== undefined) admitParams(headers, definition.inputSchema, request)
        })
      case 'resources/read':
        return operations.readResource(request, caller, peer)
      case 'prompts/get':
        return operations.getPrompt(request, caller, peer)
      case 'completion/complete':
        return operations.complete(request, caller, peer)
      default:
        return operations.task(method, request, caller, peer)
    }
  }

  /** Begins a call, or goes back to one that has asked for more. */
  const openCall = (request: StatelessRequest, leg: RequestTurn): { call: ResumableCall; begin: boolean } => {
    const { method, params, caller } = request
    const { requestState } = params
    if (requestState !== undefined && typeof requestState !== 'string') throw invalidState()
    const owner = { principal: caller.principal, method, name: nameOf(params) }
    if (parked.recognises(requestState)) return { call: parked.resume(requestState, owner), begin: false }
    const admit = isParkable(method) ? () => parked.admit(call, owner) : neverAsked
    const call = new ResumableCall(leg, admit)
    return { call, begin: true }
  }

  const run = async (request: StatelessRequest, outlet: ResponseChannel): Promise<Pieces | undefined> => {
    const { id, params, envelope } = request
    const { progressToken } = params._meta as Params
    const { version: revision, capabilities, logLevel } = envelope
    const leg: RequestTurn = {
      id,
      revision,
      capabilities,
      logLevel,
      progressToken,
      send: (message) => outlet.send(message),
    }
    const { call, begin } = openCall(request, leg)
    outlet.owner = call
    const waiting = call.turn(leg, isObject(params.inputResponses) ? answersOf(request) : {})
    if (begin) call.run((peer) => perform(request, peer))
    let turn = await waiting
    // A call that has ended meanwhile has an outcome, and nobody needs to be asked any more.
    if (call.signal.aborted) turn = await call.turn(leg)
    if (turn.kind === 'asked') return [inputRequired(turn.questions, parked.suspend(call))]
    parked.forget(call)
    if (turn.kind === 'failed') throw turn.thrown
    if (turn.kind !== 'done') return undefined
    return turn.result
  }

  const answer = async (request: StatelessRequest, outlet: ResponseChannel): Promise<Pieces | undefined> => {
    const { method, params, caller } = request
    checkProgressToken(params)
    const kind = lists.get(method)
    if (kind !== undefined) return list(kind, request)
    switch (method) {
      case 'tools/call':
      case 'resources/read':
      case 'prompts/get':
      case 'completion/complete':
        return run(request, outlet)
      case 'tasks/get':
      case 'tasks/update':
      case 'tasks/cancel':
        requireExtension(tasksExtension, request.envelope)
        return run(request, outlet)
      case 'server/discover':
        return [await discover(caller)]
      default:
        throw new HttpError(404, rpcCodes.method, `There is no method ${JSON.stringify(method.slice(0, 100))} here.`)
    }
  }

  return {
    params: (request, { version: revision, capabilities }, caller) => {
      const extension = (name: string) =>
        declares(capabilities, name) && declares(access.offers(caller).capabilities, name)
      return definedParams(request, { revision, extension }, log)
    },
    async request(request, outlet) {
      try {
        const result = await answer(request, outlet)
        return result && { message: resultPieces(request.id, result) }
      } catch (thrown) {
        recordIfMalformed(access, request.caller, thrown)
        return statelessErrorResponse(request, thrown, log)
      }
    },
    streams,
    drain() {
      streams.end()
      parked.close()
    },
  }
}

/** Behind the door a refusal of the door is one of arguments; what it says to the client it says all the same. */
function admitParams(headers: IncomingHttpHeaders, schema: unknown, request: StatelessRequest): void {
  try {
    checkParamHeaders(headers, schema, argumentsOf(request).exact)
  } catch (cause) {
    if (!(cause instanceof HttpError)) throw cause
    throw new ToolwayError('INVALID_ARGUMENTS', cause.message, { cause })
  }
}

/** The answers that a caller brings back, with their numbers as they were written. */
const answersOf = (request: StatelessRequest): Params => memberOf(request, 'inputResponses').exact as Params

/** Only these may be answered with questions. */
const isParkable = (method: string): boolean =>
  method === 'tools/call' || method === 'resources/read' || method === 'prompts/get'

const declares = ({ extensions }: Capabilities, name: string): boolean =>
  isObject(extensions) && extensions[name] !== undefined

/** The methods of an extension are for those who say that they know it. */
function requireExtension(name: string, { capabilities }: RequestEnvelope): void {
  if (declares(capabilities, name)) return
  throw missingCapabilityError({ extensions: { [name]: {} } })
}

/** What a call is about, as its caller spells it: a retry must say the same. */
const nameOf = ({ name, uri }: Params): string => String(name ?? uri)

const neverAsked = () => {
  throw new ToolwayError(
    'INVALID_ARGUMENTS',
    'A caller can be asked for something only by tools, resources and prompts.',
  )
}
