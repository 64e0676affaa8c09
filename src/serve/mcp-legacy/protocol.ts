import { type Caller, knownCapabilities, type LogLevel, logLevels } from '../../core/call.ts'
import type { Kind } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Result } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { eachElement } from '../../json/json-text.ts'
import { isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import { joined, lengthOf, type Pieces, toUtf8 } from '../../wire/bytes.ts'
import { toLegacy } from '../../wire/convert-result.ts'
import { errorBytes, type Id, resultPieces } from '../../wire/message.ts'
import { latestLegacy, legacyRevisions } from '../../wire/revisions.ts'
import { actingAs, agentOfParams } from '../auth/identity.ts'
import {
  capabilitiesFault,
  gatewayCapabilities,
  isLogLevel,
  withoutTasksExtension,
} from '../calls/client-capabilities.ts'
import {
  checkProgressToken,
  listedKinds,
  missingServersKey,
  Operations,
  RequestPeer,
  type ResponseChannel,
  textParam,
} from '../calls/operations.ts'
import type { ServeContext } from '../context.ts'
import {
  type EncodedResponse,
  errorResponse,
  ProtocolError,
  recordIfMalformed,
  recordMalformed,
  rpcCodes,
} from '../errors.ts'
import {
  definedNotificationParams,
  definedParams,
  type InboundMessage,
  type InboundNotification,
  type InboundRequest,
  type Params,
  readInbound,
  type UnreadableMessage,
} from '../inbound-message.ts'
import type { Session, SessionClient } from '../session/session.ts'
import { legacyToolList } from './tool-list.ts'

const maxSessionRequests = 1_000

const emptyResult: Pieces = [Buffer.from('{}')]
const openingBrace = Buffer.from('{')

export const isLegacyRevision = (revision: unknown): revision is string =>
  (legacyRevisions as readonly unknown[]).includes(revision)

const legacyCallMethods: ReadonlySet<string> = new Set([
  ...['tools/call', 'resources/read', 'prompts/get', 'completion/complete'],
  ...['tasks/get', 'tasks/result', 'tasks/cancel', 'skills/get', 'resources/directory/read'],
])

const encodeLegacy = ({ body, plain }: Result): Pieces => [plain ? body.bytes : toLegacy(body.bytes)]

/** Implements the MCP revisions with sessions, 2024-11-05 to 2025-11-25, over HTTP or stdio. */
export class LegacyProtocol {
  readonly #context: ServeContext
  readonly #isImmediate: boolean
  readonly #operations: Operations

  /** `isImmediate`: whether to answer `initialize` with what is known, without waiting for servers. */
  constructor(context: ServeContext, isImmediate = false) {
    this.#context = context
    this.#isImmediate = isImmediate
    this.#operations = new Operations(context.access, encodeLegacy, legacyToolList)
  }

  /** Negotiates the revision. Throws if the client does not name one or declares too many capabilities. */
  negotiate(params: Params): SessionClient {
    if (typeof params.protocolVersion !== 'string') {
      throw new ProtocolError(rpcCodes.params, '"initialize" must have a "protocolVersion".')
    }
    const revision = isLegacyRevision(params.protocolVersion) ? params.protocolVersion : latestLegacy
    const initialize = { method: 'initialize', params }
    const { capabilities, clientInfo } = definedParams(initialize, { revision }, this.#context.log)
    const declared = isRecord(capabilities) ? capabilities : {}
    const fault = capabilitiesFault(declared)
    if (fault !== undefined) throw new ProtocolError(rpcCodes.params, `The client's "capabilities" ${fault}.`)
    const name = clientNameOf(clientInfo)
    return { revision, capabilities: knownCapabilities(withoutTasksExtension(declared)), name }
  }

  async initializeResult({ revision, caller }: Session): Promise<Buffer> {
    const { access, info } = this.#context
    const { name, version, instructions } = info
    const isImmediate = this.#isImmediate
    const view = access.view(caller)
    view.conversationStarted?.()
    const { capabilities, ...told } = await this.#operations.introduce(view, caller, { instructions, isImmediate })
    return Json.of({
      protocolVersion: revision,
      // The gateway's own capabilities override the servers' capabilities.
      capabilities: { ...withoutTasksExtension(capabilities), ...gatewayCapabilities },
      serverInfo: { name, version },
      ...told,
    }).bytes
  }

  /** Handles a request. Resolves with undefined if it was cancelled. Never rejects. */
  async request(
    session: Session,
    received: InboundRequest,
    outlet: ResponseChannel,
    caller: Caller,
    /** Whether the transport has resolved the agent. If so, only a message that names one changes it. */
    agentResolved = false,
  ): Promise<EncodedResponse | undefined> {
    const { access, log } = this.#context
    const { id, method } = received
    let peer: RequestPeer | undefined
    try {
      if (session.requests.has(id) || session.requests.size >= maxSessionRequests) throw refusedRequest(session, id)
      const request = { ...received, params: definedParams(received, session, log) }
      peer = new RequestPeer(session, request, outlet)
      const named = agentOfParams(request.params)
      const acting = agentResolved && named === undefined ? caller : actingAs(access, caller, named)
      const result = await this.#perform(session, request, acting, peer)
      return peer.signal.aborted ? undefined : { message: resultPieces(id, result) }
    } catch (thrown) {
      if (peer?.signal.aborted) return undefined
      recordIfMalformed(access, caller, thrown)
      return errorResponse(id, method, thrown, log)
    } finally {
      peer?.answered()
    }
  }

  #perform(session: Session, request: InboundRequest, caller: Caller, peer: RequestPeer): Promise<Pieces> | Pieces {
    const { method, params } = request
    checkProgressToken(params)
    if (legacyCallMethods.has(method)) return this.#operations.call(request, caller, peer)
    const kind = listedKinds.get(method)
    if (kind !== undefined) return this.#list(kind, params, caller)
    switch (method) {
      case 'resources/subscribe':
        return session.subscriptions.add(textParam(params, 'uri'), caller).then(() => emptyResult)
      case 'resources/unsubscribe':
        session.subscriptions.remove(textParam(params, 'uri'), caller)
        return emptyResult
      case 'logging/setLevel':
        session.logLevel = levelOf(params)
        return emptyResult
      case 'ping':
        return emptyResult
      case 'initialize':
        throw new ProtocolError(rpcCodes.request, 'This session is already initialized.')
      default:
        throw new ProtocolError(rpcCodes.method, `Unknown method ${quote(method)}.`)
    }
  }

  async #list(kind: Kind, params: Params, caller: Caller): Promise<Pieces> {
    const { members, missing } = await this.#operations.list(kind, params, caller)
    const end = missing.length === 0 ? '}' : `,"_meta":${JSON.stringify({ [missingServersKey]: missing })}}`
    return [openingBrace, ...members, Buffer.from(end)]
  }

  /** The response to a request in a batch whose own response is too large for the batch. */
  leftOut({ id, method }: InboundRequest): EncodedResponse {
    return errorResponse(id, method, new ToolwayError('OUTCOME_UNKNOWN', leftOutOfBatch), this.#context.log)
  }

  notification(session: Session, notification: InboundNotification): void {
    const { access, log } = this.#context
    const { method } = notification
    const params = definedNotificationParams(notification, session, log, (fault) =>
      recordMalformed(access, session.caller, fault),
    )
    if (params === undefined) return
    if (method === 'notifications/cancelled') session.requests.get(params.requestId as Id)?.cancel()
    else if (method === 'notifications/roots/list_changed') access.notifyServers(session.caller, method)
  }
}

/** Max length of a client's name. It is kept with the session. */
const maxClientName = 200

const clientNameOf = (info: unknown): string | undefined =>
  isRecord(info) && typeof info.name === 'string' ? info.name.slice(0, maxClientName) : undefined

function refusedRequest({ requests }: Session, id: Id): Error {
  const repeated = 'A request with this id is still in flight in this session: give each request its own id.'
  if (requests.has(id)) return new ProtocolError(rpcCodes.request, repeated)
  const sentence = `This session has ${maxSessionRequests} requests in flight: wait for some of them to be answered.`
  return new ToolwayError('OVERLOADED', sentence)
}

function levelOf({ level }: Params): LogLevel {
  if (isLogLevel(level)) return level
  throw new ProtocolError(rpcCodes.params, `"level" must be one of ${logLevels.join(', ')}.`)
}

const revisionWithBatches = '2025-03-26'

const maxBatchMessages = 100

/** Maximum size of the responses to a batch: the same as for a single result. */
const maxBatchResponseBytes = 16 * 1024 * 1024

const leftOutOfBatch = `The request was handled, but its response was left out: the responses to a batch are limited to ${maxBatchResponseBytes / 1024 / 1024} MiB in total. To get it, send the request on its own, unless it must not run twice.`

export type Batch = readonly (InboundMessage | UnreadableMessage)[]

export const isBatch = (bytes: Buffer): boolean => /^[ \t\r\n]*\[/.test(bytes.toString('latin1', 0, 64))

/** Parses a batch. Returns undefined if the revision has no batches, or the text is not a JSON array. */
export function readBatch(session: Session, bytes: Buffer): Batch | UnreadableMessage | undefined {
  if (session.revision !== revisionWithBatches) return undefined
  const text = toUtf8(bytes)
  const messages: Buffer[] = []
  const isWhole = eachElement(text, (start, end) => messages.push(text.subarray(start, end)) <= maxBatchMessages)
  if (messages.length > maxBatchMessages) return invalidBatch(`A batch may have at most ${maxBatchMessages} messages.`)
  if (!isWhole) return undefined
  if (messages.length === 0) return invalidBatch('A batch must have at least one message.')
  return messages.map(readInbound)
}

const invalidBatch = (message: string): UnreadableMessage => ({
  kind: 'invalid',
  id: null,
  code: rpcCodes.request,
  message,
})

/** Handles the messages of a batch like messages that arrive one after the other, and collects the responses. */
export async function answerBatch(options: {
  readonly protocol: Pick<LegacyProtocol, 'request' | 'notification' | 'leftOut'>
  readonly session: Session
  readonly batch: Batch
  readonly outlet: ResponseChannel
  readonly caller: Caller
  readonly agentResolved?: boolean
  /** Returns what the caller's next request has to wait for. */
  turn?(): Promise<void> | undefined
  malformed(fault: string): void
}): Promise<readonly Buffer[]> {
  const { protocol, session, batch, outlet, caller } = options
  const parts: ResponseChannel[] = []
  let isCancelled = false
  let room = maxBatchResponseBytes
  outlet.owner = {
    cancel() {
      isCancelled = true
      for (const { owner } of parts) owner?.cancel()
    },
  }
  const respond = async (request: InboundRequest): Promise<Buffer | undefined> => {
    const { promise: abandoned, resolve } = Promise.withResolvers<undefined>()
    const send = (message: Buffer) => outlet.send(message)
    const part: ResponseChannel = { owner: undefined, send, abandon: () => resolve(undefined) }
    parts.push(part)
    const answered = protocol.request(session, request, part, caller, options.agentResolved)
    const { message } = (await Promise.race([answered, abandoned])) ?? {}
    if (message === undefined) return undefined
    const size = lengthOf(message)
    if (size > room) return joined(protocol.leftOut(request).message)
    room -= size
    return joined(message)
  }
  const answers: (Promise<Buffer | undefined> | Buffer)[] = []
  for (const inbound of batch) {
    await options.turn?.()
    if (isCancelled || session.ended.aborted) break
    if (inbound.kind === 'request') answers.push(respond(inbound))
    else if (inbound.kind === 'notification') protocol.notification(session, inbound)
    else {
      const fault = inbound.kind === 'invalid' ? inbound.message : session.clientRequests.settle(inbound)
      if (fault !== undefined) options.malformed(fault)
      if (inbound.kind === 'invalid')
        answers.push(errorBytes(inbound.id, { code: inbound.code, message: inbound.message }))
    }
  }
  return (await Promise.all(answers)).filter((answer) => answer !== undefined)
}

/** One JSON array of the responses, of which there is at least one. */
export const batchPieces = (answers: readonly Buffer[]): Pieces =>
  answers.flatMap((answer, index) => [Buffer.from(index === 0 ? '[' : ','), answer]).concat(Buffer.from(']'))
