import type { IncomingHttpHeaders } from 'node:http'
import type { Access, MissingServer } from '../../core/access.ts'

import { type Caller, declaresExtension, tasksExtension } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Kind } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Budgets } from '../../core/limits/budget.ts'
import type { Log } from '../../core/log.ts'
import { Json } from '../../json/json.ts'
import { isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import type { Pieces } from '../../wire/bytes.ts'
import { toModern } from '../../wire/convert-result.ts'
import { resultPieces } from '../../wire/message.ts'
import { metaKeys, modernRevision } from '../../wire/revisions.ts'
import { gatewayCapabilities, missingCapabilityError } from '../calls/client-capabilities.ts'
import {
  argumentsOf,
  type CallPeer,
  checkProgressToken,
  createOperations,
  missingServersKey,
  type ResponseChannel,
} from '../calls/operations.ts'
import { createPendingCalls, invalidState, type RequestTurn, ResumableCall } from '../calls/resumable-call.ts'
import { type EncodedResponse, HttpError, recordIfMalformed, rpcCodes } from '../errors.ts'
import { definedParams, type InboundRequest, memberOf, type Params } from '../inbound-message.ts'
import type { GatewayInfo } from '../mcp-legacy/protocol.ts'
import type { RequestEnvelope } from './envelope.ts'
import { checkParamHeaders } from './envelope.ts'
import { createListenStreams } from './listen-streams.ts'
import { inputRequired, statelessErrorResponse } from './responses.ts'

export interface StatelessRequest extends InboundRequest {
  readonly envelope: RequestEnvelope
  readonly caller: Caller
  /** The HTTP headers; undefined for stdio. */
  readonly headers?: IncomingHttpHeaders
}

export type StatelessProtocol = ReturnType<typeof createStatelessProtocol>

/** The caching hint for lists, which depend on the caller. Clients that listen for changes learn of them sooner. */
const listHint = { ttlMs: 60_000, cacheScope: 'private' } as const
/** The caching hint for resources whose server does not give one: do not cache. */
const readHint = { ttlMs: 0, cacheScope: 'private' } as const

const lists: ReadonlyMap<string, Kind> = new Map([
  ['tools/list', 'tool'],
  ['resources/list', 'resource'],
  ['resources/templates/list', 'template'],
  ['prompts/list', 'prompt'],
])

/** Implements MCP revision 2026-07-28, which has no sessions, over HTTP or stdio. */
export function createStatelessProtocol(options: {
  readonly access: Access
  readonly info: GatewayInfo
  readonly replica?: string | undefined
  readonly budgets: Pick<Budgets, 'questions' | 'question_bytes' | 'streams' | 'subscriptions'>
  /** Whether to answer `server/discover` with what is known, without waiting for servers. */
  readonly immediate?: boolean
  readonly clock: Clock
  readonly log: Log
}) {
  const { access, info, budgets, clock, log } = options
  const operations = createOperations(access, ({ body, plain }, reads) =>
    toModern(body.bytes, reads && readHint, plain),
  )
  const pendingCalls = createPendingCalls(clock, budgets, options.replica)
  const serverInfo = { name: info.name, version: info.version }
  const streams = createListenStreams({ access, serverInfo, budgets, clock, log })

  // Results from the gateway itself name the gateway as the server. Forwarded results keep their own `_meta`.
  const own = { resultType: 'complete', ...listHint, _meta: { [metaKeys.serverInfo]: serverInfo } }
  const listHead = Buffer.from(`${JSON.stringify(own).slice(0, -1)},`)
  const closing = Buffer.from('}')

  /**
   * The start of a list result that differs from the usual one. Clients must not cache it longer than a server allows, nor
   * while servers are starting.
   */
  const unusualHead = (missing: readonly MissingServer[], allowedMs: number) => {
    const ttlMs = missing.some(({ status }) => status === 'starting') ? 0 : Math.min(own.ttlMs, allowedMs)
    const _meta = missing.length > 0 ? { ...own._meta, [missingServersKey]: missing } : own._meta
    return Buffer.from(`${JSON.stringify({ ...own, ttlMs, _meta }).slice(0, -1)},`)
  }

  const discover = async (caller: Caller): Promise<Buffer> => {
    // Wait briefly for servers, because their capabilities are known only once they are ready.
    const ready = access.view(caller).ready('brief')
    if (!options.immediate) await ready
    const offers = access.offers(caller)
    // Omit the capability for legacy tasks, which do not exist in this protocol.
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
    // Without sessions, a client's list of tools is the beginning of a conversation.
    if (kind === 'tool' && params.cursor === undefined) access.view(caller).conversationStarted?.()
    const { members, missing, ttlMs = own.ttlMs } = await operations.list(kind, params, caller)
    const isUsual = missing.length === 0 && ttlMs >= own.ttlMs
    return [isUsual ? listHead : unusualHead(missing, ttlMs), ...members, closing]
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

  const openCall = (request: StatelessRequest, turn: RequestTurn): { call: ResumableCall; begin: boolean } => {
    const { method, params } = request
    const { principal, agent } = request.caller
    const { requestState } = params
    if (requestState !== undefined && typeof requestState !== 'string') throw invalidState()
    const owner = { principal, agent, method, name: String(params.name ?? params.uri) }
    if (pendingCalls.recognises(requestState)) return { call: pendingCalls.resume(requestState, owner), begin: false }
    const size = request.text?.bytes.length ?? 0
    const admit = mayRequestInput(method) ? (bytes: number) => pendingCalls.admit(call, owner, size, bytes) : neverAsked
    const call = new ResumableCall(turn, admit)
    return { call, begin: true }
  }

  const run = async (request: StatelessRequest, outlet: ResponseChannel): Promise<Pieces | undefined> => {
    const { id, params, envelope } = request
    const { progressToken } = params._meta as Params
    const { version: revision, capabilities, logLevel } = envelope
    const send = (message: Buffer) => outlet.send(message)
    const turn: RequestTurn = { id, revision, capabilities, logLevel, progressToken, send }
    const { call, begin } = openCall(request, turn)
    outlet.owner = call
    const waiting = call.turn(turn, isRecord(params.inputResponses) ? answersOf(request) : {})
    if (begin) call.run((peer) => perform(request, peer))
    let outcome = await waiting
    // If the call was aborted in the meantime, get its final outcome: it needs no more input.
    if (call.signal.aborted) outcome = await call.turn(turn)
    if (outcome.kind === 'asked') return [inputRequired(outcome.questions, pendingCalls.suspend(call))]
    pendingCalls.forget(call)
    if (outcome.kind === 'failed') throw outcome.thrown
    return outcome.kind === 'done' ? outcome.result : undefined
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
        throw new HttpError(404, rpcCodes.method, `Unknown method ${quote(method)}.`)
    }
  }

  return {
    /** Returns the params that are defined for the request and drops all others. Throws if a param is ambiguous. */
    params(request: InboundRequest, { version: revision, capabilities }: RequestEnvelope, caller: Caller): Params {
      const extension = (name: string) =>
        declaresExtension(capabilities, name) && declaresExtension(access.offers(caller).capabilities, name)
      return definedParams(request, { revision, extension }, log)
    },
    /** Handles a request. Resolves with undefined if it was cancelled. Never rejects. */
    async request(request: StatelessRequest, outlet: ResponseChannel): Promise<EncodedResponse | undefined> {
      try {
        const result = await answer(request, outlet)
        return result && { message: resultPieces(request.id, result) }
      } catch (thrown) {
        recordIfMalformed(access, request.caller, thrown)
        return statelessErrorResponse(request, thrown, log)
      }
    },
    streams,
    /** Ends streams and cancels suspended calls. */
    drain(): void {
      streams.end()
      pendingCalls.close()
    },
  }
}

/** Checks the headers that repeat arguments. Throws INVALID_ARGUMENTS, with the HttpError as its cause. */
function admitParams(headers: IncomingHttpHeaders, schema: unknown, request: StatelessRequest): void {
  try {
    checkParamHeaders(headers, schema, argumentsOf(request))
  } catch (cause) {
    if (!(cause instanceof HttpError)) throw cause
    throw new ToolwayError('INVALID_ARGUMENTS', cause.message, { cause })
  }
}

/** The caller's input responses, parsed so that numbers stay exact. */
const answersOf = (request: StatelessRequest): Params => memberOf(request, 'inputResponses').exact as Params

/** Whether a method may require input from the caller. */
const mayRequestInput = (method: string): boolean =>
  method === 'tools/call' || method === 'resources/read' || method === 'prompts/get'

function requireExtension(name: string, { capabilities }: RequestEnvelope): void {
  if (declaresExtension(capabilities, name)) return
  throw missingCapabilityError({ extensions: { [name]: {} } })
}

const neverAsked = () => {
  throw new ToolwayError('INVALID_ARGUMENTS', 'Only tools, resources and prompts can request input from the caller.')
}
